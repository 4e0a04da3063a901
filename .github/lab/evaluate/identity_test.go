package evaluate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePairs writes pairs of comments on three repositories, of two kinds.
func writePairs(t *testing.T, name string) string {
	t.Helper()
	var b strings.Builder
	subjects := []string{"cache", "parser", "upload form", "retry loop", "session token", "price table"}
	for i := range 36 {
		s, o := subjects[i%6], subjects[(i+1)%6]
		pair := map[string]any{"kind": []string{"reworded", "cross-tool"}[i%2],
			"pull": fmt.Sprintf("acme/%s/pull/%d", []string{"one", "two", "three"}[i/12], i%4), "same": i%3 != 0,
			"a": fmt.Sprintf("The %s is changed by case %d without a lock, so that two requests lose an update", s, i)}
		if pair["b"] = fmt.Sprintf("Two requests can lose an update because case %d changes the %s without locking", i, s); i%3 == 0 {
			pair["b"] = fmt.Sprintf("The name of the %s is misspelled in the message for people", o)
		}
		line, err := json.Marshal(pair)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	raw := []byte(b.String())
	if strings.HasSuffix(name, ".gz") {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if _, err := w.Write(raw); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		raw = z.Bytes()
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEvaluateIdentity(t *testing.T) {
	t.Parallel()
	plain, zipped := writePairs(t, "pairs.jsonl"), writePairs(t, "pairs.jsonl.gz")
	evaluate := func(args ...string) (string, error) { return lab(append([]string{"identity"}, args...)...) }
	type sets struct {
		Sets []struct {
			Kind              string
			Precision, Recall float64
			Pairs             int
		}
	}
	for _, args := range [][]string{{plain, "--json"}, {zipped, "--json", "--train", plain}} {
		out, err := evaluate(args...)
		var got sets
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v: %v in %s", args, err, out)
		}
		if err != nil || len(got.Sets) != 2 || got.Sets[0].Kind != "reworded" || got.Sets[0].Pairs != 18 || got.Sets[0].Precision != 1 ||
			got.Sets[0].Recall < 0.8 || got.Sets[1].Kind != "cross-tool" {
			t.Errorf("%v: %+v, %v", args, got, err)
		}
	}
	out, err := evaluate(plain, "--train", zipped)
	for _, want := range []string{"cross-tool (18): precision", "Forge, of the pair alone",
		"cosine of idf-weighted words", "by the others alone"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("no %q (%v) in\n%s", want, err, out)
		}
	}
	if out, err := evaluate("--model", "--train", plain); err != nil || !strings.Contains(out, `"sense-rare"`) {
		t.Errorf("the model: %v\n%s", err, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.jsonl")
	if err := os.WriteFile(broken, []byte(`{"a":"x","b":"y"}`+"\n"+`{"a":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{"give the files": {}, "pair 2 has no a or no b": {broken}, "no such file": {broken + ".not"}} {
		if _, err := evaluate(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}
