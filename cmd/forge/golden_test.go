package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the files under testdata/golden")

// golden compares a text with the one that is kept.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, path), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

// What the command line says of itself changes on purpose only.
func TestHelpIsAsItWas(t *testing.T) {
	t.Parallel()
	var all bytes.Buffer
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		all.WriteString("==== " + cmd.CommandPath() + "\n" + out.String() + "\n")
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(rootCommand())
	golden(t, "help.txt", all.Bytes())
}

// The texts that commands answer with when there is nothing yet, or when they are
// called wrongly, change on purpose only.
func TestAnswersAreAsTheyWere(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	var all bytes.Buffer
	for _, args := range [][]string{
		{"runs"}, {"runs", "--json"}, {"show", "7"}, {"show", "x"}, {"answer", "7", "accept"}, {"answer", "7"}, {"reset", "7"},
		{"memory", "list"}, {"memory", "list", "--scope", "?"}, {"memory", "show", "7"}, {"memory", "search", "x"}, {"memory", "export"},
		{"memory", "worth", "--days", "8"}, {"memory", "agents", "--repo", "x"}, {"memory", "agents", "--repo", "acme/site", "--pull"},
		{"deliveries"}, {"deliveries", "x"}, {"deliveries", "--retry", "x"}, {"metrics", "--repo", "acme/site"}, {"metrics", "--days", "8"},
		{"serve"}, {"run"}, {"run", "https://example.com/acme/site/issues/1"}, {"replay", "7"}, {"servee"}, {"runs", "--jsn"},
	} {
		var out bytes.Buffer
		code := Main(c.context(), args, &out, &out)
		all.WriteString("==== forge")
		for _, a := range args {
			all.WriteString(" " + a)
		}
		all.WriteString("\n" + out.String() + "exit " + string(rune('0'+code)) + "\n\n")
	}
	golden(t, "answers.txt", all.Bytes())
}
