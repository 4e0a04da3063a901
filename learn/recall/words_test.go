package recall

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func termsOf(s string) []string {
	var out []string
	eachTerm(s, func(term, _ string) { out = append(out, term) })
	return out
}

func TestTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a _ -- ()", ""},
		{"The elector resigns", "the elector resign"},
		{"parseHTTPRequest2", "pars http request =parsehttprequest2"},
		{"client_id ClientID clientId", "client id =clientid client id =clientid client id =clientid"},
		{"_test_", "test"},
		{"HTTP", "http"},
		{"HTTPServer", "http server =httpserver"},
		{"v62 sha256sum", "62 =v62 sha 256 sum =sha256sum"},
		{"server/events/vcs_client.go", "server event vcs client =vcsclient go"},
		{"`riverdriver/riverpgxv5`", "riverdriver riverpgxv =riverpgxv5"},
		{"don't", "don"},
		{"Größe größe ÄNDERN", "größ größ ändern"},
		{"日本語 テスト", "日本語 テスト"},
		{"a\xffbc\xffd", "bc"},
		{strings.Repeat("x", maxPart+1), ""},
		{"aA" + strings.Repeat("1a", maxWhole), ""}, // parts of one letter, and a whole that is too long
	} {
		if got := strings.Join(termsOf(c.in), " "); got != c.want {
			t.Errorf("eachTerm(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for _, family := range [][]string{
		{"retry", "retries", "retried"}, {"test", "tests", "tested", "testing"}, {"cache", "caches", "cached", "caching"},
		{"cancel", "cancelled", "cancelling", "cancels"}, {"run", "runs"}, {"status"}, {"class"}, {"this"}, {"bus"}, {"ssl"},
	} {
		for _, w := range family[1:] {
			if got, want := stem(w), stem(family[0]); got != want {
				t.Errorf("stem(%s) = %s, stem(%s) = %s: want the same", w, got, family[0], want)
			}
		}
	}
	for in, want := range map[string]string{"status": "status", "this": "this", "bus": "bus", "ring": "ring", "red": "red", "go": "go", "ids": "ids"} {
		if got := stem(in); got != want {
			t.Errorf("stem(%s) = %s, want %s", in, got, want)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"", "parseHTTPRequest2", "a_b__c", "Größe İstanbul ǅ", "\xff\xc3", "x1y2Z3", strings.Repeat("é", 50)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		terms := termsOf(s)
		for _, term := range terms {
			switch {
			case term == "" || term == "=":
				t.Errorf("eachTerm(%q) gives an empty term", s)
			case utf8.ValidString(s) && !utf8.ValidString(term):
				t.Errorf("eachTerm(%q) gives %q, which is not UTF-8", s, term)
			case strings.ContainsAny(term, " \n:/"):
				t.Errorf("eachTerm(%q) gives %q, which could be taken for a mark", s, term)
			case len(term) > 3*maxWhole:
				t.Errorf("eachTerm(%q) gives a term of %d bytes", s, len(term))
			}
		}
		if again := termsOf("(" + s + ") word"); !slices.Equal(again, append(terms, "word")) {
			t.Errorf("eachTerm(%q) = %q, but between brackets %q", s, terms, again)
		}
	})
}

func TestPlacesIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"when the server starts", nil},
		{"when server/events changes", []string{"server/events"}},
		{"cmd, server/events", []string{"cmd", "server/events"}},
		{".", []string{"."}},
		{"., `cmd/x.go`; docs/", []string{".", "cmd/x.go", "docs/"}},
		{"in (internal/db), see https://example.com/a/b.", []string{"internal/db"}},
		{"server/events/.", []string{"server/events/"}},
		{"/", nil},
	} {
		if diff := cmp.Diff(c.want, placesIn(c.in)); diff != "" {
			t.Errorf("placesIn(%q) (-want +got):\n%s", c.in, diff)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path  string
		known bool // to be a file
		want  []string
	}{
		{"cmd/main.go", true, []string{"file:cmd/main.go", "folder:cmd"}},
		{"./cmd//main.go", true, []string{"file:cmd/main.go", "folder:cmd"}},
		{"cmd/", true, []string{"folder:cmd"}},
		{"cmd/forge", true, []string{"file:cmd/forge", "folder:cmd", "folder:cmd/forge"}},
		{"Makefile", true, []string{"file:Makefile", "folder:.", "folder:Makefile"}},
		{".github", false, []string{"folder:.github"}},
		{"server/events", false, []string{"folder:server/events"}},
		{"yaml.v2", false, []string{"file:yaml.v2", "folder:.", "folder:yaml.v2"}},
		{".", true, []string{"folder:."}},
	} {
		d := &document{}
		d.place(c.path, c.known)
		if diff := cmp.Diff(c.want, d.terms); diff != "" {
			t.Errorf("place(%q, %v) (-want +got):\n%s", c.path, c.known, diff)
		}
	}
}
