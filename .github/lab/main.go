// Lab measures how well Forge does what it does: its size, its loop, what it recalls, what
// it learns, how it tells findings apart. `go -C .github/lab test ./...` is the rest of the
// laboratory: tests that take minutes, kill servers, drive a browser or take protections away.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
	"forge/lab/evaluate"
	"forge/lab/hub"
	"forge/lab/measure"
	"forge/lab/models"
	"forge/lab/repositories"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	root := &cobra.Command{
		Use: "lab", Short: "Measures Forge", SilenceUsage: true, SilenceErrors: true, Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(hub.Command(), measure.Command(), models.Command(), repositories.Command())
	root.AddCommand(evaluate.Commands()...)
	code, err := shell.ExitCode(root.ExecuteContext(ctx))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
	}
	os.Exit(code)
}
