// Command worker is what the sandbox needs of the program, and nothing else.
package main

import (
	"fmt"
	"os"

	"forge/pipeline/sandbox"
)

func main() {
	switch os.Args[1] {
	case "worker":
		if err := sandbox.Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
	case "bridge":
		os.Exit(sandbox.Bridge(os.Args[2:]))
	}
}
