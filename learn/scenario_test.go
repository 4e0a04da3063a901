package learn

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"forge/pipeline"
)

var update = flag.Bool("update", false, "rewrite what the scenarios want")

var (
	day0   = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	people = map[string]int64{"ann": 1, "bob": 2, "cat": 3, "dan": 4}
	pairs  = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)
)

const scope = "repo:acme/site"

func day(n float64) time.Time { return day0.Add(time.Duration(n * 24 * float64(time.Hour))) }

// A line is "A B name=value …".
type line struct {
	a, b   string
	values map[string]string
	used   map[string]bool
}

func parseLine(t *testing.T, s string) line {
	t.Helper()
	l := line{values: map[string]string{}, used: map[string]bool{}}
	head := strings.Fields(pairs.ReplaceAllString(s, ""))
	if len(head) == 0 || len(head) > 2 {
		t.Fatalf("line %q: want KIND KEY name=value", s)
	}
	l.a, l.b = head[0], strings.Join(head[1:], "")
	for _, m := range pairs.FindAllStringSubmatch(s, -1) {
		v := m[2]
		if strings.HasPrefix(v, `"`) {
			var err error
			if v, err = strconv.Unquote(v); err != nil {
				t.Fatalf("line %q: %v", s, err)
			}
		}
		l.values[m[1]] = v
	}
	return l
}

func (l line) text(name string) string { l.used[name] = true; return l.values[name] }
func (l line) number(t *testing.T, name string, otherwise float64) float64 {
	l.used[name] = true
	s, ok := l.values[name]
	if !ok {
		return otherwise
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", name, s, err)
	}
	return f
}

func (l line) done(t *testing.T) {
	t.Helper()
	for name := range l.values {
		if !l.used[name] {
			t.Fatalf("%s %s: unknown name %q", l.a, l.b, name)
		}
	}
}

func (l line) signal(t *testing.T) pipeline.Signal {
	by := l.text("by")
	s := pipeline.Signal{
		Kind: pipeline.SignalKind(l.a), Key: l.b, At: day(l.number(t, "day", 1)), Off: l.text("off") != "", Actor: pipeline.Actor{ID: people[by], Login: by},
		Weight: l.number(t, "weight", 1), Waited: int64(l.number(t, "waited", 0)), File: l.text("file"), Finding: l.text("finding"),
		Before: l.text("before"), After: l.text("after"), Text: l.text("text"), Pull: int(l.number(t, "pull", 0)), Implied: l.text("implied") != "",
		Scope: l.text("scope"), Run: 7,
	}
	if s.Scope == "" {
		s.Scope = scope
	}
	if c := l.text("category"); c != "" {
		s.About = &pipeline.Finding{Fingerprint: s.Finding, Category: pipeline.Category(c), Message: l.text("message"), Rule: l.text("rule"),
			Code: l.text("code"), File: s.File}
	}
	l.done(t)
	return s
}

func (l line) seed(t *testing.T) pipeline.Learning {
	s := pipeline.Learning{
		Key: l.a, Type: pipeline.LearningType(l.b), Scope: l.text("scope"), Base: l.number(t, "base", 0.5),
		Category: pipeline.Category(l.text("category")), Content: l.text("content"),
		Context: l.text("context"), Finding: l.text("finding"), Source: pipeline.LearningSource(l.text("source")),
		Created: day(l.number(t, "day", 0)), State: pipeline.LearningState(l.text("state")), Weight: 1,
	}
	s.Confidence = s.Base
	if f := l.text("file"); f != "" {
		s.Paths = []string{f}
	}
	if s.Scope == "" {
		s.Scope = scope
	}
	if s.Source == "" {
		s.Source = pipeline.SourceReflection
	}
	l.done(t)
	return s
}

type scenario struct {
	seeds   []pipeline.Learning
	signals []pipeline.Signal
	rates   []time.Time
}

func readScenario(t *testing.T, a *txtar.Archive) (s scenario) {
	for _, f := range a.Files {
		for text := range strings.SplitSeq(strings.TrimSpace(string(f.Data)), "\n") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			switch f.Name {
			case "seeds":
				s.seeds = append(s.seeds, parseLine(t, text).seed(t))
			case "signals":
				if l := parseLine(t, text); l.a == "rates" {
					s.rates = append(s.rates, day(l.number(t, "day", 1)))
				} else {
					s.signals = append(s.signals, l.signal(t))
				}
			}
		}
	}
	return s
}

// play takes the signals in, in this order, and returns the memory and the
// numbers of the signals that had no effect.
func (s scenario) play(order []int) (*Memory, []int) {
	m := NewMemory(s.seeds...)
	var ignored []int
	for _, i := range order {
		if !m.Take(s.signals[i]) {
			ignored = append(ignored, i+1)
		}
	}
	for _, at := range s.rates {
		for _, r := range Rates(m.Signals(), at) {
			m.Apply(r.Scope, r.Evidence(m.Learnings(), at))
		}
	}
	return m, ignored
}

func show(m *Memory) string {
	var b strings.Builder
	for _, l := range m.Learnings() {
		fmt.Fprintf(&b, "%s %s %s %.4g +%d -%d", l.Key, l.Type, l.Category, l.Confidence, l.For, l.Against)
		if l.Scope != scope {
			fmt.Fprintf(&b, " scope=%s", l.Scope)
		}
		if l.State != pipeline.LearningActive {
			fmt.Fprintf(&b, " %s", l.State)
		}
		for _, t := range l.Tags {
			fmt.Fprintf(&b, " #%s", t)
		}
		b.WriteByte('\n')
		if l.Signal != "" {
			for c := range strings.SplitSeq(l.Content, "\n") {
				fmt.Fprintf(&b, "  | %s\n", c)
			}
		}
		for _, e := range m.Evidence(l.Scope, l.Key) {
			fmt.Fprintf(&b, "  %+.3g %s: %s\n", e.Delta, e.Key, e.Why)
		}
	}
	return b.String()
}

// Covers H1–H7: every kind of signal, every taking-back, repeats, late arrivals;
// and that neither order nor repetition matters.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/memory/*.txtar")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := readScenario(t, a)
			order := make([]int, len(s.signals))
			for i := range order {
				order[i] = i
			}
			m, ignored := s.play(order)
			got := show(m)
			for _, n := range ignored {
				got += fmt.Sprintf("-- signal %d changed nothing\n", n)
			}
			i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == "want" })
			if i < 0 {
				i = len(a.Files)
				a.Files = append(a.Files, txtar.File{Name: "want"})
			}
			if *update {
				a.Files[i].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(a.Files[i].Data), got); diff != "" {
				t.Errorf("memory (-want +got):\n%s", diff)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				again := slices.Concat(order, order[:rng.IntN(len(order)+1)])
				rng.Shuffle(len(again), func(i, k int) { again[i], again[k] = again[k], again[i] })
				other, _ := s.play(again)
				if diff := cmp.Diff(show(m), show(other)); diff != "" {
					t.Fatalf("in the order %v (-as written +so):\n%s", again, diff)
				}
			}
		})
	}
}
