package stream

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	c, err := Read("forge", os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(len(c.Files), c.LineCount())
	for _, m := range Models() {
		at := time.Now()
		s := generate(c, m, 240, 1)
		gen := time.Since(at)
		for _, p := range Policies() {
			at := time.Now()
			r := play(s, p)
			fmt.Printf("%-9s %-14s", m.Name, p.Name)
			for _, b := range append(r.Blocks, r.Second) {
				fmt.Printf(" %3d/%3d %4.1f%%", b.Dismissed, b.Posted, 100*b.Rate())
			}
			a := r.All()
			fmt.Printf(" rep %d useful held %d/%d mist %d planted %d lost %d low %d again %d sec %d  learnings %d %v %v\n", a.Repeated, a.UsefulHeld, a.Useful, a.Mistaken, r.Planted, r.Lost, r.Lowered, r.Again, r.Secure, r.Learnings, time.Since(at).Round(time.Millisecond), gen.Round(time.Millisecond))
		}
	}
}
