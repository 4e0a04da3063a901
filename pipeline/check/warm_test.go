package check

import (
	"context"
	"errors"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/workspace"
)

// warmWorkspace is a workspace with a kept build cache.
type warmWorkspace struct {
	*dirWorkspace
	err error
}

func (w *warmWorkspace) Warm(_ context.Context, c workspace.Command) error {
	w.ran = append(w.ran, "warm in "+c.Dir+": "+strings.Join(c.Args, " "))
	return w.err
}

// What a Go suite needs of others is compiled before it; a sandbox that does not
// work ends the check, what does not compile does not.
func TestWarm(t *testing.T) {
	t.Parallel()
	const archive = "-- sub/go.mod --\nmodule example.com/x\n\ngo 1.24\n-- sub/x_test.go --\npackage x\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n"
	for _, tt := range []struct {
		err  error
		want bool
	}{{nil, true}, {errors.New("no such package"), true}, {&pipeline.Fault{Class: pipeline.FaultSandbox, Message: "gone"}, false}} {
		w := &warmWorkspace{dirWorkspace: newWorkspace(t, archive), err: tt.err}
		r, err := Run(t.Context(), w, Options{})
		if (err == nil) != tt.want || tt.want && r.Passed != 1 {
			t.Errorf("Run with Warm = %v: %+v, %v", tt.err, r, err)
		}
		all := strings.Join(w.ran, "\n")
		warmed, tested := strings.Index(all, "warm in sub: go test "), strings.Index(all, `exec "$@"`)
		if warmed < 0 || tt.want && tested < warmed || !tt.want && tested >= 0 {
			t.Errorf("with Warm = %v, commands were\n%s", tt.err, all)
		}
	}
}
