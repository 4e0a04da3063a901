package panics

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestAsError(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	try := func(f func() error) (err error) {
		defer AsError(t.Context(), log.With("run", 7), &err, "counting")
		return f()
	}
	if err := try(func() error { panic("no numbers") }); err == nil || !strings.HasPrefix(err.Error(), "counting panicked: no numbers") {
		t.Errorf("a panic is %v", err)
	}
	for _, want := range []string{"counting panicked", "run=7", "error=\"no numbers\"", "panics_test.go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %s: %s", want, &out)
		}
	}
	out.Reset()
	own := errors.New("its own")
	if err := try(func() error { return own }); err != own || out.Len() > 0 {
		t.Errorf("an error is %v, logged %s", err, &out)
	}
}
