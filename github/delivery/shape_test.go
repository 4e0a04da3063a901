package delivery

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// payloads are those of testdata/notice.
func payloads(t testing.TB) map[string][]byte {
	files, err := filepath.Glob("testdata/notice/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no payloads: %v", err)
	}
	out := map[string][]byte{}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range ar.Files {
			if json.Valid(f.Data) {
				out[file+" "+f.Name] = f.Data
			}
		}
	}
	if dir := os.Getenv("FORGE_WEBHOOK_EXAMPLES"); dir != "" {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".json") {
				out[path], err = os.ReadFile(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// What is decoded from the projection is what is decoded from the raw.
func TestProject(t *testing.T) {
	t.Parallel()
	for name, raw := range payloads(t) {
		readsSame(t, name, raw)
	}
}

func readsSame(t *testing.T, name string, raw []byte) {
	t.Helper()
	var want, got payload
	wantErr := json.Unmarshal(raw, &want)
	part, err := deliveryShape.project(nil, raw)
	if err == nil {
		err = json.Unmarshal(part, &got)
	}
	if wantErr != nil {
		return // it may be wrong where Forge does not look
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, part)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(payload{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestProjectErrors(t *testing.T) {
	t.Parallel()
	for _, s := range []string{``, `{`, `{"action"`, `{"action":}`, `{"action":"x"`, `{"action":"x"} x`, `[`, `{"issue":{"title":"x}`,
		`{"a":[1,2}`, `{1:2}`, `"`} {
		part, err := deliveryShape.project(nil, []byte(s))
		var d payload
		if err == nil {
			err = json.Unmarshal(part, &d)
		}
		if err == nil {
			t.Errorf("project(%q) = %q", s, part)
		}
	}
}

// FuzzProject holds that every valid raw reads the same.
func FuzzProject(f *testing.F) {
	f.Add([]byte(`{"action":"a\"b\\","sender":{"id":1},"x":[{"y":"]"}],"branches":[{"name":"n"},{}],"issue":{"pull_request":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || strings.ContainsAny(string(raw), `\`) || folds(raw) {
			part, err := deliveryShape.project(nil, raw) // it must not panic
			if err == nil {
				_ = json.Unmarshal(part, new(payload))
			}
			return
		}
		readsSame(t, "fuzz", raw)
	})
}

// folds reports keys that encoding/json would match by ignoring their case, which
// GitHub's never need.
func folds(raw []byte) bool {
	return strings.ToLower(string(raw)) != string(raw)
}
