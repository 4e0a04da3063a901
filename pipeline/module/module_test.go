package module

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/pipeline/glob"
	"forge/pipeline/testname"
)

func sound() *Split {
	mod := func(id string, needs ...string) Module {
		return Module{ID: id, Title: id, Summary: "Does " + id + ".", Size: "M", Steps: []string{"write it"}, Paths: []string{id + "/**"}, Needs: needs, Criteria: []string{"AC-" + id}}
	}
	return &Split{
		Modules:  []Module{mod("a"), mod("b"), mod("c"), mod("d", "a", "b"), mod("e", "a", "c")},
		Contract: []string{"api/api.go", "api/api_test.go"},
		Promises: []Promise{
			{ID: "P1", From: "a", To: []string{"d", "e"}, Text: "a.Token", Probe: "TestToken"},
			{ID: "P2", From: "b", To: []string{"d"}, Text: "b.Mail", Probe: "TestMail"},
			{ID: "P3", From: "c", To: []string{"e"}, Text: "c.Log", Probe: "TestLog"},
		},
		Integration: []string{"AC-whole"},
	}
}

var soundLimits = Limits{Match: glob.Match, Overlap: glob.Overlap, Same: testname.Same,
	Max: 6, Reserved: func(w string) bool { return w == "continue" },
	Passing:  []string{"example.com/shop.TestOld"},
	Criteria: []string{"AC-a", "AC-b", "AC-c", "AC-d", "AC-e", "AC-whole"},
	Tree:     []string{"go.mod", "a/tsconfig.json", "a/a.go", "b/b.go", "api/api.go", ".github/workflows/ci.yml"},
}

// Covers V6: a split that cannot be built is sent back to the planner with a reason.
func TestCheck(t *testing.T) {
	if bad := sound().Check(soundLimits); len(bad) > 0 {
		t.Fatalf("a sound split: %q", bad)
	}
	for name, c := range map[string]struct {
		change func(*Split)
		want   string
	}{
		"other case":         {func(s *Split) { s.Modules[1].Paths = []string{"A/x.go"} }, "reach for the same files"},
		"below a name":       {func(s *Split) { s.Modules[0].Paths, s.Modules[1].Paths = []string{"lib"}, []string{"lib/b.go"} }, "reach for the same files"},
		"named like a file":  {func(s *Split) { s.Modules[1].Paths = []string{"src/dockerfile/**"} }, "lies in a directory dockerfile"},
		"lock of bun":        {func(s *Split) { s.Modules[1].Paths = []string{"b/**", "bun.lock"} }, "everything hangs"},
		"another CI":         {func(s *Split) { s.Modules[1].Paths = []string{"b/**", ".circleci/config.yml"} }, "everything hangs"},
		"and its file":       {func(s *Split) { s.Modules[1].Paths = []string{"b/**", "jenkinsfile"} }, "everything hangs"},
		"one module":         {func(s *Split) { s.Modules, s.Promises = s.Modules[:1], nil }, "1 modules"},
		"too many":           {func(s *Split) { s.Modules = append(s.Modules, s.Modules...) }, "10 modules"},
		"id":                 {func(s *Split) { s.Modules[0].ID = "A B" }, `"A B" is not a short slug`},
		"id of a command":    {func(s *Split) { s.Modules[0].ID = "continue" }, "means something else"},
		"id of integration":  {func(s *Split) { s.Modules[0].ID = "integration" }, "means something else"},
		"id twice":           {func(s *Split) { s.Modules[1].ID = "a" }, `"a" occurs twice`},
		"size":               {func(s *Split) { s.Modules[1].Size = "XL" }, `size "XL"`},
		"no steps":           {func(s *Split) { s.Modules[1].Steps = nil }, "b lacks steps"},
		"no paths":           {func(s *Split) { s.Modules[1].Paths = nil }, "b lacks paths"},
		"path from outside":  {func(s *Split) { s.Modules[1].Paths = []string{"../b"} }, "no path or glob"},
		"bad glob":           {func(s *Split) { s.Modules[1].Paths = []string{"b/[x"} }, "no path or glob"},
		"braces":             {func(s *Split) { s.Modules[1].Paths = []string{"{b,x}/**"} }, "no path or glob"},
		"negated":            {func(s *Split) { s.Modules[1].Paths = []string{"!a/**"} }, "no path or glob"},
		"blank before":       {func(s *Split) { s.Modules[1].Paths = []string{" b/**"} }, "no path or glob"},
		"backslash":          {func(s *Split) { s.Modules[1].Paths = []string{`b\new.py`} }, "no path or glob"},
		"git's own":          {func(s *Split) { s.Modules[1].Paths = []string{".git/**"} }, "no path or glob"},
		"no title":           {func(s *Split) { s.Modules[1].Title = " " }, "b lacks a title"},
		"blank summary":      {func(s *Split) { s.Modules[1].Summary = " " }, "b lacks a summary"},
		"blank steps":        {func(s *Split) { s.Modules[1].Steps = []string{" "} }, "b lacks steps"},
		"the top":            {func(s *Split) { s.Modules[1].Paths = []string{"."} }, "no path or glob"},
		"two lines":          {func(s *Split) { s.Modules[1].Paths = []string{"b/x\ny"} }, "no path or glob"},
		"directory":          {func(s *Split) { s.Modules[1].Paths = []string{"b"} }, "b is a directory of the repository, of which this owns nothing: write b/**"},
		"stars in a name":    {func(s *Split) { s.Modules[1].Paths = []string{"b/**.go"} }, "b/**.go means b/*.go"},
		"three stars":        {func(s *Split) { s.Modules[1].Paths = []string{"b/***"} }, "b/*** means b/*"},
		"all but":            {func(s *Split) { s.Modules[1].Paths = []string{"b/[!x]*"} }, "a class that leaves out is written [^"},
		"the contract's own": {func(s *Split) { s.Modules[1].Paths = []string{"b/**", "api/api.go"} }, "b owns api/api.go, which is the contract's"},
		"contract directory": {func(s *Split) { s.Contract[0] = "api" }, "api is a directory: name its files"},
		"contract top":       {func(s *Split) { s.Contract[0] = "." }, `"." is no path of a file`},
		"blank promise":      {func(s *Split) { s.Promises[0].Probe = " " }, "lacks its text, or the probe"},
		"protected contract": {func(s *Split) { s.Contract[0] = ".github/workflows/ci.yml" }, "is for people alone"},
		"unknown need":       {func(s *Split) { s.Modules[1].Needs = []string{"z"} }, `"z", which is no module`},
		"itself":             {func(s *Split) { s.Modules[1].Needs = []string{"b"} }, "in a circle: b, d"},
		"circle":             {func(s *Split) { s.Modules[0].Needs = []string{"d"} }, "in a circle: a, d, e"},
		"same path":          {func(s *Split) { s.Modules[1].Paths = []string{"a/x.go"} }, "a and b both own a/** and a/x.go"},
		"shared file":        {func(s *Split) { s.Modules[1].Paths = []string{"b/**", "go.*"} }, "b owns go.mod"},
		"shared by its name": {func(s *Split) { s.Modules[1].Paths = []string{"b/**", "b/pytest.ini"} }, "b owns b/pytest.ini"},
		"probe of the base":  {func(s *Split) { s.Promises[1].Probe = "TestOld" }, "TestOld stands in the repository already"},
		"workflow":           {func(s *Split) { s.Modules[1].Paths = []string{"b/**", ".github/**"} }, "b owns .github/workflows/ci.yml"},
		"criterion unowned":  {func(s *Split) { s.Modules[1].Criteria = nil }, "AC-b belongs to no module"},
		"criterion twice":    {func(s *Split) { s.Modules[1].Criteria = []string{"AC-a", "AC-b"} }, "AC-a belongs to a and to b"},
		"criterion unknown":  {func(s *Split) { s.Integration = append(s.Integration, "AC9") }, `"AC9", which the plan does not have`},
		"need unpromised":    {func(s *Split) { s.Promises = s.Promises[1:] }, "d needs a, but no promise"},
		"promise to nobody":  {func(s *Split) { s.Promises[0].To = nil }, "both sides must be modules"},
		"promise untested":   {func(s *Split) { s.Promises[0].Probe = "" }, "lacks its text, or the probe"},
		"promise twice":      {func(s *Split) { s.Promises[1].ID = "P1" }, "an id of its own"},
		"no contract":        {func(s *Split) { s.Contract = nil }, "promises but no contract"},
		"contract is a glob": {func(s *Split) { s.Contract[0] = "api/*" }, `"api/*" is no path`},
	} {
		s := sound()
		c.change(s)
		if got := strings.Join(s.Check(soundLimits), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q does not say %q", name, got, c.want)
		}
	}
}

func TestOwner(t *testing.T) {
	s := sound()
	s.Modules[2].Paths = []string{"lib/*"}
	s.Modules[3].Paths = []string{"lib/d_*"}
	for name, want := range map[string]string{"a/x/y.go": "a", "lib/x.go": "c", "lib/d_x.go": "d", "main.go": "", "api/api.go": ""} {
		if got := s.Owner(name, glob.Match); got != want {
			t.Errorf("%s belongs to %q, not to %q", name, got, want)
		}
	}
	s.Modules[0].Paths = append(s.Modules[0].Paths, "api/**")
	if got := s.Owner("api/api.go", glob.Match); got != "" {
		t.Errorf("a file of the contract belongs to %q", got)
	}
}

// Covers V6: a module begins when what it needs is merged, whatever the others do.
func TestOrder(t *testing.T) {
	s := sound()
	in := func(ids ...string) func(string) bool { return func(id string) bool { return slices.Contains(ids, id) } }
	for _, c := range []struct{ begun, merged, want []string }{
		{nil, nil, []string{"a", "b", "c"}},
		{[]string{"a", "b", "c"}, []string{"a", "b"}, []string{"d"}},
		{[]string{"a", "b", "c"}, []string{"a", "c"}, []string{"e"}},
		{[]string{"a", "b", "c", "d", "e"}, []string{"a", "b", "c"}, nil},
	} {
		if diff := cmp.Diff(c.want, s.Ready(in(c.begun...), in(c.merged...))); diff != "" {
			t.Errorf("begun %v, merged %v: %s", c.begun, c.merged, diff)
		}
	}
	if diff := cmp.Diff([]string{"d", "e"}, s.Dependents("a")); diff != "" {
		t.Error(diff)
	}
	if s.Wave("c") != 1 || s.Wave("e") != 2 {
		t.Errorf("c is of wave %d, e of wave %d", s.Wave("c"), s.Wave("e"))
	}
}

func TestEstimate(t *testing.T) {
	for _, c := range []struct {
		parallel      int
		serial, build int
	}{{1, 10, 10}, {2, 10, 6}, {3, 10, 4}, {9, 10, 4}} {
		if e := sound().Estimate(c.parallel); e.Serial != c.serial || e.Build != c.build || e.Whole != c.build+1 {
			t.Errorf("%d at once: %+v", c.parallel, e)
		}
	}
	if why := sound().Pays(3, 0.3); why != "" {
		t.Error(why)
	}
	if why := sound().Pays(1, 0.3); !strings.Contains(why, "11 units of work") {
		t.Errorf("after each other: %q", why)
	}
	s := sound()
	s.Modules = s.Modules[:2]
	s.Modules[0].Size, s.Modules[1].Size = "S", "S"
	if why := s.Pays(3, -1); !strings.Contains(why, "2 small modules") {
		t.Errorf("two small ones: %q", why)
	}
}

// Covers V6: the estimate lies between the longest path and the sum, for any graph.
func TestEstimateIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Split{}
		longest, critical := map[string]int{}, 0
		for i := range rapid.IntRange(1, 8).Draw(t, "modules") {
			m := Module{ID: fmt.Sprintf("m%d", i), Size: rapid.SampledFrom([]string{"S", "M", "L"}).Draw(t, "size")}
			for j := range i {
				if rapid.Bool().Draw(t, "needs") {
					m.Needs = append(m.Needs, fmt.Sprintf("m%d", j))
				}
			}
			for _, n := range m.Needs {
				longest[m.ID] = max(longest[m.ID], longest[n])
			}
			longest[m.ID] += units(m.Size)
			critical = max(critical, longest[m.ID])
			s.Modules = append(s.Modules, m)
		}
		parallel := rapid.IntRange(1, 8).Draw(t, "parallel")
		e := s.Estimate(parallel)
		if e.Build < critical || e.Build > e.Serial || parallel == 1 && e.Build != e.Serial || parallel == 8 && e.Build != critical {
			t.Fatalf("%d at once, longest path %d: %+v", parallel, critical, e)
		}
	})
}

// Covers V6: a name of the repository with brackets in it is itself; where there is none of
// the name, they are a class of letters.
func TestLiteral(t *testing.T) {
	s := sound()
	s.Modules[0].Paths = []string{"app/[id]/page.tsx", "app/[id]/new/[slug].tsx", "app/[id]/**", "lib/[ab].go", "a/[x].go"}
	tree := append(slices.Clone(soundLimits.Tree), "app/[id]/page.tsx", "a/[x].go")
	s.Literal(tree)
	want := []string{`app/\[id]/page.tsx`, `app/\[id]/new/[slug].tsx`, `app/\[id]/**`, "lib/[ab].go", `a/\[x].go`}
	if diff := cmp.Diff(want, s.Modules[0].Paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for name, owner := range map[string]string{"app/[id]/page.tsx": "a", "app/i/page.tsx": "", "app/[id]/x.tsx": "a", "lib/a.go": "a", "a/[x].go": "a", "a/x.go": ""} {
		if got := s.Owner(name, glob.Match); got != owner {
			t.Errorf("%s belongs to %q, want %q", name, got, owner)
		}
	}
	l := soundLimits
	l.Tree = tree
	if bad := s.Check(l); len(bad) > 0 {
		t.Errorf("it is refused: %q", bad)
	}
}
