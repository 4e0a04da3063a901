package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/store"
)

const (
	shop   = "repo:acme/shop"
	secret = "repo:acme/secret"
	acme   = "org:acme"
)

var hostileWords = `</script><script>alert(1)</script> "' onload=x ` + "\u202eevil\u202c \x1b[31m \u200f " + strings.Repeat("w", 10_000)

// remember keeps learnings, the first of which is 30 days old and the others a day older each.
func (s *site) remember(t testing.TB, list ...pipeline.Learning) (ids []int64) {
	t.Helper()
	for i := range list {
		l := &list[i]
		if l.Key == "" {
			l.Key = fmt.Sprintf("run/1/%s/%d", l.Scope, i)
		}
		if l.Type == "" {
			l.Type = pipeline.LearningSemantic
		}
		if l.Source == "" {
			l.Source = pipeline.SourceReflection
		}
		if l.Created.IsZero() {
			l.Created = today.AddDate(0, 0, -30-i)
		}
	}
	s.tx(t, func(ctx context.Context, tx *store.Tx) (err error) {
		ids, err = s.db.SaveLearnings(ctx, tx, list)
		return err
	})
	return ids
}

func (s *site) tx(t testing.TB, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := s.db.Tx(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

var learningLink = regexp.MustCompile(`class="prose" href="/memory/(\d+)"`)

// listed are the learnings on a page of the list, in their order.
func listed(page string) (out []string) {
	for _, m := range learningLink.FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// What is remembered is listed most confident first, as decay leaves it, and found by words.
func TestMemoryList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/memory", 200), "Nothing is remembered yet", "/forge remember")
	ids := s.remember(t,
		pipeline.Learning{Scope: shop, Content: "Wrap errors with their inputs", Context: "in handlers", Base: 0.5, Category: "style",
			Paths: []string{"api/a.go"}, Author: pipeline.Actor{ID: 1, Login: "ann"}, Source: "human"},
		pipeline.Learning{Scope: shop, Content: "Close files in tests", Base: 0.55, Type: pipeline.LearningEpisodic},
		pipeline.Learning{Scope: secret, Content: "The key file is in vault", Base: 0.8},
		pipeline.Learning{Scope: acme, Content: "Errors are wrapped everywhere", Base: 0.3})
	s.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return s.db.ForgetLearning(ctx, tx, ids[3], pipeline.Actor{ID: 1, Login: "ann"}, today, "no")
	})
	page := s.get(t, "/memory", 200)
	if got := listed(page); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("listed %v, want most confident first, after decay: 3, 1, 2", got)
	}
	has(t, page, "1 to 3 of 3", "fact or rule, style", "from the words of a person, ann", "<code>api/a.go</code>", `value="0.460"`,
		">0.46</meter> 0.46", "not given to an agent yet", "-rel=\"next\"", "-forgotten</span>")
	has(t, s.get(t, "/memory?state=forgotten", 200), "Errors are wrapped", "-Close files")
	has(t, s.get(t, "/memory?state=all", 200), "1 to 4 of 4", "Errors are wrapped", "Close files")
	has(t, s.get(t, "/memory?type=episodic", 200), "Close files", "-Wrap errors")
	has(t, s.get(t, "/memory?category=style&repo=acme/shop", 200), "Wrap errors", "-Close files")
	has(t, s.get(t, "/memory?category=old", 200), "Nothing that is remembered fits", `<option value="old" selected>`)
	has(t, s.get(t, "/memory?q=files+vault", 200), "What fits best first: 1 to 2 of 2", "Close files", "key file", "-Wrap errors")
	has(t, s.get(t, "/memory?q=errors&type=episodic", 200), "Nothing that is remembered fits")
	has(t, s.get(t, "/memory?q=errors&state=forgotten", 200), "in what is in use")
	has(t, s.get(t, "/memory?q="+url.QueryEscape(hostileWords), 200), "Nothing that is remembered fits", "-<script>alert")
	has(t, s.get(t, "/memory?repo=acme/shopp", 404), "Did you mean acme/shop?")
	has(t, s.get(t, "/memory?repo=org:acme&state=all", 200), "Errors are wrapped", "-Close files")
	has(t, s.get(t, "/memory?skip=9", 200), "There are 3 only")
	for _, bad := range []string{"type=x", "state=x", "skip=x", "skip=-1", "skip=99999999999999999999"} {
		s.get(t, "/memory?"+bad, 400)
	}
}

// A memory of many pages can be gone through: each learning is on one of them.
func TestMemoryPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var list []pipeline.Learning
	for i := range 2*memoriesShown + 7 {
		list = append(list, pipeline.Learning{Scope: shop, Content: fmt.Sprintf("Learnt thing %d", i), Base: float64(i%7) / 10})
	}
	s.remember(t, list...)
	for _, start := range []string{"/memory?repo=acme%2Fshop", "/memory?q=thing"} {
		seen, at, pages := map[string]bool{}, start, 0
		for at != "" {
			page := s.get(t, at, 200)
			for _, id := range listed(page) {
				seen[id] = true
			}
			pages++
			m := regexp.MustCompile(`href="(\?[^"]*)" rel="next"`).FindStringSubmatch(page)
			if at = ""; m != nil {
				at = "/memory" + strings.ReplaceAll(m[1], "&amp;", "&")
			}
		}
		if len(seen) != len(list) || pages != 3 {
			t.Errorf("%s: %d learnings on %d pages, want %d on 3", start, len(seen), pages, len(list))
		}
	}
	has(t, s.get(t, fmt.Sprintf("/memory?skip=%d", memoriesShown), 200), `href="?" rel="prev"`, "51 to 100 of 107")
}

// What is remembered of an organisation is seen by those who see every repository of
// it that Forge has runs in.
func TestSeesScope(t *testing.T) {
	t.Parallel()
	repos := []string{"acme/secret", "acme/shop", "other/x"}
	for _, c := range []struct {
		sees  []string // nil: everything
		scope string
		repos []string
		want  bool
	}{
		{nil, acme, repos, true}, {nil, "org:nobody", repos, true}, {nil, "odd", repos, true},
		{[]string{"acme/shop"}, shop, repos, true}, {[]string{"acme/shop"}, secret, repos, false}, {[]string{"acme/new"}, "repo:acme/new", repos, true},
		{[]string{"acme/shop"}, acme, repos, false}, {[]string{"acme/shop", "acme/secret"}, acme, repos, true},
		{[]string{"acme/shop", "acme/secret"}, "org:ACME", repos, true},
		{[]string{"acme/shop"}, "org:nobody", repos, false}, {[]string{}, acme, nil, false}, {[]string{}, "org:", repos, false}, {[]string{"x"}, "x", repos, false},
		{[]string{"acme-labs/x"}, acme, []string{"acme-labs/x"}, false},
	} {
		if got := seesScope(person{repos: c.sees}, c.scope, c.repos); got != c.want {
			t.Errorf("who sees %v sees %s: %v, want %v", c.sees, c.scope, got, c.want)
		}
	}
}

// Who does not see a repository finds nothing of what is remembered of it, nor can
// they tell whether there is anything.
func TestMemoryOfOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean", "weighed") // runs in acme/shop and acme/secret
	s.remember(t, pipeline.Learning{Scope: shop, Content: "Ours", Base: 0.5}, pipeline.Learning{Scope: secret, Content: "Theirs", Base: 0.5},
		pipeline.Learning{Scope: acme, Content: "Of all", Base: 0.5})
	s.viewer = person{login: "eve", repos: []string{"acme/shop"}}
	has(t, s.get(t, "/memory?state=all", 200), "Ours", "-Theirs", "-Of all", "-secret", "-org:acme")
	has(t, s.get(t, "/memory?q=ours+theirs+all", 200), "Ours", "-Theirs", "-Of all")
	has(t, s.get(t, "/memory?repo=acme/secret", 404), "-Did you mean")
	gone := s.get(t, "/memory/99", 404)
	for _, id := range []string{"2", "3"} {
		for _, at := range []string{"/memory/" + id, "/memory/" + id + "/edit", "/memory/" + id + "/forget"} {
			if page := s.get(t, at, 404); page != gone {
				t.Errorf("%s differs from what is not there", at)
			}
		}
		s.post(t, "/memory/"+id+"/edit", "content=x", 404)
		s.post(t, "/memory/"+id+"/forget", "why=x", 404)
	}
	s.get(t, "/memory/x", 404)
	s.viewer = person{repos: []string{}}
	has(t, s.get(t, "/memory", 200), "Nothing is remembered yet", "-Ours")
	s.viewer = person{repos: []string{"acme/shop", "acme/secret"}, writes: []string{"acme/shop"}}
	has(t, s.get(t, "/memory", 200), "Ours", "Theirs", "Of all")
	s.get(t, "/memory/1/edit", 200)
	has(t, s.get(t, "/memory/2/edit", 403), "takes write access to acme/secret")
	has(t, s.get(t, "/memory/3/edit", 403), "every repository of acme that Forge knows")
	s.post(t, "/memory/3/forget", "why=x", 403)
	s.viewer.writes = nil
	s.get(t, "/memory/3/edit", 200)
	s.remember(t, pipeline.Learning{Scope: "repo:acme/imported", Content: "Known by memory alone", Base: 0.5})
	s.get(t, "/memory/3", 200)
	has(t, s.get(t, "/memory/3/edit", 403), "-imported")
	s.remember(t, pipeline.Learning{Scope: "org:empty", Content: "Nobody's", Base: 0.5})
	s.viewer = person{}
	s.get(t, "/memory/5/edit", 403) // no repository says who may
}

// All that is known of a learning is on its page: what speaks for it, who changed it,
// and what it did.
func TestLearningPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "weighed", "clean")
	ann, bob := pipeline.Actor{ID: 1, Login: "ann"}, pipeline.Actor{ID: 2, Login: "bob"}
	ids := s.remember(t,
		pipeline.Learning{Scope: shop, Content: "Wrap errors", Context: "in Go", Base: 0.6, Run: 1, Source: pipeline.SourceDismissal,
			Finding: "fp9", Author: ann, Weight: 0.8, Tags: []string{"rule:x"}},
		pipeline.Learning{Scope: shop, Content: "Wrap all errors", Base: 0.5})
	s.tx(t, func(ctx context.Context, tx *store.Tx) error {
		at := func(days int) time.Time { return today.AddDate(0, 0, days) }
		if err := s.db.ApplyEvidence(ctx, tx, shop, []pipeline.Evidence{
			{Learning: ids[0], Key: "a", Delta: 0.1, Why: "ann applied it", Actor: ann, Run: 1, At: at(-20)},
			{Learning: ids[0], Key: "b", Delta: -0.2, Why: "bob refused", Actor: bob, Run: 2, At: at(-10)},
			{Learning: ids[0], Key: "c", Delta: -0.2, Why: "eve refused", Run: 1, At: at(-9), Off: true}}); err != nil {
			return err
		}
		for i, used := range []bool{true, false} {
			r := pipeline.Recall{Phase: pipeline.PhaseReview, Iteration: i + 1, Role: "reviewer", Given: ids[:1]}
			if used {
				r.Used = ids[:1]
			}
			if err := s.db.RecordRecall(ctx, tx, 1, r, at(-5)); err != nil {
				return err
			}
		}
		if err := s.db.RecordRecall(ctx, tx, 2, pipeline.Recall{Phase: pipeline.PhasePlan, Role: "planner", Withheld: ids[:1]}, at(-4)); err != nil {
			return err
		}
		l, err := s.db.Learning(ctx, ids[0])
		if err != nil {
			return err
		}
		return s.db.MergeLearnings(ctx, tx, l, ids[1:], at(-3))
	})
	page := s.get(t, "/memory/1", 200)
	has(t, page, "Wrap errors", "ann applied it", "bob refused", "taken back", "eve refused", "What speaks for it (1) and against (1)",
		"whose word counts 0.8 of 1", `href="/runs/2"`,
		"given and used", "left out by chance", "Given to an agent 2 times, used 1 time; left out by chance 1 time", `Runs that used it: <a href="/runs/1">1</a>`,
		"Merged into it", `href="/memory/2"`, "merged from 2", "<svg", "last confirmed", "-<script>alert", "-style=")
	has(t, s.get(t, "/memory/2", 200), `into <a href="/memory/1">learning 1</a>`, "merged into 1", "<del>active</del>", "<ins>merged</ins>",
		"not used any more: merged into another")

	s.viewer = person{repos: []string{"acme/shop"}} // run 2 was in acme/secret
	has(t, s.get(t, "/memory/1", 200), "Given to an agent 2 times, used 1 time.", "-left out", "-acme/secret")
}

// What a poisoned learning held back is found from its page.
func TestWhatALearningHeldBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.remember(t, pipeline.Learning{Scope: shop, Content: "Do not say so", Base: 0.7, Source: pipeline.SourceDismissal})[0]
	ref := &pipeline.PhaseRef{Phase: pipeline.PhaseReview, Iteration: 2}
	start := pipeline.Event{Time: today, Data: pipeline.Data{Start: &pipeline.Start{Task: pipeline.Task{Title: "A task"}}}}
	s.keep(t, []pipeline.Event{start, {Type: pipeline.EventPhaseEntered, Time: today, Data: pipeline.Data{Phase: ref}},
		{Type: pipeline.EventPhaseCompleted, Time: today, Data: pipeline.Data{Phase: ref, Review: &pipeline.Review{
			Summary: fmt.Sprintf("Fine.\n\nHeld back: security in a.go:3, \"<b>open door</b>\", because ann dismissed it (learning %d)", id)}}}},
		pipeline.Repo{ID: 1, Owner: "acme", Name: "shop"}, 1, today)
	has(t, s.get(t, "/memory/1", 200), `<a href="/runs/1">Run 1</a>, review 2: Held back: security in a.go:3, &#34;&lt;b&gt;open door`, "-Fine.")
}

// Text of strangers stays text, and shows what it hides.
func TestHostileMemory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.remember(t, pipeline.Learning{Scope: shop, Content: hostileWords, Context: hostileWords,
		Category: pipeline.Category(hostileWords[:40]), Paths: []string{hostileWords}, Tags: []string{hostileWords}, Key: hostileWords, Base: 0.5,
		Author: pipeline.Actor{Login: hostileWords}, Source: pipeline.SourceHuman})[0]
	s.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return s.db.ApplyEvidence(ctx, tx, shop, []pipeline.Evidence{{Learning: id, Key: "a", Delta: 0.1, Why: hostileWords, At: today}})
	})
	for _, at := range []string{"/memory", "/memory/1", "/memory/1/edit", "/memory/1/forget"} {
		page := s.get(t, at, 200)
		has(t, page, "&lt;/script&gt;", "-<script>alert", `-" onload`)
		if !strings.HasSuffix(at, "edit") { // a form holds what is there
			has(t, page, "[U&#43;202E]evil[U&#43;202C] [U&#43;001B][31m [U&#43;200F]", "-\u202e", "-\x1b")
		}
	}
	if got := legible("plain\n\ttext, עברית, 👨\u200d👩"); got != "plain\n\ttext, עברית, 👨\u200d👩" {
		t.Errorf("legible changed what hides nothing: %q", got)
	}
}

// Covers lessons 20: people can mend a learning, it is kept who did and what was before.
func TestEditLearning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.remember(t, pipeline.Learning{Scope: shop, Content: "Wrap errors", Context: "in Go", Paths: []string{"a.go", "b.go"},
		Tags: []string{"go"}, Category: "style", Base: 0.5})
	page := s.get(t, "/memory/1/edit", 200)
	has(t, page, "\nWrap errors</textarea>", "\na.go\nb.go</textarea>", `<option value="style" selected>`)
	seen := regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(page)[1]
	form := func(version string) url.Values {
		return url.Values{"version": {version}, "content": {"Wrap errors"}, "context": {"in Go"}, "category": {"style"},
			"paths": {"a.go\r\nb.go"}, "tags": {"go\r\n"}}
	}
	notes, end := s.pages.live.listen()
	defer end()
	s.send(t, "/memory/1/edit", form(seen).Encode(), 303)
	has(t, s.get(t, "/memory/1", 200), "Nobody has changed it")

	// What is not taken comes back, with the reason.
	for _, c := range []struct{ field, value, says string }{
		{"content", " ", "without words"}, {"content", strings.Repeat("long ", 2000), "10000 bytes, over 2000"}, {"category", "taste", "no category"},
		{"paths", strings.Repeat("x\n", 60), "over 50"}, {"tags", strings.Repeat("x", 301), "301 bytes"},
	} {
		f := form(seen)
		f.Set("context", "what I wrote <b>")
		f.Set(c.field, c.value)
		has(t, s.send(t, "/memory/1/edit", f.Encode(), 422), "Not saved", c.says, "what I wrote &lt;b&gt;", strings.TrimSpace(c.value))
	}
	s.send(t, "/memory/1/edit", url.Values{"content": {strings.Repeat("x", maxForm)}}.Encode(), 400)
	if len(notes) != 0 {
		t.Errorf("%d notes although nothing was changed", len(notes))
	}

	s.viewer = person{login: "bob"}
	f := form(seen)
	f.Set("content", "Wrap all errors; the token is ghp_"+strings.Repeat("a", 36))
	f.Set("paths", "c.go")
	if to := s.post(t, "/memory/1/edit", f.Encode(), 303); to != "/memory/1" {
		t.Errorf("sent to %s", to)
	}
	if n := <-notes; n != (note{"memory", "acme/shop"}) {
		t.Errorf("told of %+v", n)
	}
	page = s.get(t, "/memory/1", 200)
	has(t, page, "Wrap all errors; the token is [secret]", "-ghp_", "<del>Wrap errors</del>", "<del>a.go\nb.go</del> <ins>c.go</ins>", "by bob (5)")
	history, err := s.db.History(t.Context(), 1)
	if err != nil || len(history) != 1 || history[0].By != (pipeline.Actor{ID: 5, Login: "bob"}) || !history[0].At.Equal(today) {
		t.Errorf("history %+v, %v", history, err)
	}

	// Ann's form is of before that: both texts are shown, and nothing is lost.
	s.viewer = person{login: "ann"}
	f = form(seen)
	f.Set("content", "Ann's words")
	page = s.send(t, "/memory/1/edit", f.Encode(), 409)
	has(t, page, "Not saved", "bob changed it meanwhile", "Wrap all errors; the token is [secret]", "\nAnn&#39;s words</textarea>", `-value="`+seen+`"`)
	f.Set("version", regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(page)[1])
	s.send(t, "/memory/1/edit", f.Encode(), 303)
	has(t, s.get(t, "/memory/1", 200), "Ann&#39;s words")
}

// Of many who save at the same time, one is taken; evidence in between is no conflict.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.remember(t, pipeline.Learning{Scope: shop, Content: "Wrap errors", Base: 0.5})[0]
	l, err := s.db.Learning(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	seen := version(&l)
	s.tx(t, func(ctx context.Context, tx *store.Tx) error {
		return s.db.ApplyEvidence(ctx, tx, shop, []pipeline.Evidence{{Learning: id, Key: "a", Delta: 0.1, At: today}})
	})
	codes := make(chan int)
	for i := range 8 {
		go func() {
			form := url.Values{"version": {seen}, "content": {fmt.Sprint("Words ", i)}}
			r := httptest.NewRequest(http.MethodPost, "/memory/1/edit", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			s.router.ServeHTTP(w, r)
			codes <- w.Code
		}()
	}
	count := map[int]int{}
	for range 8 {
		count[<-codes]++
	}
	if count[303] != 1 || count[409] != 7 {
		t.Errorf("answers %v, want one 303 and seven 409", count)
	}
	if history, err := s.db.History(t.Context(), id); err != nil || len(history) != 1 {
		t.Errorf("%d changes, %v", len(history), err)
	}
}

// Forgetting is asked about first, and is for good.
func TestForgetLearning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.remember(t, pipeline.Learning{Scope: shop, Content: "Wrap errors", Base: 0.5})
	page := s.get(t, "/memory/1/forget", 200)
	has(t, page, "Forget this?", "Wrap errors", "Keep it")
	seen := regexp.MustCompile(`name="version" value="(\w+)"`).FindStringSubmatch(page)[1]
	has(t, s.send(t, "/memory/1/forget", url.Values{"version": {"old"}, "why": {"my reason"}}.Encode(), 409), "Somebody else changed it", "my reason")
	has(t, s.send(t, "/memory/1/forget", url.Values{"version": {seen}, "why": {strings.Repeat("x", 2001)}}.Encode(), 422), "say it shorter", "xxx</textarea>")
	s.send(t, "/memory/1/forget", url.Values{"version": {seen}, "why": {"we left\r\nGo\u202e"}}.Encode(), 303)
	page = s.get(t, "/memory/1", 200)
	has(t, page, "forgotten: we left\nGo</b>", "-/memory/1/edit", "not used any more: forgotten", "by ann (5)")
	s.get(t, "/memory/1/edit", 409)
	s.get(t, "/memory/1/forget", 409)
	s.send(t, "/memory/1/forget", url.Values{"version": {seen}}.Encode(), 303)
	s.send(t, "/memory/1/edit", url.Values{"version": {seen}, "content": {"again"}}.Encode(), 409)
	if history, err := s.db.History(t.Context(), 1); err != nil || len(history) != 1 {
		t.Errorf("%d changes, %v", len(history), err)
	}
	s.viewer = person{writes: []string{}}
	s.post(t, "/memory/1/forget", "why=x", 403)
}

// Covers lessons 20: the line of a learning's confidence ends where reading it does,
// whatever happened to it.
func TestCourse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ago := func(name string) time.Time {
			return today.Add(-time.Duration(rapid.Int64Range(0, int64(400*24*time.Hour)).Draw(t, name)))
		}
		share := func(name string) float64 { return float64(rapid.IntRange(0, 100).Draw(t, name)) / 100 }
		l := pipeline.Learning{Created: ago("created"), Base: share("base"), Type: rapid.SampledFrom(memoryTypes).Draw(t, "type"), State: pipeline.LearningActive}
		var evidence []pipeline.Evidence
		for range rapid.IntRange(0, 6).Draw(t, "evidence") {
			evidence = append(evidence, pipeline.Evidence{Delta: share("delta") - 0.5, At: ago("at"), Off: rapid.Bool().Draw(t, "off")})
		}
		var history []store.MemoryChange
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			history = append(history, store.MemoryChange{At: ago("edit")})
		}
		slices.SortFunc(history, func(a, b store.MemoryChange) int { return a.At.Compare(b.At) })
		for i := range history {
			before, _ := json.Marshal(l)
			l.Base, l.Type = share("new base"), rapid.SampledFrom(memoryTypes).Draw(t, "new type")
			after, _ := json.Marshal(l)
			history[i].Before, history[i].After = string(before), string(after)
		}
		l.Weigh(evidence)
		var uses []store.Use
		for range rapid.IntRange(0, 3).Draw(t, "uses") {
			u := store.Use{At: ago("use"), Used: rapid.Bool().Draw(t, "used")}
			if uses = append(uses, u); u.Used && u.At.After(l.Touched) {
				l.Touched = u.At
			}
		}
		steps, line := confidenceHistory(l, evidence, history, uses, today)
		want := learn.Effective(l, today)
		if last := line[len(line)-1]; math.Abs(last.left-want) > 1e-9 || !last.at.Equal(today) {
			t.Fatalf("the line ends with %v at %v, want %v", last.left, last.at, want)
		}
		if last := steps[len(steps)-1]; last.At.After(today) || len(steps) < 1+len(evidence)+len(history) {
			t.Fatalf("%d steps of %d pieces of evidence and %d changes", len(steps), len(evidence), len(history))
		}
		for i, p := range line {
			if p.left < 0 || p.left > 1 || i > 0 && p.at.Before(line[i-1].at) {
				t.Fatalf("point %d of the line: %+v", i, p)
			}
		}
	})
}

// A line shows rises, falls, decay, and where it ends.
func TestCourseByHand(t *testing.T) {
	t.Parallel()
	at := func(days int) time.Time { return today.AddDate(0, 0, days) }
	l := pipeline.Learning{Type: pipeline.LearningEpisodic, Base: 0.8, Created: at(-90), State: pipeline.LearningForgotten, Source: "gap"}
	evidence := []pipeline.Evidence{{Delta: 0.1, Why: "ann applied it", At: at(-45)}, {Delta: 0.5, Why: "was wrong", At: at(-44), Off: true}}
	uses := []store.Use{{Run: 3, At: at(-40), Used: true, Phase: "review", Iteration: 1}, {Run: 4, At: at(-39)}}
	history := []store.MemoryChange{{At: at(-20), What: "forgotten", Before: `{"base":0.8,"type":"episodic","state":"active"}`,
		After: `{"base":0.8,"type":"episodic","state":"forgotten"}`}}
	steps, line := confidenceHistory(l, evidence, history, uses, today)
	got := ""
	for _, s := range steps {
		got += fmt.Sprintf("%s %.2f; ", s.What, s.Left)
	}
	// Age takes half at most, half of that in 45 days; from −40 to −20 it is a factor of 0.867.
	if want := "learnt from a problem that Forge had not found 0.80; ann applied it 0.90; taken back: was wrong 0.89; used in the review of iteration 1 0.90; forgotten 0.78; "; got != want {
		t.Errorf("steps %s, want %s", got, want)
	}
	if last := line[len(line)-1]; !last.at.Equal(at(-20)) {
		t.Errorf("the line ends at %v, want where it is forgotten", last.at)
	}
	svg := string(drawCourse(line, steps, l.Created, today))
	has(t, svg, `class="mark up"`, `class="mark out"`, "Confidence from 0.80 on 31 Dec 2025 to 0.78 on 11 Mar 2026", "-NaN", "-Inf")
	if drawCourse(nil, nil, today, today) != "" {
		t.Error("a line of nothing")
	}
	if _, line := confidenceHistory(pipeline.Learning{Created: today, Base: 0.5}, nil, nil, nil,
		today); strings.Contains(string(drawCourse(line, nil, today, today)), "NaN") {
		t.Error("a learning of this moment is drawn with NaN")
	}
}
