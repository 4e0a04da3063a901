package recall

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/pipeline"
)

var (
	vocabulary = []string{"elector", "resign", "Resigns", "queue", "parseHTTP", "client_id", "the", "lease", "body", "retry"}
	folders    = []string{".", "cmd", "server/events", "server", "internal/leadership"}
	files      = []string{"main.go", "cmd/main.go", "server/events/vcs_client.go", "server/elector.go"}
	scopeNames = []string{"repo:a/b", "repo:a/c", "org:a"}
)

func words(most int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, most), func(w []string) string { return strings.Join(w, " ") })
}

// anyLearning draws from few words, places and IDs, so that much coincides.
func anyLearning(t *rapid.T) pipeline.Learning {
	age := time.Duration(rapid.IntRange(0, 900).Draw(t, "age")) * 24 * time.Hour
	return pipeline.Learning{
		ID:         int64(rapid.IntRange(1, 60).Draw(t, "id")),
		Scope:      rapid.SampledFrom(scopeNames).Draw(t, "scope"),
		Content:    words(6).Draw(t, "first") + "\n" + words(6).Draw(t, "rest"),
		Context:    strings.Join(rapid.SliceOfN(rapid.SampledFrom(folders), 0, 2).Draw(t, "context"), ", "),
		Paths:      rapid.SliceOfN(rapid.SampledFrom(files), 0, 2).Draw(t, "paths"),
		Category:   rapid.SampledFrom([]pipeline.Category{"", "security", "tests"}).Draw(t, "category"),
		Tags:       rapid.SliceOfN(rapid.SampledFrom([]string{"sql", "flaky"}), 0, 2).Draw(t, "tags"),
		Confidence: float64(rapid.IntRange(0, 4).Draw(t, "confidence")) / 4,
		State: rapid.SampledFrom([]pipeline.LearningState{pipeline.LearningActive, pipeline.LearningActive, pipeline.LearningActive,
			pipeline.LearningRetired}).Draw(t, "state"),
		Created: now.Add(-age), Touched: now.Add(-age / 2),
	}
}

func anyQuery(t *rapid.T) Query {
	return Query{
		Scopes:    rapid.SliceOfN(rapid.SampledFrom(scopeNames), 1, 3).Draw(t, "scopes"),
		Text:      words(4).Draw(t, "text"),
		Paths:     rapid.SliceOfN(rapid.SampledFrom(files), 0, 2).Draw(t, "query paths"),
		Functions: rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 2).Draw(t, "functions"),
		Words:     rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 5).Draw(t, "words"),
		Category:  rapid.SampledFrom([]pipeline.Category{"", "security"}).Draw(t, "query category"),
		Tags:      rapid.SliceOfN(rapid.SampledFrom([]string{"SQL", "flaky"}), 0, 1).Draw(t, "query tags"),
		Limit:     rapid.IntRange(0, 80).Draw(t, "limit"),
		Now:       rapid.SampledFrom([]time.Time{{}, now}).Draw(t, "now"),
	}
}

// After any changes the index answers as one made anew from what is left, and as
// the formula says when it is computed for one learning after the other.
func TestIndexFollowsChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ix, left := New(), map[int64]pipeline.Learning{}
		for range rapid.IntRange(1, 200).Draw(t, "changes") {
			l := anyLearning(t)
			if rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				ix.Remove(l.ID)
				delete(left, l.ID)
				continue
			}
			if err := ix.Put(l); err != nil {
				t.Fatal(err)
			}
			if left[l.ID] = l; !recallable(l) {
				delete(left, l.ID)
			}
		}
		fresh := New()
		for _, l := range left {
			if err := fresh.Put(l); err != nil {
				t.Fatal(err)
			}
		}
		if ix.Len() != len(left) {
			t.Fatalf("%d learnings in the index, want %d", ix.Len(), len(left))
		}
		for range 3 {
			q := anyQuery(t)
			got := ix.Search(q)
			if diff := cmp.Diff(fresh.Search(q), got); diff != "" {
				t.Fatalf("Search(%+v) (-made anew +after changes):\n%s", q, diff)
			}
			compare(t, q, got, reference(left, q))
		}
	})
}

// reference scores every learning by the formula of the package comment.
func reference(all map[int64]pipeline.Learning, q Query) map[int64]float64 {
	var docs []map[string]float64 // counts by term
	var lengths []float64
	var learnings []pipeline.Learning
	total := 0
	for _, l := range all {
		if slices.Contains(q.Scopes, l.Scope) {
			d := documentOf(l)
			counts := map[string]float64{}
			for i, term := range d.terms {
				counts[term] += float64(d.counts[i])
			}
			docs, lengths, learnings = append(docs, counts), append(lengths, float64(d.length)), append(learnings, l)
			total += d.length
		}
	}
	n := float64(len(docs))
	bm25 := make([]float64, len(docs))
	for _, w := range q.terms() {
		have := 0.0
		for _, d := range docs {
			have += min(d[w.term], 1)
		}
		for i, d := range docs {
			count := d[w.term]
			norm := 1.2 * (0.25 + 0.75*lengths[i]*n/float64(total))
			bm25[i] += float64(w.weight) * math.Log(1+(n-have+0.5)/(have+0.5)) * count * 2.2 / (count + norm)
		}
	}
	scores := map[int64]float64{}
	for i, l := range learnings {
		score := 0.0
		if bm25[i] > 0 {
			score = bm25[i] / slices.Max(bm25)
		}
		score += placed(l, q)
		if q.Category != "" && q.Category == l.Category {
			score += 0.25
		}
		if slices.ContainsFunc(q.Tags, func(tag string) bool { return slices.Contains(l.Tags, strings.ToLower(tag)) }) {
			score += 0.25
		}
		score *= l.Confidence
		if !q.Now.IsZero() {
			score *= 0.8 + 0.2*math.Pow(0.5, q.Now.Sub(l.Touched).Hours()/24/180)
		}
		if score > 0 {
			scores[l.ID] = score
		}
	}
	return scores
}

// placed is what a learning's places are worth to a query.
func placed(l pipeline.Learning, q Query) (worth float64) {
	at := strings.Split(l.Context, ", ")
	for _, p := range l.Paths {
		at = append(at, path.Dir(p))
	}
	if slices.ContainsFunc(q.Paths, func(p string) bool { return slices.Contains(at, path.Dir(p)) }) {
		worth++
	}
	if slices.ContainsFunc(q.Paths, func(p string) bool { return slices.Contains(l.Paths, p) }) {
		worth++
	}
	return worth
}

// compare holds hits against the scores that they should have.
func compare(t *rapid.T, q Query, got []Hit, want map[int64]float64) {
	t.Helper()
	limit := q.Limit
	if limit == 0 {
		limit = 10
	}
	if len(got) != min(limit, len(want)) {
		t.Fatalf("Search(%+v): %d hits, want %d of %d", q, len(got), min(limit, len(want)), len(want))
	}
	var scores []float64
	for _, s := range want {
		scores = append(scores, s)
	}
	slices.Sort(scores)
	slices.Reverse(scores)
	for i, h := range got {
		if !near(h.Score, want[h.ID]) || !near(h.Score, scores[i]) {
			t.Fatalf("Search(%+v): hit %d is learning %d with %v; by the formula it has %v, and the hit there has %v", q, i, h.ID, h.Score, want[h.ID], scores[i])
		}
		if i > 0 && (got[i-1].Score < h.Score || got[i-1].Score == h.Score && got[i-1].ID < h.ID) {
			t.Fatalf("Search(%+v): hits %d and %d are out of order: %+v", q, i-1, i, got)
		}
	}
}

// Searches and changes at the same time: each search sees whole learnings only, and
// in the end the index is as if the changes had come one by one.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	ix := New()
	version := func(id, v int) pipeline.Learning {
		return lesson(int64(id), fmt.Sprintf("lesson%d body version%d", id, v), when("cmd"))
	}
	const writers, each, rounds = 4, 50, 5
	var writing, reading sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		reading.Go(func() {
			for {
				for _, h := range ix.Search(Query{Scopes: []string{repo}, Text: "body", Paths: []string{"cmd/x.go"}, Limit: 1000}) {
					if h.Why.Folder != "cmd" || !slices.Contains(h.Why.Words, "body") {
						t.Errorf("hit %+v: half a learning", h)
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			for v := range rounds {
				for i := range each {
					id := w*each + i
					if v == rounds-2 && i%2 == 0 {
						ix.Remove(int64(id))
					} else if err := ix.Put(version(id, v)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	want := New()
	for id := range writers * each {
		if err := want.Put(version(id, rounds-1)); err != nil {
			t.Fatal(err)
		}
	}
	q := Query{Scopes: []string{repo}, Text: "body version4 lesson7", Limit: 1000}
	if diff := cmp.Diff(want.Search(q), ix.Search(q)); diff != "" {
		t.Errorf("after all changes (-want +got):\n%s", diff)
	}
}
