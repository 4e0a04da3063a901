package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"forge/pipeline"
)

// A full disk is told apart from other errors, also when it comes from git or over
// the worker's pipe.
func TestRoomFault(t *testing.T) {
	full := fmt.Errorf("checkout: %w", &fs.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC})
	body, err := json.Marshal(toWire(full))
	if err != nil {
		t.Fatal(err)
	}
	var wire wireError
	if err := json.Unmarshal(body, &wire); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		err  error
		full bool
	}{
		"here":          {full, true},
		"quota":         {syscall.EDQUOT, true},
		"by the worker": {&wire, true},
		"by git":        {&gitError{command: "init", stderr: "error: unable to write symref for HEAD: No space left on device\n"}, true},
		"another":       {syscall.EACCES, false},
		"git's other":   {&gitError{command: "init", stderr: "fatal: not a git repository"}, false},
		"none":          {nil, false},
	} {
		got := roomFault("/srv/forge/work", tc.err)
		var f *pipeline.Fault
		switch isFault := errors.As(got, &f); {
		case isFault != tc.full:
			t.Errorf("%s: roomFault(%v) = %v", name, tc.err, got)
		case tc.full && (f.Class != pipeline.FaultEnvironment || f.Final || !strings.Contains(f.Message, "/srv/forge/work has no room left")):
			t.Errorf("%s: fault %+v", name, f)
		case !tc.full && got != tc.err:
			t.Errorf("%s: %v became %v", name, tc.err, got)
		}
	}
}
