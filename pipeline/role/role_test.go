package role

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func quoted(words string) bool { return words == "a comma" }

func TestCheck(t *testing.T) {
	requirements := []Artefact{{Role: Analyst, Items: []Item{{ID: "REQ1", Text: "a comma"}, {ID: "REQ2", Text: "a colon"}}}}
	many := func(n int, text string) (out []Item) {
		for range n {
			out = append(out, Item{Kind: Screen, Text: text})
		}
		return out
	}
	for _, c := range []struct {
		name   string
		a      Artefact
		before []Artefact
		want   string // part of what is wrong; "": nothing
	}{
		{"requirement", Artefact{Role: Analyst, Body: "b", Items: []Item{{Text: "x", Quote: "a comma"}}}, nil, ""},
		{"no quote", Artefact{Role: Analyst, Body: "b", Items: []Item{{Text: "x", Quote: "a semicolon"}}}, nil, `REQ1: "a semicolon" does not stand in the task`},
		{"no body", Artefact{Role: Analyst, Items: []Item{{Text: "x", Quote: "a comma"}}}, nil, "summary is missing"},
		{"no items", Artefact{Role: UX, Body: "b"}, nil, "there is no item"},
		{"no text", Artefact{Role: UX, Body: "b", Items: []Item{{Text: " "}}}, nil, "UI1 has no text"},
		{"most items", Artefact{Role: UX, Body: "b", Items: many(MaxItems, "x")}, nil, ""},
		{"too many", Artefact{Role: UX, Body: "b", Items: many(MaxItems+1, "x")}, nil, "there are 61 items, over 60"},
		{"too long", Artefact{Role: UX, Body: "b", Items: many(10, strings.Repeat("x", MaxBody/10))}, nil, "over 20480"},
		{"criteria", Artefact{Role: Product, Body: "b", Items: []Item{{Text: "x", For: "REQ1"}, {Text: "y", For: "REQ2"}}}, requirements, ""},
		{"criterion of none", Artefact{Role: Product, Body: "b", Items: []Item{{Text: "x", For: "REQ3"}}}, requirements, `AC1 is for "REQ3", which is none`},
		{"requirement without", Artefact{Role: Product, Body: "b", Items: []Item{{Text: "x", For: "REQ1"}}}, requirements, "REQ2 has no criterion"},
		{"criteria alone", Artefact{Role: Product, Body: "b", Items: []Item{{Text: "x"}}}, nil, ""},
		{"no goals alone", Artefact{Role: Product, Body: "b", Items: []Item{{Text: "x", Kind: NonGoal}}}, nil, "criteria are missing"},
		{"nothing weighed", Artefact{Role: Architect, Body: "b", Items: []Item{{Kind: Decision, Text: "x", Why: "y"}}}, nil, "DEC1 needs why"},
		{"constraint", Artefact{Role: Architect, Body: "b", Items: []Item{{Kind: Constraint, Text: "x"}}}, nil, ""},
	} {
		bad := strings.Join(c.a.Check(c.before, quoted), "\n")
		if c.want == "" && bad != "" || !strings.Contains(bad, c.want) {
			t.Errorf("%s: %q, want %q", c.name, bad, c.want)
		}
	}
}

// What is accepted keeps to the caps, has ids of its own, and leaves no requirement without
// a criterion.
func TestAccepted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := rapid.Custom(func(t *rapid.T) Item {
			return Item{Kind: rapid.SampledFrom([]string{"", NonGoal, Decision, Constraint}).Draw(t, "kind"), Text: rapid.StringN(0, 400, -1).Draw(t, "text"),
				For: rapid.SampledFrom([]string{"", "REQ1", "REQ2"}).Draw(t, "for"), Quote: rapid.SampledFrom([]string{"a comma", ""}).Draw(t, "quote"),
				Why: rapid.SampledFrom([]string{"", "so"}).Draw(t, "why"), Weighed: []string{"other"}}
		})
		before := []Artefact{{Role: Analyst, Items: []Item{{ID: "REQ1", Text: "a"}, {ID: "REQ2", Text: "b"}}}}
		a := Artefact{Role: rapid.SampledFrom(All()).Draw(t, "role"), Body: "b", Items: rapid.SliceOfN(item, 0, 70).Draw(t, "items")}
		if len(a.Check(before, quoted)) > 0 {
			return
		}
		ids, covered := map[string]bool{}, map[string]bool{}
		for _, i := range a.Items {
			if ids[i.ID] || i.ID == "" {
				t.Fatalf("the id %q is not its own", i.ID)
			}
			ids[i.ID] = true
			if i.Kind != NonGoal {
				covered[i.For] = true
			}
			if a.Role == Analyst && i.Quote != "a comma" {
				t.Fatalf("%+v quotes nothing", i)
			}
		}
		if len(a.Items) > MaxItems || len(a.Text()) > MaxBody || a.Role == Product && (!covered["REQ1"] || !covered["REQ2"]) {
			t.Fatalf("accepted: %+v", a)
		}
	})
}

// A newer artefact takes the place of an older one; one that is stale counts as none.
func TestPut(t *testing.T) {
	list := Put(Put(nil, Artefact{Role: Analyst, Body: "one"}), Artefact{Role: Product, Body: "two"})
	list[0].Stale = true
	if Of(list, Analyst) != nil || len(Items(list, Analyst)) > 0 {
		t.Error("what is stale counts")
	}
	newer := Put(list, Artefact{Role: Analyst, Body: "three"})
	if a := Of(newer, Analyst); a == nil || a.Rev != 2 || a.Body != "three" || len(newer) != 2 || list[0].Body != "one" {
		t.Errorf("newer: %+v, before: %+v", newer, list)
	}
}
