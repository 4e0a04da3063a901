package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"parseURL, don't; HTTP/2": {"parse", "url", "dont", "http", "2"},
		"Größe_zählen":            {"größe", "zählen"},
		strings.Repeat("x", 70):   {strings.Repeat("x", 61), strings.Repeat("x", 9)},
	} {
		if diff := cmp.Diff(want, Words(text)); diff != "" {
			t.Errorf("Words(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func TestKeyWords(t *testing.T) {
	for text, want := range map[string][]string{
		"The loop should not be here":         {"loop"},
		"Wrapping wraps wrapped wrap":         {"wrap", "wrapp"},
		"queries query class a the use using": {"class", "quer", "query", "use", "using"},
		"x y":                                 nil,
	} {
		if diff := cmp.Diff(want, KeyWords(text)); diff != "" {
			t.Errorf("KeyWords(%q) (-want +got):\n%s", text, diff)
		}
	}
}
