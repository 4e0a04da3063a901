package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/pipeline"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const repo = "repo:octo/river"

// lesson is an active learning; edits change it.
func lesson(id int64, content string, edits ...func(*pipeline.Learning)) pipeline.Learning {
	l := pipeline.Learning{ID: id, Scope: repo, Content: content, Confidence: 0.8, Created: now, Touched: now, State: "active"}
	for _, edit := range edits {
		edit(&l)
	}
	return l
}

func about(paths ...string) func(*pipeline.Learning) {
	return func(l *pipeline.Learning) { l.Paths = paths }
}

func when(context string) func(*pipeline.Learning) {
	return func(l *pipeline.Learning) { l.Context = context }
}

func sure(confidence float64) func(*pipeline.Learning) {
	return func(l *pipeline.Learning) { l.Confidence = confidence }
}

func idle(d time.Duration) func(*pipeline.Learning) {
	return func(l *pipeline.Learning) { l.Created, l.Touched = now.Add(-2*d), now.Add(-d) }
}

func filled(t testing.TB, all ...pipeline.Learning) *Index {
	t.Helper()
	ix := New()
	for _, l := range all {
		if err := ix.Put(l); err != nil {
			t.Fatal(err)
		}
	}
	return ix
}

// reasons renders hits as "ID: why", a line each.
func reasons(hits []Hit) string {
	var b strings.Builder
	for _, h := range hits {
		fmt.Fprintf(&b, "%d: %s\n", h.ID, h.Why)
	}
	return b.String()
}

// Covers L5: what is recalled, in which order and why.
func TestSearch(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, c := range []struct {
		name  string
		have  []pipeline.Learning
		query Query
		want  string
	}{
		{"nothing known", nil, Query{Text: "elector"}, ""},
		{"nothing asked", []pipeline.Learning{lesson(1, "The elector resigns")}, Query{}, ""},
		{"nothing in common", []pipeline.Learning{lesson(1, "The elector resigns")}, Query{Text: "templates"}, ""},
		{"words in other forms", []pipeline.Learning{lesson(1, "Retry the resigning elector"), lesson(2, "Escape templates")},
			Query{Text: "elector resigns, retries"}, "1: words elector, resigns, retries\n"},
		{"identifiers by their parts", []pipeline.Learning{lesson(1, "The client's id must be set"), lesson(2, "Set ClientID early"), lesson(3, "unrelated")},
			Query{Words: []string{"client_id"}}, "2: words client_id, client, id\n1: words client, id\n"},
		{"a rare word beats a common one", []pipeline.Learning{lesson(1, "close the queue"), lesson(2, "drain the queue"),
			lesson(3, "log the queue"), lesson(4, "the elector")},
			Query{Text: "queue elector", Limit: 2}, "4: words elector\n3: words queue\n"},
		{"the folder beats weaker words", []pipeline.Learning{lesson(1, "Elections need a lease", when("when touching internal/leadership")),
			lesson(2, "Elector elector", when("docs")), lesson(3, "other")},
			Query{Paths: []string{"internal/leadership/elector.go"}},
			"1: folder internal/leadership; words internal, leadership\n2: words elector\n"},
		{"the file beats its folder", []pipeline.Learning{lesson(1, "Keep it short", about("cmd/server.go")), lesson(2, "Keep it short", about("cmd/main.go"))},
			Query{Paths: []string{"cmd/server.go"}}, "1: file cmd/server.go; words server, cmd\n2: folder cmd; words cmd\n"},
		{"the top folder", []pipeline.Learning{lesson(1, "Keep the API small", when(".")), lesson(2, "Keep it", when("cmd"))},
			Query{Paths: []string{"./client.go"}}, "1: folder .\n"},
		{"category and tags", []pipeline.Learning{
			lesson(1, "one", func(l *pipeline.Learning) { l.Category = "Security" }),
			lesson(2, "two", func(l *pipeline.Learning) { l.Category = "security"; l.Tags = []string{"sql", "Login"} }), lesson(3, "three")},
			Query{Category: "security", Tags: []string{"login", "SQL"}}, "2: category security; tags login, sql\n1: category security\n"},
		{"confidence weighs", []pipeline.Learning{lesson(1, "Close the body", sure(0.9)), lesson(2, "Close the body", sure(0.4))},
			Query{Text: "body"}, "1: words body\n2: words body\n"},
		{"freshness decides between equals", []pipeline.Learning{lesson(1, "Close the body", idle(day)), lesson(2, "Close the body", idle(400*day))},
			Query{Text: "body", Now: now}, "1: words body\n2: words body\n"},
		{"without a time nothing ages", []pipeline.Learning{lesson(1, "Close the body", idle(day)), lesson(2, "Close the body", idle(400*day))},
			Query{Text: "body"}, "2: words body\n1: words body\n"},
		{"age does not bury the better one", []pipeline.Learning{lesson(1, "Close the body", idle(day)), lesson(2, "Close the response body", idle(4000*day))},
			Query{Text: "response body", Now: now}, "2: words response, body\n1: words body\n"},
		{"what is retired, forgotten or disproved is gone", []pipeline.Learning{
			lesson(1, "body", func(l *pipeline.Learning) { l.State = "retired" }),
			lesson(2, "body", func(l *pipeline.Learning) { l.State = "forgotten" }), lesson(3, "body", sure(0))},
			Query{Text: "body"}, ""},
		{"only the scopes that are asked", []pipeline.Learning{lesson(1, "body"),
			lesson(2, "body", func(l *pipeline.Learning) { l.Scope = "org:octo" }),
			lesson(3, "body", func(l *pipeline.Learning) { l.Scope = "repo:evil/river" })},
			Query{Scopes: []string{"org:octo", repo, repo, "org:none"}, Text: "body"}, "2: words body\n1: words body\n"},
		{"at most ten", many(12), Query{Text: "body"},
			"12: words body\n11: words body\n10: words body\n9: words body\n8: words body\n7: words body\n6: words body\n5: words body\n4: words body\n3: words body\n"},
	} {
		if c.query.Scopes == nil {
			c.query.Scopes = []string{repo}
		}
		if diff := cmp.Diff(c.want, reasons(filled(t, c.have...).Search(c.query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func many(n int) (all []pipeline.Learning) {
	for i := range n {
		all = append(all, lesson(int64(i+1), "body"))
	}
	return all
}

// The score is a figure that the package comment explains; here it is worked out by hand.
func TestScore(t *testing.T) {
	t.Parallel()
	ix := filled(t, lesson(1, "body", sure(0.5), when("cmd"), idle(180*24*time.Hour)), lesson(2, "body body", sure(1)))
	hits := ix.Search(Query{Scopes: []string{repo}, Text: "body", Paths: []string{"cmd/main.go"}, Now: now})
	scores := map[int64]float64{}
	for _, h := range hits {
		scores[h.ID] = h.Score
	}
	// 1 matches best: "body" and "cmd". 2 has "body" twice in a text of 4 words (the
	// first line counts twice) against the mean of 3.5; 1 has it twice in 3.
	if got, want := scores[1], (1.0+1.0)*0.5*0.9; !near(got, want) {
		t.Errorf("score of 1 is %v, want %v", got, want)
	}
	if got := scores[2]; got <= 0 || got >= 1 {
		t.Errorf("score of 2 is %v, want a part of 1", got)
	}
}

func near(a, b float64) bool { return max(a-b, b-a) < 1e-5 }

// A long text costs no more than its 64 weightiest words.
func TestLongQuery(t *testing.T) {
	t.Parallel()
	var common, text []string
	for i := range 100 {
		common = append(common, fmt.Sprintf("word%c%c", 'a'+i/26, 'a'+i%26))
	}
	text = append(slices.Clone(common), "needle")
	ix := filled(t, lesson(1, strings.Join(common, " ")), lesson(2, strings.Join(common, " ")), lesson(3, "needle"))
	terms := (&Query{Text: strings.Join(text, " ")}).terms()
	c := ix.corpus([]string{repo})
	got := c.weigh(terms)
	if len(got) != maxTerms || got[maxTerms-1].term != "needl" || got[0].shown != "wordaa" {
		t.Errorf("%d terms from %v to %v, want %d from the first to the rare one", len(got), got[0], got[len(got)-1], maxTerms)
	}
}

// A learning that is put again is replaced, in another scope too.
func TestReplace(t *testing.T) {
	t.Parallel()
	ix := filled(t, lesson(1, "alpha"), lesson(1, "beta"), lesson(2, "gamma"))
	search := func(scope, text string) string { return reasons(ix.Search(Query{Scopes: []string{scope}, Text: text})) }
	if got := search(repo, "alpha beta"); got != "1: words beta\n" {
		t.Errorf("after a new text: %q", got)
	}
	if err := ix.Put(lesson(1, "beta", func(l *pipeline.Learning) { l.Scope = "org:octo" })); err != nil {
		t.Fatal(err)
	}
	if got := search(repo, "beta") + search("org:octo", "beta"); got != "1: words beta\n" {
		t.Errorf("after a new scope: %q", got)
	}
	if err := ix.Put(lesson(1, "beta", sure(0))); err != nil {
		t.Fatal(err)
	}
	ix.Remove(2)
	ix.Remove(2)
	if ix.Len() != 0 || len(ix.scopes) != 0 {
		t.Errorf("%d learnings and %d scopes are left of nothing", ix.Len(), len(ix.scopes))
	}
}

// A full scope refuses what is new, and what was there can still be changed.
func TestFullScope(t *testing.T) {
	t.Parallel()
	ix := filled(t, lesson(1, "alpha"), lesson(2, "beta"))
	ix.scopes[repo].room = 3
	for _, c := range []struct {
		l    pipeline.Learning
		want string
	}{
		{lesson(3, "gamma"), ""},
		{lesson(4, "delta"), "scope repo:octo/river has 3 learnings"},
		{lesson(2, "epsilon"), ""}, // its old slot is used again
		{lesson(3, "gamma", sure(0)), ""},
		{lesson(4, "delta"), ""},
	} {
		if err := ix.Put(c.l); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Put(%d %s): %v, want %q", c.l.ID, c.l.Content, err, c.want)
		}
	}
	got := reasons(ix.Search(Query{Scopes: []string{repo}, Text: "alpha beta gamma delta epsilon"}))
	if want := "4: words delta\n2: words epsilon\n1: words alpha\n"; got != want {
		t.Errorf("left are %q, want %q", got, want)
	}
}
