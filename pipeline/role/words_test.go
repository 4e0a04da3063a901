package role

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFromWords(t *testing.T) {
	requirements := []Item{{ID: "REQ1"}}
	for _, c := range []struct {
		role        Role
		words, want string
	}{
		{Analyst, "A comma follows.", "REQ1 (functional): A comma follows. (“A comma follows.”)"},
		{Analyst, "As I said:\n- one\n2. two", "As I said:|REQ1 (functional): one (“one”)|REQ2 (functional): two (“two”)"},
		{Product, "- [ ] It greets (for REQ1)\n- It ends (REQ7)\n- Non-goal: colours", "AC1: It greets (for REQ1)|AC2: It ends (REQ7)|NG1 (non-goal): colours"},
		{Architect, "* one file\n* constraint: Go 1.25", "DEC1 (decision): one file|CON1 (constraint): Go 1.25"},
		{UX, "a button", "UI1 (screen): a button"},
	} {
		a := FromWords(c.role, c.words, "ann", requirements)
		got := strings.ReplaceAll(strings.TrimSpace(a.Text()), "\n", "|")
		if got != c.want || a.By != "ann" || a.Role != c.role {
			t.Errorf("%s of %q: %q, want %q", c.role, c.words, got, c.want)
		}
	}
}

// Whatever a person writes, it keeps to the caps and has an item with an id.
func TestFromAnyWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"- ", "", "1. ", "- constraint: ", "- non-goal: "}).Draw(t, "mark") + rapid.StringN(0, 3000, 3000).Draw(t, "words")
		})
		words := strings.Join(rapid.SliceOfN(line, 1, 90).Draw(t, "lines"), "\n")
		a := FromWords(rapid.SampledFrom(All()).Draw(t, "role"), words, "ann", nil)
		if len(a.Items) == 0 || len(a.Items) > MaxItems || len(a.Text()) > MaxBody || a.Items[0].ID == "" {
			t.Fatalf("%d items, %d bytes, %+v", len(a.Items), len(a.Text()), a.Items[0])
		}
	})
}
