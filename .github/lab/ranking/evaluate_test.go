package ranking

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	relevant := map[int64]int{1: 2, 2: 1, 3: 1}
	ideal := 3 + 1/math.Log2(3) + 0.5
	for _, c := range []struct {
		ranked []int64
		want   Figures
	}{
		{nil, Figures{}},
		{[]int64{8, 9}, Figures{}},
		{[]int64{1, 2, 3}, Figures{1, 0.6, 1}},
		{[]int64{9, 2, 1}, Figures{(1/math.Log2(3) + 1.5) / ideal, 0.4, 0.5}},
		{[]int64{5, 6, 7, 8, 9, 1}, Figures{0, 0, 1.0 / 6}},
	} {
		got := judge(c.ranked, relevant)
		if math.Abs(got.NDCG-c.want.NDCG)+math.Abs(got.P-c.want.P)+math.Abs(got.MRR-c.want.MRR) > 1e-9 {
			t.Errorf("judge(%v, %v) = %+v, want %+v", c.ranked, relevant, got, c.want)
		}
	}
}

// spy writes down what it is told, in order.
type spy struct{ log []string }

func (s *spy) Put(l Learning) error {
	s.log = append(s.log, l.Text)
	return nil
}

func (s *spy) Rank(q Query, now time.Time) []int64 {
	s.log = append(s.log, q.Path+"@"+now.Format(time.DateOnly))
	return []int64{0}
}

const small = `{"kind":"query","at":2,"path":"late","relevant":{"0":2}}
{"kind":"learning","id":2,"date":"2026-01-03T00:00:00Z","text":"third"}
{"kind":"learning","id":0,"date":"2026-01-01T00:00:00Z","text":"first"}
{"kind":"learning","id":1,"date":"2026-01-02T00:00:00Z","text":"second"}
{"kind":"query","at":1,"path":"early","relevant":{"0":1}}
`

// A query never sees what came after it, its own commit and its date included.
func TestEachKeepsTheOrderOfTime(t *testing.T) {
	t.Parallel()
	set, err := parse("small", strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	s := &spy{}
	if all, err := set.Each(s); err != nil || Mean(all) != (Figures{1, 0.2, 1}) {
		t.Errorf("Each = %+v, %v", all, err)
	}
	if diff := cmp.Diff([]string{"first", "early@2026-01-01", "second", "late@2026-01-02"}, s.log); diff != "" {
		t.Errorf("what a ranking is told (-want +got):\n%s", diff)
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, want string }{
		{`{"kind":"query","at":1,"relevant":{"1":2}}`, "line 1: learning 1 is relevant to a change before it, at 1"},
		{`{"kind":"lesson"}`, `line 1: kind "lesson" is neither`},
		{`{"kind":"learning"}` + "\n{", "line 2: unexpected EOF"},
		{`{"kind":"learning"}`, "it has no queries"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.jsonl"), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.jsonl") {
			t.Errorf("Load of %s: %v, want the file and %q", c.content, err, c.want)
		}
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no file *.jsonl") {
		t.Errorf("Load of an empty directory: %v", err)
	}
}

func TestSynthetic(t *testing.T) {
	t.Parallel()
	sets, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSynthetic(sets, 1, 1); err == nil || !strings.Contains(err.Error(), "0 queries of 15 words") {
		t.Errorf("NewSynthetic without long queries: %v", err)
	}
	sets[0].Queries[0].Words = strings.Fields("a b c d e f g h i j k l m n o")
	one, err := NewSynthetic(sets, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewSynthetic(sets, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]bool{}
	for i := range 100 {
		a, b := one.Learning(), two.Learning()
		if diff := cmp.Diff(a, b); diff != "" || a.ID != int64(i+1) || a.Content == "" || a.Confidence < 0.3 || a.Confidence > 1 {
			t.Fatalf("learning %d: %+v, with the same seed (-one +two):\n%s", i, a, diff)
		}
		scopes[a.Scope] = true
	}
	if q := one.Query(7); len(scopes) != 3 || !scopes[q.Scopes[0]] || len(q.Words) != queryWords || q.Limit != 7 {
		t.Errorf("scopes %v, query %+v", scopes, q)
	}
}
