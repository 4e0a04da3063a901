package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/learn"
	"forge/learn/nearest"
	"forge/pipeline"
)

// madeCode is a small repository with tests and several folders.
func madeCode(t testing.TB) *Code {
	t.Helper()
	dir := fstest.MapFS{"vendor/x/x.go": {Data: []byte("package x\n\nfunc X() {}\n")}, "doc.go": {Data: []byte("package made\n")}}
	for i, folder := range []string{"api", "api/v2", "cmd", "core", "tools"} {
		for _, suffix := range []string{".go", "_test.go"} {
			var b strings.Builder
			for k := range 12 {
				fmt.Fprintf(&b, "func Handle%d%d(name string) error {\n\tx, err := open(filepath.Join(root, name), %d)\n\tif err != nil {\n\t\treturn err\n\t}\n\tdefer x.Close()\n\t_ = x.file.Sync()\n"+
					"\tfor i := 0; i < len(name); i++ {\n\t\tlist = append(list, name[i])\n\t}\n\treturn err\n}\n\nfunc helper%d%d() int { return limit%d }\n\n", i, k, 100+k, i, k, k)
			}
			dir[folder+"/file"+suffix] = &fstest.MapFile{Data: []byte(b.String())}
		}
	}
	c, err := Read("made", dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRead(t *testing.T) {
	t.Parallel()
	c := madeCode(t)
	if len(c.Files) != 10 {
		t.Errorf("%d files, want those with functions outside vendor: 10", len(c.Files))
	}
	if _, err := Read("empty", fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "bigger repository") {
		t.Errorf("an empty directory: %v", err)
	}
}

// Covers H1, H2, H5 and lessons 3 on streams of every model: without memory nothing
// is held back; with it nothing critical about security is touched, the prediction
// loses no true error, nothing comes back for the code that it was dismissed for.
func TestPolicies(t *testing.T) {
	t.Parallel()
	c := madeCode(t)
	models := Models()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.SampledFrom(models).Draw(t, "model")
		s := generate(c, m, 10, rapid.Uint64().Draw(t, "seed"))
		policy := rapid.SampledFrom(Policies()).Draw(t, "policy")
		p := play(s, policy)
		a := p.All()
		switch {
		case policy.Name == "memory off" && (a.Found != a.Posted || a.UsefulSuppressed != 0 || p.Learnings != 0):
			t.Fatalf("memory off: %+v", a)
		case p.Secure != 0:
			t.Fatalf("%s: %d critical findings about security held back", policy.Name, p.Secure)
		case policy.Memory && a.Repeated != 0:
			t.Fatalf("%s: %d dismissed findings posted again", policy.Name, a.Repeated)
		case policy.Predict && p.Lost > play(s, Policies()[1]).Lost: // the made code repeats itself: a dismissal there may be of the same line elsewhere in the file
			t.Fatalf("%s: of %d true errors %d lost", policy.Name, p.Planted, p.Lost)
		}
	})
}

// The test of the test: people's memory does come to something here, and without it
// what was dismissed does come back.
func TestMemoryHelps(t *testing.T) {
	t.Parallel()
	s := generate(madeCode(t), base(), 100, 1)
	all := Policies()
	off, on := play(s, all[0]), play(s, all[2])
	if off.All().Repeated == 0 || off.Planted < 30 {
		t.Errorf("without memory %d repeats, and %d true errors: the stream shows nothing", off.All().Repeated, off.Planted)
	}
	if a, b := off.Blocks[1].Rate(), on.Blocks[1].Rate(); b > 0.7*a {
		t.Errorf("dismissed: %.2f without memory, %.2f with it", a, b)
	}
}

func TestCompareIsDeterministic(t *testing.T) {
	t.Parallel()
	c := madeCode(t)
	var texts []string
	for range 2 {
		r, err := Compare(context.Background(), c, Models()[:1], Options{Pulls: 100, Seeds: 1, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("the same seeds: %s", diff)
	}
	if _, err := Compare(context.Background(), c, nil, Options{Pulls: 100, Seeds: 1}); err == nil {
		t.Error("no models: no error")
	}
}

// A planted error whose kind everybody dismisses is posted all the same.
func TestErrorsAreSpared(t *testing.T) {
	t.Parallel()
	s := generate(madeCode(t), base(), 20, 3)
	for _, p := range s.pulls {
		for _, f := range p.found {
			if !f.Severity.Blocks() {
				continue
			}
			var decisions []nearest.Decision
			for i := range 200 {
				other := f.Finding
				other.Fingerprint, other.Code = fmt.Sprint(i), fmt.Sprint(i)
				decisions = append(decisions, nearest.Decision{Finding: other, Dismissed: true, Actor: pipeline.Actor{ID: int64(i)}, Weight: 1, At: p.at})
			}
			if kept, _ := learn.Filter([]pipeline.Finding{f.Finding}, nil, nearest.New(decisions, p.at)); len(kept) != 1 || kept[0].Severity != f.Severity {
				t.Fatalf("%+v: kept %+v", f.Finding, kept)
			}
		}
	}
}
