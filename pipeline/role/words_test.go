package role

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFromWords(t *testing.T) {
	requirements := []Item{{ID: "REQ1"}, {ID: "REQ2"}}
	for _, c := range []struct {
		role        Role
		words, want string
	}{
		{Analyst, "A comma follows.", "REQ1 (functional): A comma follows. (“A comma follows.”)"},
		{Analyst, "As I said:\n- one\n2. two", "As I said:|REQ1 (functional): one (“one”)|REQ2 (functional): two (“two”)"},
		{Product, "- [ ] It greets (for REQ1)\n- It ends (REQ7)\n- Non-goal: colours", "AC1: It greets (for REQ1)|AC2: It ends (REQ7)|NG1 (non-goal): colours"},
		{Architect, "* one file\n* constraint: Go 1.25", "DEC1 (decision): one file|CON1 (constraint): Go 1.25"},
		{UX, "a button", "UI1 (screen): a button"},
		{Product, "- Rows are never\n  deleted (REQ1)\n- It ends\n\n\tin the same second (REQ2)", "AC1: Rows are never deleted (for REQ1)|AC2: It ends in the same second (for REQ2)"},
		{Product, "I say:\n- It ends\nThat is all.", "I say:|That is all.|AC1: It ends"},
		{Product, "- It greets and ends (REQ1, REQ2)", "AC1: It greets and ends (for REQ1)|AC2: It greets and ends (for REQ2)"},
		{Product, "* x (REQ1) and y (for REQ2)", "AC1: x and y (for REQ1)|AC2: x and y (for REQ2)"},
		{Product, "- x (REQ1, REQ9)", "AC1: x (REQ1, REQ9) (for REQ1)"},
		{Product, "- As REQ2 says, it ends", "AC1: As REQ2 says, it ends (for REQ2)"},
		{Product, "- x (req1)", "AC1: x (for REQ1)"},
		{Product, "- non goal: PDF\n- Nongoals: XML\n- no-goal : CSV\n- **Non-goal:** ODS\n- (non-goal) RTF", "NG1 (non-goal): PDF|NG2 (non-goal): XML|NG3 (non-goal): CSV|NG4 (non-goal): ODS|NG5 (non-goal): RTF"},
		{Product, "- No goal is lost: it is counted", "AC1: No goal is lost: it is counted"},
		{Product, "• x (REQ1)\n• y (REQ2)\n– z\n‣ w\n◦ v", "AC1: x (for REQ1)|AC2: y (for REQ2)|AC3: z|AC4: w|AC5: v"},
		{Product, "- x\n  - of x\n- y", "AC1: x|AC2: of x|AC3: y"},
		{Architect, "• Constraint : Go 1.25\n  and no cgo", "CON1 (constraint): Go 1.25 and no cgo"},
		{Analyst, "- one\n  more", "REQ1 (functional): one more (“one more”)"},
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
			return rapid.SampledFrom([]string{"- ", "", "  ", "• ", "1. ", "- constraint: ", "- non-goal: "}).Draw(t, "mark") + rapid.StringN(0, 3000, 3000).Draw(t, "words")
		})
		words := strings.Join(rapid.SliceOfN(line, 1, 90).Draw(t, "lines"), "\n")
		a := FromWords(rapid.SampledFrom(All()).Draw(t, "role"), words, "ann", nil)
		if len(a.Items) == 0 || len(a.Items) > MaxItems || len(a.Text()) > MaxBody || a.Items[0].ID == "" {
			t.Fatalf("%d items, %d bytes, %+v", len(a.Items), len(a.Text()), a.Items[0])
		}
	})
}
