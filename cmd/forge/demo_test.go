package main

import (
	"errors"
	"testing"
)

// The demo does without a sandbox where there is none, and does not ask for one where
// there cannot be any.
func TestWhyBare(t *testing.T) {
	t.Parallel()
	works, broken := func() error { return nil }, func() error { return errors.New("no namespaces\nmore") }
	for _, tt := range []struct {
		system string
		try    func() error
		want   string
	}{{"linux", works, ""}, {"linux", broken, "no namespaces"}, {"darwin", nil, "only Linux has what it is made of"}} {
		if got := whyBare(tt.system, tt.try); got != tt.want {
			t.Errorf("on %s: %q, want %q", tt.system, got, tt.want)
		}
	}
}
