package main

import (
	"errors"
	"strings"
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

// Covers A3: before anything is started, the demo tries the user's own model, and says what
// to do where it cannot be used.
func TestDemoTriesTheModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own  ownModel
		env  map[string]string
		want []string // of the error; none: there is none
	}{
		"the tape":       {},
		"no server":      {ownModel{name: "openai/x", url: "http://127.0.0.1:1/v1"}, nil, []string{"could not be reached at http://127.0.0.1:1/v1", "check that it runs", "--model-url"}},
		"of environment": {ownModel{name: "openai/x"}, map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, []string{"could not be reached at http://127.0.0.1:1/v1"}},
		"no key":         {ownModel{name: "anthropic/x"}, map[string]string{"FORGE_MODEL": "tape:x"}, []string{"ANTHROPIC_API_KEY"}},
		"no provider":    {ownModel{name: "x"}, nil, []string{"provider/model"}},
		"no model":       {ownModel{url: "http://127.0.0.1:1/v1"}, nil, []string{"--model openai/MODEL"}},
	} {
		err := tt.own.prepare(t.Context(), func(k string) string { return tt.env[k] })
		if (err != nil) != (len(tt.want) > 0) {
			t.Errorf("%s: %v", name, err)
		}
		for _, w := range tt.want {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want %q", name, err, w)
			}
		}
	}
}
