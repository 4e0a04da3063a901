package evaluate

import (
	"bytes"
	"context"
	"testing"

	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
)

// lab runs one of the commands and returns what it printed.
func lab(args ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "lab", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(Commands()...)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

// labDone runs a command that has to succeed.
func labDone(t *testing.T, args ...string) string {
	t.Helper()
	out, err := lab(args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// exits wants a command to end with the code and to say why.
func exits(t *testing.T, want int, why string, args ...string) {
	t.Helper()
	out, err := lab(args...)
	code, err := shell.ExitCode(err)
	if code != want || err == nil || !bytes.Contains([]byte(err.Error()), []byte(why)) {
		t.Errorf("%v: exit code %d, want %d; %v, want %q\n%s", args, code, want, err, why, out)
	}
}
