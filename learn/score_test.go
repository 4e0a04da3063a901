package learn

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/pipeline"
	"forge/pipeline/text"
)

// signals draws a set of signals with few keys, so that they meet.
func signals(t *rapid.T) []pipeline.Signal {
	kinds := []pipeline.SignalKind{pipeline.SignalDismissed, pipeline.SignalApplied, pipeline.SignalRewritten, pipeline.SignalIgnored,
		pipeline.SignalGap, pipeline.SignalFixedByHuman,
		pipeline.SignalApproved, pipeline.SignalEdited, pipeline.SignalChanges, pipeline.SignalMerged, pipeline.SignalClosed,
		pipeline.SignalReverted, pipeline.SignalEscaped}
	texts := []string{"", "wrap the error with the operation", "check the pointer for nil", "add a test for the empty list"}
	files := []string{"", "api/a.go", "web/b.go"}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) pipeline.Signal {
		pick := func(list []string, name string) string { return rapid.SampledFrom(list).Draw(t, name) }
		s := pipeline.Signal{
			Key: pick([]string{"thread/1", "thread/2", "suggestion/1", "comment/1", "pull/1/edits"}, "key"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			Off: rapid.IntRange(0, 3).Draw(t, "off") == 0, At: day(float64(rapid.IntRange(0, 4).Draw(t, "day"))),
			Scope: pick([]string{scope, scope, "repo:acme/other"}, "scope"),
			Actor: pipeline.Actor{ID: int64(rapid.IntRange(1, 3).Draw(t, "by"))}, Weight: rapid.SampledFrom([]float64{0, 0.3, 1, 1}).Draw(t, "weight"),
			Text: pick(texts, "text"), File: pick(files, "file"), Finding: pick([]string{"", "fp1", "fp2"}, "finding"),
			Before: pick(texts, "before"), After: pick(texts, "after"),
			Waited: rapid.SampledFrom([]int64{0, 3000, 70000}).Draw(t, "waited"),
		}
		if rapid.Bool().Draw(t, "about") {
			s.About = &pipeline.Finding{Category: pipeline.Category(pick([]string{"style", "correctness"}, "category")), Message: pick(texts, "message")}
		}
		return s
	}), 1, 14).Draw(t, "signals")
}

func seeds() []pipeline.Learning {
	return []pipeline.Learning{
		{Key: "a", Scope: scope, Type: pipeline.LearningProcedural, Category: "correctness",
			Content: "wrap the error with the name of the operation", Base: 0.6, Created: day(1), Paths: []string{"api"}},
		{Key: "b", Scope: scope, Type: pipeline.LearningSemantic, Category: "style", Content: "add a test for the empty list", Base: 0.1, Created: day(0)},
		{Key: "c", Scope: "repo:acme/other", Type: pipeline.LearningProcedural, Content: "check the pointer for nil", Base: 0.95, Created: day(0)},
	}
}

// Covers H1–H6: any order and any repetition of the same signals gives the same
// memory, confidence is a share, and when all is taken back nothing is left.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		list := signals(t)
		take := func(list []pipeline.Signal) *Memory {
			m := NewMemory(seeds()...)
			for _, s := range list {
				m.Take(s)
			}
			return m
		}
		one := take(list)
		twice := append(append([]pipeline.Signal{}, list...), rapid.SliceOfN(rapid.SampledFrom(list), 0, 6).Draw(t, "again")...)
		other := take(rapid.Permutation(twice).Draw(t, "order"))
		if diff := cmp.Diff(show(one), show(other)); diff != "" {
			t.Fatalf("-as drawn +in another order:\n%s", diff)
		}
		if diff := cmp.Diff(one.Learnings(), other.Learnings()); diff != "" {
			t.Fatalf("-as drawn +in another order:\n%s", diff)
		}
		for _, l := range one.Learnings() {
			if !(l.Confidence >= 0 && l.Confidence <= 1) || l.Weight < 0 {
				t.Fatalf("%s has the confidence %v", l.Key, l.Confidence)
			}
		}
		for _, s := range list {
			s.Off, s.At = true, day(9)
			one.Take(s)
		}
		if diff := cmp.Diff(show(take(nil)), show(one)); diff != "" {
			t.Fatalf("all was taken back (-nothing +left):\n%s", diff)
		}
	})
}

// Covers lessons 20: decay is computed from the base values, the same however
// often it is read.
func TestEffective(t *testing.T) {
	t.Parallel()
	l := pipeline.Learning{Type: pipeline.LearningSemantic, Confidence: 0.8, Touched: day(0)}
	for _, c := range []struct {
		typ  pipeline.LearningType
		days float64
		want float64
	}{
		{pipeline.LearningSemantic, 0, 0.8}, {pipeline.LearningSemantic, -3, 0.8}, {pipeline.LearningSemantic, 120, 0.6}, {pipeline.LearningSemantic, 240, 0.5},
		{pipeline.LearningEpisodic, 45, 0.6}, {pipeline.LearningProcedural, 180, 0.6}, {"", 45, 0.6},
		{pipeline.LearningEpisodic, 36500, 0.4}, // what is old is not wrong
	} {
		l.Type = c.typ
		before := l
		if got := Effective(l, day(c.days)); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s after %v days: got %v, want %v", c.typ, c.days, got, c.want)
		}
		if diff := cmp.Diff(before, l); diff != "" {
			t.Errorf("reading changed it: %s", diff)
		}
	}
}

// Covers H3 and H4: what kind of change it was, in words.
func TestAnalyse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after, want string
		category            pipeline.Category
	}{
		{"x := load(tmp)", "x := load(timeout)", "renames tmp to timeout", "style"},
		{"a(tmp)\nb(tmp)", "a(t)\nb(t)", "renames tmp to t", "style"},
		{"if err != nil {\n\treturn err\n}", "if err != nil {\n\treturn fmt.Errorf(\"load %s: %w\", n, err)\n}", "wraps the error with its context", "correctness"},
		{"use(p.Name)", "if p == nil {\n\treturn\n}\nuse(p.Name)", "adds a guard clause", "correctness"},
		{"use(p)", "if p is None: raise ValueError\nuse(p)", "adds a guard clause", "correctness"},
		{"f, _ := os.Open(n)", "f, err := os.Open(n)\nif err != nil {\n\treturn err\n}", "checks an error", "correctness"},
		{"wait(30)", "wait(60)", "replaces the literal 30 by 60", "correctness"},
		{`get("/v1/users")`, `get(usersPath)`, `replaces the literal "/v1/users" by the name usersPath`, "style"},
		{"x := 1", "// seconds\nx := 1", "adds a comment", "style"},
		{"// old\nx := 1", "// new\nx := 1", "rewords a comment", "style"},
		{"// old\nx := 1", "x := 1", "removes a comment", "style"},
		{"\tx := 1", "  x := 1\n", "formats the lines in another way", "style"},
		{"f := open()", "f := open()\ndefer f.Close()", "releases what was opened", "correctness"},
		{"n++", "mu.Lock()\nn++\nmu.Unlock()", "guards shared state by a lock", "correctness"},
		{"n++", "n++\nlog.Info(n)", "logs what happens", "style"},
		{"n++\nlog.Info(n)", "n++", "removes logging and removes the code", "style"},
		{"", "func TestX(t *testing.T) {}", "adds a test", "tests"},
		{"a()\nb()\nc()", "all()", "says it in fewer lines (1 for 3)", "style"},
		{"a + b", "a - b", "writes the lines in another way (1 lines for 1)", "style"},
		{"n := total\nreturn n, m, k", "return sum(values), len(values), nil, true\nx := y", "writes the lines in another way (2 lines for 2)", "style"},
	} {
		a := Analyse(c.before, c.after)
		if a.Words() != c.want || a.Category != c.category {
			t.Errorf("Analyse(%q, %q) = %q, %s; want %q, %s", c.before, c.after, a.Words(), a.Category, c.want, c.category)
		}
	}
}

// Covers H5: which kind of thing was missed.
func TestCategoryOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pipeline.Category{
		"This allows SQL injection, escape the input":             "security",
		"Anyone can read this without permission":                 "security",
		"This panics when the list is nil":                        "correctness",
		"You forgot to handle the error here":                     "correctness",
		"O(n²): this allocates in a loop, that is slow":           "performance",
		"Please add a test for the empty case, it is not covered": "tests",
		"nit: rename this, the naming is not consistent":          "style",
		"Duplicate code, please simplify":                         "style",
		"Hmm.":                                                    "correctness",
	} {
		if got := CategoryOf(text); got != want {
			t.Errorf("CategoryOf(%q) = %s, want %s", text, got, want)
		}
	}
}

func FuzzAnalyse(f *testing.F) {
	f.Add("a\nb", "b\nc")
	f.Add("\"", "`\n'")
	f.Fuzz(func(t *testing.T, before, after string) {
		if a := Analyse(before, after); a.Words() == "" || a.Category == "" {
			t.Errorf("Analyse(%q, %q) says nothing", before, after)
		}
		s := pipeline.Signal{Kind: pipeline.SignalRewritten, Key: "k", Scope: scope, Weight: 1, At: day(1), Before: before, After: after, Text: before}
		for _, l := range LearningsFrom(s) {
			if len(l.Content) > 2*maxCode+maxContent || text.Scrub(l.Content) != l.Content && len(before)+len(after) < maxCode {
				t.Errorf("content of %d bytes: %q", len(l.Content), l.Content)
			}
		}
	})
}

func learning(key, content string, more ...func(*pipeline.Learning)) pipeline.Learning {
	l := pipeline.Learning{Key: key, Scope: scope, Type: pipeline.LearningSemantic, Category: "correctness", Content: content, Source: pipeline.SourceReflection,
		Weight: 1, Base: 0.7, Confidence: 0.7, Created: day(0), Touched: day(0), State: pipeline.LearningActive}
	for _, m := range more {
		m(&l)
	}
	return l
}

func dismissedBy(n int64, f pipeline.Finding) pipeline.Learning {
	s := pipeline.Signal{Kind: pipeline.SignalDismissed, Key: fmt.Sprintf("thread/%d", n), Scope: scope, At: day(1),
		Actor:  pipeline.Actor{ID: n, Login: fmt.Sprintf("user%d", n)},
		Weight: 1, Finding: f.Fingerprint, File: f.File, Text: "no", About: &f}
	l := LearningsFrom(s)[0]
	l.ID = n
	return l
}

// Covers lessons 3 and H1.
func TestFilter(t *testing.T) {
	t.Parallel()
	f := pipeline.Finding{Fingerprint: "fp1", Severity: pipeline.SeverityError, Category: "correctness",
		Message: "the returned error is not wrapped", File: "a.go", Code: "return err", Confidence: 0.9}
	with := func(change func(*pipeline.Finding)) pipeline.Finding { g := f; change(&g); return g }
	one := []pipeline.Learning{dismissedBy(1, f)}
	withdrawn := dismissedBy(1, f)
	withdrawn.State = pipeline.LearningWithdrawn
	nobody := dismissedBy(1, f)
	nobody.Author = pipeline.Actor{}
	for _, c := range []struct {
		name    string
		finding pipeline.Finding
		memory  []pipeline.Learning
		want    string // severity it is posted with; "" when held
	}{
		{"nothing known", f, nil, "error"},
		{"dismissed for this code", f, one, ""},
		{"moved and reindented", with(func(f *pipeline.Finding) { f.Line = 99; f.Code = "\t\treturn err\n" }), one, ""},
		{"in other words", with(func(f *pipeline.Finding) {
			f.Fingerprint, f.Message = "fp2", "the error that is returned here is not wrapped"
		}), one, ""},
		{"the code changed", with(func(f *pipeline.Finding) { f.Fingerprint, f.Code = "fp3", "return wrap(err)" }), one, "error"},
		{"the code changed, the same fingerprint", with(func(f *pipeline.Finding) { f.Code = "return wrap(err)" }), one, "error"},
		{"another file", with(func(f *pipeline.Finding) { f.File = "b.go" }), one, "error"},
		{"another thing about the same code", with(func(f *pipeline.Finding) {
			f.Fingerprint, f.Message = "fp4",
				"a deadlock when the channel is full"
		}), one, "error"},
		{"taken back", f, []pipeline.Learning{withdrawn}, "error"},
		{"critical security", with(func(f *pipeline.Finding) { f.Severity, f.Category = "critical", "security" }),
			[]pipeline.Learning{dismissedBy(1, with(func(f *pipeline.Finding) { f.Category = "security" }))}, "critical"},
		{"critical, not security", with(func(f *pipeline.Finding) { f.Severity = "critical" }), one, "critical"},
		{"about security, and it blocks", with(func(f *pipeline.Finding) { f.Category = "security" }),
			[]pipeline.Learning{dismissedBy(1, with(func(f *pipeline.Finding) { f.Category = "security" }))}, "error"},
		{"an error, by nobody who is named", f, []pipeline.Learning{nobody}, "error"},
	} {
		kept, held := Filter([]pipeline.Finding{c.finding}, c.memory, nil)
		got := ""
		if len(kept) == 1 {
			got = string(kept[0].Severity)
		}
		changed := got != string(c.finding.Severity)
		if got != c.want || len(held) == 1 != changed || changed && (held[0].Why == "" || held[0].Finding.Severity != c.finding.Severity) {
			t.Errorf("%s: kept %v, held %+v, want %q", c.name, kept, held, c.want)
		}
	}
}

// Covers L6: what several runs taught becomes one pattern.
func TestConsolidate(t *testing.T) {
	t.Parallel()
	a := learning("a", "Wrap every error with the name of the operation before it is returned",
		func(l *pipeline.Learning) { l.Confidence = 0.9; l.Paths = []string{"x"} })
	b := learning("b", "wrap every error with the name of the operation before it is returned.",
		func(l *pipeline.Learning) { l.Paths, l.Tags = []string{"y"}, []string{"go"} })
	c := learning("c", "Never log a secret")
	bound := learning("d", a.Content, func(l *pipeline.Learning) { l.Code = "1234" })
	elsewhere := learning("e", a.Content, func(l *pipeline.Learning) { l.Scope = "repo:acme/other" })
	gone := learning("f", a.Content, func(l *pipeline.Learning) { l.State = pipeline.LearningRetired })
	got := Consolidate([]pipeline.Learning{c, b, bound, a, elsewhere, gone})
	into := a
	into.Paths, into.Tags = []string{"x", "y"}, []string{"go"}
	if diff := cmp.Diff([]Merge{{Into: into, From: []pipeline.Learning{b}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What several runs taught in other words is one pattern, and surer; what says the
// opposite, or names something else, is not the same.
func TestConsolidatePatterns(t *testing.T) {
	t.Parallel()
	of := func(run int64, content string) pipeline.Learning {
		return learning(fmt.Sprint(run), content, func(l *pipeline.Learning) { l.Run, l.ID = run, run })
	}
	for _, c := range []struct {
		texts []string
		into  int // how many are one pattern
		delta int // how many runs confirm it
	}{
		{[]string{"Run make generate after changing a schema file", "After a schema file changed, run `make generate`"}, 0, 0},
		{[]string{"The integration tests need a running postgres database on the build machine", "A postgres database must run for the integration tests on the build machine",
			"On the build machine integration tests need the postgres database to be running"}, 3, 2},
		{[]string{"Always wrap errors with the name of the operation before they are returned", "Never wrap errors with the name of the operation before they are returned"}, 0, 0},
		{[]string{"The client gives up after 30 seconds when the server does not answer", "The client gives up after 60 seconds when the server does not answer"}, 0, 0},
		{[]string{"Prefer tabs over spaces in the Go templates of pages", "Prefer spaces over tabs in the Go templates of pages"}, 0, 0},
	} {
		var list []pipeline.Learning
		for i, s := range c.texts {
			list = append(list, of(int64(i+1), s))
		}
		merged, evidence := 0, 0
		for _, m := range Consolidate(append(list, list[0])) { // one run's repeat confirms nothing
			if merged = len(m.From); m.From[len(m.From)-1].Run == m.Into.Run || m.From[0].Run == m.Into.Run {
				merged--
			}
			merged++
			for _, e := range m.Evidence {
				evidence++
				if e.Learning != m.Into.ID || e.Run == m.Into.Run || !(e.Delta > 0) {
					t.Errorf("evidence %+v for %+v", e, m.Into)
				}
			}
		}
		if c.into == 0 {
			c.into = 1 // with its own repeat
		}
		if merged != c.into || evidence != c.delta {
			t.Errorf("%q: %d are one pattern, confirmed by %d runs; want %d, %d", c.texts, merged, evidence, c.into, c.delta)
		}
	}
}

// What turns the words round, or is told of another place, is not the same.
func TestConsolidateApart(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"Use UTC for storage and local time for display.", "Use local time for storage and UTC for display."},
		{"Use let in lib/; const is for constants there.", "Do not use let in scripts/; use const, constants are not there."},
		{"Use console.log in tools/ for what people read; the logger is not there.", "Use console.log in src/ for what people read; the logger is not there."},
		{"Reviewers must look at locking in the queue; the cache is safe.", "Reviewers must look at locking in the cache; the queue is safe."},
		{"Call the service before the cache is written.", "Call the cache before the service is written."},
		{"The cache is written before the service is called by the client.", "The cache is written after the service is called by the client."},
		{"Customers may see orders, admins may delete them.", "Admins may see orders, customers may delete them."},
		{"The parser of lib/a.js reads the whole file at once", "The parser of lib/b.js reads the whole file at once"},
		{"The parser calls splitLines and trimEnds for each file of a folder", "The parser calls trimEnds and splitLines for each file of a folder"},
		{"The parser is not called twice and does not close its file", "The parser is called twice and closes its file"},
	} {
		a, b := learning("a", c[0]), learning("b", c[1])
		if got := Consolidate([]pipeline.Learning{a, b}); len(got) != 0 {
			t.Errorf("%q went into one with %q", c[0], c[1])
		}
	}
}

// What a person said goes with the very same words alone, whatever their case and punctuation.
func TestConsolidatePeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Ask for a test of each parser that reads a file.", "Ask for a test of each parser that reads files", false},
		{"Ask for a test of each parser that reads a file.", "ask for a test of each parser, that reads a file!", true},
		{"Ask for a test where i >= 0 in each parser of a file", "Ask for a test where i <= 0 in each parser of a file", false},
	} {
		for _, source := range []pipeline.LearningSource{pipeline.SourceHuman, pipeline.SourceReflection} {
			a, b := learning("a", c.a, func(l *pipeline.Learning) { l.Source = pipeline.SourceHuman }), learning("b", c.b)
			b.Source = source
			if got := Consolidate([]pipeline.Learning{a, b}); len(got) == 1 != c.want {
				t.Errorf("%q, and %q of %s: %d went into one, want %v", c.a, c.b, source, len(got), c.want)
			}
		}
	}
}

// What is told in those repositories alone that share never takes in what all are told.
func TestConsolidateShared(t *testing.T) {
	t.Parallel()
	human := learning("h", "Run make generate after changing a schema file")
	shared := human
	shared.ID, shared.Key, shared.Confidence = human.ID+1, "shared:repo:acme/site/x", 1
	if got := Consolidate([]pipeline.Learning{human, shared}); len(got) != 0 {
		t.Errorf("merged: %+v", got)
	}
}

// What a person remarked, and where, stays in its repository.
func TestRemarksAreNotShared(t *testing.T) {
	t.Parallel()
	var list []pipeline.Learning
	for i, scope := range []string{"repo:acme/a", "repo:acme/b"} {
		s := pipeline.Signal{Key: "gap/1", Kind: pipeline.SignalGap, Scope: scope, Run: int64(i + 1), Weight: 1, At: day(1), File: "billing/secret.go",
			Actor: pipeline.Actor{ID: 1, Login: "ann"}, Text: "You forgot to check the error of the payment"}
		list = append(list, LearningsFrom(s)...)
	}
	if got := Sharing(list, nil, "org:acme"); len(list) != 4 || len(got) != 0 {
		t.Errorf("of %d learnings are shared: %+v", len(list), got)
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Always wrap errors with context", "Never wrap errors with context", true},
		{"Use table-driven tests for parsers", "Do not use table-driven tests for parsers", true},
		{"Don't mock the database in tests", "Mock the database in tests", true},
		{"Prefer errors.Is over string comparison", "Prefer string comparison over errors.Is", false}, // more than one word on a side: not told
		{"Prefer tabs over spaces in Go templates", "Prefer spaces over tabs in Go templates", true},
		{"Always wrap errors with context", "Always wrap an error with context", false},
		{"Never log secrets", "Always close files", false},
		{"Never return without closing the file", "Always close the file when you return", false},
		{"Amounts are stored in cents.", "Amounts aren't stored in cents.", true},
		{"Do not log user names in production.", "Log user names in staging.", false},
		{"Do not use console.log in lib/; use the logger.", "Use console.log in scripts/; the logger is not there.", false},
		{"Avoid early returns in lib/a.js.", "Use early returns in lib/b.js.", false},
		{"Do not write tests for generated code.", "Write tests for code.", false},
		{"Do not forget to close files.", "Close files.", false},
		{"Never call the cache before the service", "Call the service before the cache", false},
		{"Never log before the call", "Log after the call", false},
		{"Never retry a payment.", "Retry a read of a payment.", false},
	} {
		x, y := learning("x", c.a), learning("y", c.b, func(l *pipeline.Learning) { l.Confidence = 0.5 })
		got := Contradictions([]pipeline.Learning{y, x}, day(1))
		if len(got) == 1 != c.want || c.want && (got[0].Weaker.Key != "y" || got[0].Why == "") {
			t.Errorf("%q and %q: %+v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// What holds for some files says nothing of others.
func TestContradictionsOfFiles(t *testing.T) {
	t.Parallel()
	x := learning("x", "Always wrap errors with context", func(l *pipeline.Learning) { l.Paths = []string{"lib/"} })
	y := learning("y", "Never wrap errors with context", func(l *pipeline.Learning) { l.Paths = []string{"cmd/main.go"} })
	if got := Contradictions([]pipeline.Learning{x, y}, day(1)); len(got) != 0 {
		t.Errorf("different files: %+v", got)
	}
	y.Paths = []string{"lib/main.go"}
	if got := Contradictions([]pipeline.Learning{x, y}, day(1)); len(got) != 1 {
		t.Errorf("a folder and a file in it: %+v", got)
	}
}

func TestRetire(t *testing.T) {
	t.Parallel()
	var list []pipeline.Learning
	for i := range 5 {
		list = append(list, learning(fmt.Sprint(i), "text", func(l *pipeline.Learning) { l.ID = int64(i); l.Confidence = 0.5 + float64(i)/10 }))
	}
	list[0].Source = pipeline.SourceHuman // stays, although the weakest
	list[4].Recalled = 50                 // never of use
	list[1].Touched = day(-1000)          // long ago
	binds := learning("d", "dismissed", func(l *pipeline.Learning) { l.Source = pipeline.SourceDismissal; l.Confidence = 0.1 })
	got := Retire(append(list, binds), Effects{3: {Low: -0.4, High: -0.1}, 2: {Low: -0.2, High: 0.3}}, 3, day(1))
	var keys []string
	for _, r := range got {
		keys = append(keys, r.Learning.Key+" "+r.Why)
	}
	want := []string{"1 repo:acme/site holds more than 3, and this one is worth 0.301", "3 runs that were given it did worse: -0.40 to -0.10 approved at first"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	list[3].Source, list[3].Author = pipeline.SourceGap, pipeline.Actor{ID: 1, Login: "ann"}
	harmful := Effects{3: {Low: -0.4, High: -0.1}}
	if got := Retire(list, harmful, 10, day(1)); len(got) != 0 {
		t.Errorf("a person's word is retired: %+v", got)
	}
	if got := Questioned(list, harmful); len(got) != 1 || got[0].Learning.ID != 3 || got[0].Why == "" {
		t.Errorf("questioned: %+v, want what the person said", got)
	}
	if got := Retire(list, nil, 10, time.Time{}); len(got) != 0 {
		t.Errorf("nothing is over its limit, yet %v", got)
	}
}

// A defect that escaped lowers the dismissal that hid it and what asks for less of the
// kind, raises what asks for more, and bears a learning that holds no words of monitors;
// taken back, nothing of it is left.
func TestEscaped(t *testing.T) {
	t.Parallel()
	finding := &pipeline.Finding{Category: "correctness", Rule: "nil-check", Message: "check the pointer for nil before the cart is added up"}
	dismissed := pipeline.Signal{Key: "dismissed/1", Kind: pipeline.SignalDismissed, At: day(1), Weight: 1, Scope: scope, Finding: "fp1",
		File: "cart/cart.go", Text: "it is never nil", About: finding, Actor: pipeline.Actor{ID: 1}}
	s := pipeline.Signal{Key: "incident/9/escaped", Kind: pipeline.SignalEscaped, At: day(3), Weight: 1, Scope: scope, Pull: 42, Run: 7,
		Finding: "fp1", File: "cart/cart.go", About: finding}
	m := NewMemory(
		pipeline.Learning{Key: "more", Scope: scope, Type: pipeline.LearningSemantic, Tags: []string{StandAsk.Tag()},
			Content: "Always check the pointer for nil before it is added up", Base: 0.5, Created: day(0)},
		pipeline.Learning{Key: "less", Scope: scope, Type: pipeline.LearningSemantic, Tags: []string{StandAvoid.Tag()},
			Content: "Do not ask to check the pointer for nil before the cart is added up", Base: 0.5, Created: day(0)},
		pipeline.Learning{Key: "other", Scope: scope, Type: pipeline.LearningSemantic, Content: "Add a test for the empty list",
			Category: "testing", Base: 0.5, Created: day(0)},
	)
	m.Take(dismissed)
	before := confidences(m)
	m.Take(s)
	got := confidences(m)
	for key, want := range map[string]float64{"dismissal:dismissed/1": -0.4, "more": +0.1, "less": -0.1, "other": 0} {
		if d := got[key] - before[key]; math.Abs(d-want) > 1e-9 {
			t.Errorf("%s: %+.2f, want %+.2f", key, d, want)
		}
	}
	born := LearningsFrom(s)
	if len(born) != 1 || got[born[0].Key] == 0 || Stands(&born[0]) != StandAsk {
		t.Fatalf("%+v", born)
	}
	s.Off, s.At = true, day(4)
	m.Take(s)
	if after := confidences(m); len(after) != len(before) || math.Abs(after["more"]-before["more"]) > 1e-9 ||
		math.Abs(after["dismissal:dismissed/1"]-before["dismissal:dismissed/1"]) > 1e-9 {
		t.Errorf("taken back: %v, before %v", after, before)
	}
}

func confidences(m *Memory) map[string]float64 {
	out := map[string]float64{}
	for _, l := range m.Learnings() {
		if l.State == pipeline.LearningActive {
			out[l.Key] = l.Confidence
		}
	}
	return out
}
