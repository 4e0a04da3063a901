// Package feature makes repositories and models of features that fall into modules.
package feature

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Feature is one that falls into modules. The repository that it is for, and the tape of
// a model that builds it, are written from it.
type Feature struct {
	Modules  []Piece
	Parallel int
	Finding  string        // the module in which the integration finds something; "" for none
	Whole    float64       // minutes that it takes to put them together
	Minute   time.Duration // how long the model takes for what a piece says takes a minute
	Go       string        // path of the Go module whose packages they are; "" for scripts
	Settings string        // more of the modules' settings, as they are written in braces
	Left     []string      // the modules that are left out in the end
}

// Piece is one of its modules.
type Piece struct {
	ID      string
	Needs   []string
	Minutes float64 // that its builds take together
	Wrong   bool    // its first build fails its own test, the second one is found fault with
	Fails   bool    // its first build fails its own test, the second one is right
	Breaks  bool    // its first build passes its own test, and keeps no promise to others
	Unsure  bool    // with Wrong or Fails, the cause is not sure enough to go on without a person; with Breaks, no other build comes
	Asks    bool    // its builder asks before it begins
}

// Five modules, of which d needs a and b, and e needs a and c, and c is wrong twice.
func Five(parallel int) Feature {
	return Feature{Parallel: parallel, Finding: "a", Modules: []Piece{
		{ID: "a", Minutes: 4}, {ID: "b", Minutes: 3}, {ID: "c", Minutes: 7.25, Wrong: true},
		{ID: "d", Minutes: 3.75, Needs: []string{"a", "b"}}, {ID: "e", Minutes: 6, Needs: []string{"a", "c"}},
	}}
}

// Beside are modules that do not need each other.
func Beside(n, parallel int) Feature {
	f := Feature{Parallel: parallel}
	for i := range n {
		f.Modules = append(f.Modules, Piece{ID: string(rune('a' + i)), Minutes: 4})
	}
	return f
}

// Probe is the test of what one piece promises another.
func (f Feature) Probe(from, to string) string {
	if f.Go != "" {
		return "Test" + strings.ToUpper(from[:1]+to[:1])
	}
	return "tests/" + from + "-" + to + ".sh"
}

// Files are in the repository before: its settings, and what runs the tests of scripts.
func (f Feature) Files() map[string]string {
	settings := ""
	if f.Settings != "" {
		settings = ", " + f.Settings
	}
	modules := fmt.Sprintf("modules: {mode: auto, min_gain: 0, parallel: %d%s}\n", f.Parallel, settings)
	if f.Go != "" {
		return map[string]string{".github/forge.yml": modules}
	}
	return map[string]string{
		".github/forge.yml": "tests: {commands: [sh test.sh]}\n" + modules,
		"test.sh": "echo TAP version 13\nn=0\nfor t in tests/*.sh; do\n  n=$((n+1))\n" +
			"  if sh \"$t\"; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; fi\ndone\necho 1..$n\n",
		"tests/base.sh": "[ -f test.sh ]\n",
	}
}

// What a piece's file says.
const (
	stub = iota
	wrong
	unsaid // right, without a comment
	silent // right when it is asked by itself alone
	right
	fixed // as the integration wants it
)

func (f Feature) file(p Piece) string {
	if f.Go != "" {
		return p.ID + "/" + p.ID + ".go"
	}
	return p.ID + "/run.sh"
}

func (f Feature) source(p Piece, state int) string {
	if f.Go == "" {
		return script(p, state)
	}
	body, imports := fmt.Sprintf("%q + v.String()", p.ID+" of "), ""
	switch state {
	case stub:
		body = `""`
	case wrong:
		body = `"wrong " + ` + body
	case silent:
		body = `map[bool]string{true: ` + body + `}[v.Prerelease() == ""]`
	case fixed:
		body = strings.Replace(body, "String", "Original", 1)
	}
	if state != stub {
		for _, n := range p.Needs {
			body += ` + " and " + ` + n + ".Of(v)"
			imports += fmt.Sprintf("\n\t%q", f.Go+"/"+n)
		}
	}
	comment := "// Of is what it says.\n"
	if state == unsaid {
		comment = ""
	}
	return fmt.Sprintf("// Package %s says what %[1]s makes of a version.\npackage %[1]s\n\nimport (\n\tsemver %[2]q%[3]s\n)\n\n%[4]sfunc Of(v *semver.Version) string { return %[5]s }\n",
		p.ID, f.Go, imports, comment, body)
}

func script(p Piece, state int) string {
	out := map[int]string{
		stub:   ":\n",
		wrong:  "echo wrong " + p.ID + "\n",
		unsaid: "echo " + p.ID + "\n",
		silent: "[ $# -gt 0 ] || echo " + p.ID + "\n",
		right:  "# It says who it is.\necho " + p.ID + "\n",
		fixed:  "# It says who it is.\nprintf '" + p.ID + "\\n'\n",
	}[state]
	if state != stub {
		for _, n := range p.Needs {
			out += "sh " + n + "/run.sh for " + p.ID + "\n"
		}
	}
	return out
}

// line is where a piece says what it says, below a comment.
func (f Feature) line() int {
	if f.Go != "" {
		return 9
	}
	return 2
}

// test is the piece's own.
func (f Feature) test(p Piece) (file, content string) {
	if f.Go == "" {
		return "tests/" + p.ID + ".sh", fmt.Sprintf("[ \"$(sh %s/run.sh | head -n 1)\" = %[1]s ]\n", p.ID)
	}
	want, imports := fmt.Sprintf("%q", p.ID+" of 1.2.3"), ""
	for _, n := range p.Needs {
		want += ` + " and " + ` + n + ".Of(v)"
		imports += fmt.Sprintf("\n\t%q", f.Go+"/"+n)
	}
	return p.ID + "/" + p.ID + "_test.go", fmt.Sprintf("package %s\n\nimport (\n\t\"testing\"\n\n\tsemver %q%s\n)\n\nfunc TestOf(t *testing.T) {\n\tv := semver.MustParse(\"1.2.3\")\n"+
		"\tif got, want := Of(v), %s; got != want {\n\t\tt.Errorf(\"%%q, want %%q\", got, want)\n\t}\n}\n", p.ID, f.Go, imports, want)
}

// contract are the files that hold what modules promise each other.
func (f Feature) contract() map[string]string {
	if f.Go == "" {
		files := map[string]string{"promises.txt": "Each says its own letter.\n"}
		f.edges(func(from, to string) { files[f.Probe(from, to)] = fmt.Sprintf("sh %s/run.sh | grep -q %s\n", to, from) })
		return files
	}
	var b strings.Builder
	b.WriteString("package promises\n\nimport (\n\t\"strings\"\n\t\"testing\"\n\n\tsemver \"" + f.Go + "\"\n")
	for _, p := range f.Modules {
		fmt.Fprintf(&b, "\t%q\n", f.Go+"/"+p.ID)
	}
	b.WriteString(")\n\ntype says func(*semver.Version) string\n\nfunc check(t *testing.T, from, to says) {\n\tv := semver.MustParse(\"1.2.3-rc.1\")\n" +
		"\tif from(v) == \"\" || !strings.Contains(to(v), from(v)) {\n\t\tt.Errorf(\"%q is not in %q\", from(v), to(v))\n\t}\n}\n\nvar all = []says{")
	for _, p := range f.Modules {
		b.WriteString(p.ID + ".Of, ")
	}
	b.WriteString("}\n")
	f.edges(func(from, to string) {
		fmt.Fprintf(&b, "\nfunc %s(t *testing.T) { check(t, %s.Of, %s.Of) }\n", f.Probe(from, to), from, to)
	})
	return map[string]string{"promises/doc.go": "// Package promises holds what modules promise each other.\npackage promises\n", "promises/promises_test.go": b.String()}
}

func (f Feature) edges(each func(from, to string)) {
	for _, p := range f.Modules {
		for _, n := range p.Needs {
			each(n, p.ID)
		}
	}
}

// tape is what is said by the feature's model.
type tape struct {
	strings.Builder
	minute time.Duration
}

func (t *tape) section(name string, minutes float64, text string) {
	fmt.Fprintf(t, "-- %s --\n", name)
	if d := time.Duration(minutes * float64(t.minute)); d > 0 {
		fmt.Fprintf(t, "@takes %s\n", d)
	}
	t.WriteString(text)
}

func write(path, content string) string {
	return fmt.Sprintf(">>> write\npath: %s\ncontent: %q\n", path, content)
}

const noFindings = ">>> submit\nsummary: Right.\nrisk: 1\nfindings: []\n"

// Tape is the feature's model.
func (f Feature) Tape() string {
	t := &tape{minute: f.Minute}
	f.plan(t)
	contract, whole, files := "", "", f.contract()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		contract += write(name, files[name])
	}
	for _, p := range f.Modules {
		contract += write(f.file(p), f.source(p, stub))
		f.build(t, p)
		if !slices.Contains(f.Left, p.ID) {
			whole += fmt.Sprintf("{id: AC-%s, met: true, evidence: its test}, ", p.ID)
		}
	}
	t.section("contract 0/1", 0, contract)
	t.section("contract 0/2", 0, ">>> submit\nsummary: Lay down what they are called\n")
	t.section("implementer 1/1", f.Whole, write("all/doc.go", "// Package all stands for all of them.\npackage all\n"))
	t.section("implementer 1/2", 0, ">>> submit\nsummary: Put them together\n")
	t.section("compliance */1", 0, ">>> submit\ncriteria: ["+whole+"{id: AC-all, met: true, evidence: all/doc.go}]\n")
	if f.Finding == "" {
		t.section("quality */1", 0, noFindings)
		return t.String()
	}
	i := slices.IndexFunc(f.Modules, func(p Piece) bool { return p.ID == f.Finding })
	t.section("quality 1/1", 0, fmt.Sprintf(">>> submit\nsummary: One thing is wrong.\nrisk: 30\nfindings: "+
		"[{severity: error, category: correctness, message: It speaks in other words than were asked for, file: %s, line: %d, confidence: 0.9}]\n", f.file(f.Modules[i]), f.line()))
	t.section("quality 2/1", 0, noFindings+"rulings: [{id: F1, verdict: fixed, why: it speaks as asked}]\n")
	return t.String()
}

func (f Feature) plan(t *tape) {
	var criteria, modules, promises strings.Builder
	for _, p := range f.Modules {
		test, _ := f.test(p)
		fmt.Fprintf(&criteria, "  - {id: AC-%s, text: %[1]s says who it is}\n", p.ID)
		fmt.Fprintf(&modules, "  - {id: %s, title: Piece %[1]s, summary: what it says, size: L, steps: [write it], paths: [\"%[1]s/**\", %[2]s], criteria: [AC-%[1]s], needs: [%[3]s]}\n",
			p.ID, test, strings.Join(p.Needs, ", "))
	}
	f.edges(func(from, to string) {
		fmt.Fprintf(&promises, "  - {id: P-%s-%s, from: %[1]s, to: [%[2]s], text: %[2]s says what %[1]s says, probe: %[3]s}\n", from, to, f.Probe(from, to))
	})
	text := ">>> submit\nsummary: Pieces beside each other\nsteps: [the pieces]\ncriteria:\n" + criteria.String() + "  - {id: AC-all, text: there is a place for all}\nmodules:\n" + modules.String()
	if promises.Len() > 0 {
		text += "promises:\n" + promises.String()
	}
	t.section("planner 0/1", 0, text+"contract: ["+strings.Join(slices.Sorted(maps.Keys(f.contract())), ", ")+"]\nintegration: [AC-all]\nwiring: [all/doc.go]\n")
}

// build is a piece's own loop.
func (f Feature) build(t *tape, p Piece) {
	in := func(section string, minutes float64, text string) { t.section(p.ID+"/"+section, minutes, text) }
	done := ">>> submit\nsummary: Write it\n"
	made := func(state int) string { return write(f.file(p), f.source(p, state)) }
	again := func(n int, minutes float64, expect string, state int, answers, review string) { // a later iteration
		in(fmt.Sprintf("implementer %d/1", n), minutes, "@expect "+expect+"\n"+made(state))
		in(fmt.Sprintf("implementer %d/2", n), 0, done+answers)
		in(fmt.Sprintf("quality %d/1", n), 0, review)
	}
	in("compliance */1", 0, fmt.Sprintf(">>> submit\ncriteria: [{id: AC-%s, met: true, evidence: its test}]\n", p.ID))
	begin := "implementer 1/"
	if p.Asks {
		in("implementer 1/1", 0, ">>> submit\nsummary: Nothing yet\nunable: Large or small letters?\n")
		begin = "implementer 1@2/"
	}
	first, minutes, n := right, p.Minutes, 2
	const wordGone = "addressed: [{id: T1, what: the word is gone}]\n"
	switch {
	case p.Wrong:
		first, minutes, n = wrong, p.Minutes/3, 4
		again(2, minutes, "Leave the word wrong out", unsaid, wordGone, fmt.Sprintf(">>> submit\nsummary: It is not said what it is.\nrisk: 20\nfindings: "+
			"[{severity: error, category: maintainability, message: There is no comment any more, file: %s, line: %d, confidence: 0.9}]\n", f.file(p), f.line()-1))
		again(3, minutes, "There is no comment any more", right, "addressed: [{id: F1, what: it has one}, {id: T1, what: the word is gone}]\n",
			noFindings+"rulings: [{id: F1, verdict: fixed, why: it has one}]\n")
	case p.Fails:
		first, n = wrong, 3
		again(2, 0, "Leave the word wrong out", right, wordGone, noFindings)
	case p.Breaks && p.Unsure: // nothing more is known of it
		first = silent
	case p.Breaks:
		first, n = silent, 3
		again(2, 0, "the test of what this module promises to it fails", right, "addressed: [{id: F1, what: it says it to others, too}]\n",
			noFindings+"rulings: [{id: F1, verdict: fixed, why: it says it to others in "+f.file(p)+", too}]\n")
	}
	if p.Wrong || p.Fails {
		confidence := 0.95
		if p.Unsure {
			confidence = 0.3
		}
		in("tester */1", 0, fmt.Sprintf(">>> submit\nfailures:\n  - {id: T1, cause: logic, analysis: It says wrong first., confidence: %.2f, "+
			"fix: {description: Leave the word wrong out}}\n", confidence))
	}
	in("quality 1/1", 0, noFindings)
	in(begin+"1", minutes, made(first)+write(f.test(p)))
	in(begin+"2", 0, done)
	if p.ID == f.Finding {
		rulings := "{id: F1, verdict: fixed, why: it speaks as asked in " + f.file(p) + "}"
		if p.Breaks || p.Wrong { // what was fixed stood on the lines that are others now: it is ruled on anew
			rulings += ", {id: F2, verdict: fixed, why: it speaks as asked in " + f.file(p) + "}"
		}
		again(n, 0, "in other words than were asked for", fixed, "addressed: [{id: F1, what: it speaks as asked}]\n", noFindings+"rulings: ["+rulings+"]\n")
	}
}
