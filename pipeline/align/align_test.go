package align

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

type pair struct {
	name, a, b string
	contradict bool
}

func pairs(t *testing.T) []pair {
	t.Helper()
	var out []pair
	for file, contradict := range map[string]bool{"testdata/contradict.txtar": true, "testdata/agree.txtar": false} {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Files) != 30 {
			t.Errorf("%s has %d pairs, want 30", file, len(a.Files))
		}
		for _, f := range a.Files {
			x, y, ok := strings.Cut(string(f.Data), "\n---\n")
			if !ok {
				t.Fatalf("%s: %s has one side only", file, f.Name)
			}
			out = append(out, pair{f.Name, x, y, contradict})
		}
	}
	return out
}

// held says whether a pair belongs to the half that no rule was chosen by.
func held(name string) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%2 == 1
}

type figures struct{ right, false, missed int }

func (f figures) String() string {
	return fmt.Sprintf("precision %.2f, recall %.2f (%d found, %d wrong, %d missed)", float64(f.right)/float64(max(1, f.right+f.false)),
		float64(f.right)/float64(max(1, f.right+f.missed)), f.right, f.false, f.missed)
}

// Covers U5: of 60 pairs of which 30 contradict each other, none is named wrongly, and
// most are found, without a model.
func TestCorpus(t *testing.T) {
	t.Parallel()
	var all figures
	halves := map[bool]*figures{false: {}, true: {}}
	for _, p := range pairs(t) {
		found := Against(p.a, p.b)
		for _, f := range []*figures{&all, halves[held(p.name)]} {
			switch {
			case p.contradict && len(found) > 0:
				f.right++
			case p.contradict:
				f.missed++
			case len(found) > 0:
				f.false++
			}
		}
		if (len(found) > 0) != p.contradict {
			t.Logf("held=%v %s: found %v", held(p.name), p.name, found)
		}
		for _, c := range found {
			if !strings.Contains(p.a, c.A) || !strings.Contains(p.b, c.B) || c.A == "" || c.B == "" {
				t.Errorf("%s: the quotes %q and %q do not stand in the texts", p.name, c.A, c.B)
			}
		}
	}
	t.Logf("all: %v; the half for choosing: %v; the other half: %v", all, halves[false], halves[true])
	if all.false > 0 {
		t.Errorf("%d pairs that agree are named contradictory, want none", all.false)
	}
	if all.right < 26 {
		t.Errorf("%d of 30 contradictions are found, want 26 at least", all.right)
	}
}

// What teams write around their rules makes none of them.
func TestNoContradiction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fixed, said string }{
		{"Use **Node.js v18** or newer.", "The image is built on Node 20."},
		{"```\nnpm install left-pad\n```\nNo new dependencies.", "Use what is there."},
		{"Use pnpm in web/.\n\nUse npm in tools/.", "Run `npm install` in tools/."},
		{"Only touch the REST API.", "Add an endpoint beside the GraphQL one."},
		{"Search answers within 200 ms.", "Search suggestions appear within 500 ms."},
		{"No new dependencies without asking first.", "Add the library zod."},
		{"No new dependencies.", "Add the package internal/queue and a library page for books."},
		{"Requests time out after 2 s.", "Requests are answered within 5 s."},
		{"p95 of a search stays below 200 ms.", "p99 of a search stays below 500 ms."},
		{"We build with Go 1.21.", "Let us go 2 steps back; node 3 of the cluster stays."},
		{"The smallest screen is 360 px.", "Pages work from 320 px."},
		{"Install dependencies with `pnpm install`.", "There are no dependencies; the server's own npm is configured with a proxy."},
		{"Users are stored in PostgreSQL.", "Sessions are stored in SQLite."},
		{"IE11 must keep working.", "Keep React 16; React 18 has dropped IE11."},
		{"IE11 must keep working.", "React 18 no longer supports it. React 18 needs a modern browser."},
		{"No new dependencies.", "Run `pip install -r requirements.txt`; then `pip install .` and `npm install`."},
		{"No new dependencies.", "Run `pip install --requirement dev.txt`."},
		{"No new dependencies.", "Add comments to requirements.txt, a script to package.json, and the package comment."},
		{"No new dependencies.", "Add the package documentation, and the packages page."},
		{"No new dependencies.", "Add hashes to requirements.txt. Move lodash to the dependencies."},
		{"We use PostgreSQL for orders.", "Store the sessions in SQLite."},
		{"We use PostgreSQL.", "Tests use SQLite. Export the rows from MongoDB to it."},
		{"We use PostgreSQL.", "Keep the cache in Redis, and the rows in PostgreSQL."},
		{"The smallest screen is 320 px wide.", "Lay out two columns for screens from 1024 px."},
		{"The smallest screen is 320 px wide.", "On screens from 1024 px show the sidebar."},
		{"The smallest screen is 320 px wide.", "Lay out the page for 320 px; for screens from 1024 px in two columns."},
		{"All times are stored in UTC.", "Show them in Europe/Berlin."},
		{"All times are stored in UTC.", "Convert Europe/Berlin to UTC when it is stored."},
		{"We are on Node 16.", "Do not use Node 20 yet."},
		{"Supports Node 16 and later.", "The image is built on Node 20. Tests need Node 22."},
		{"Data is stored in PostgreSQL.", "Sessions are stored in SQLite."},
		{"The smallest screen is 320 px wide.", "Show the table of the page for screens from 1024 px."},
		{"Use UTC everywhere.", "Dates are parsed from Europe/Berlin."},
		{"No new dependencies.", "Add the package internal/queue for jobs. List it as a dependency of the job."},
	} {
		if found := Against(c.fixed, c.said); len(found) > 0 {
			t.Errorf("%q and %q: %s: %v", c.fixed, c.said, found[0].Kind, found)
		}
	}
}

// Between modules a bound within a bound fits, and what one does is no rule for another.
func TestBetween(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		kind string
	}{
		{"Search answers within 200 ms.", "Search answers within 100 ms.", ""},
		{"Built with Java 11.", "Built with Java 17.", ""},
		{"Store the drafts in SQLite only.", "Save the audit in PostgreSQL.", ""},
		{"Offers the orders API over gRPC.", "Calls the orders API over REST.", "api"},
		{"The base breakpoint is 1024 px.", "The base breakpoint is 320 px.", "viewport"},
		{"Renders in IE11, which must work.", "Built on Vue 3.", "browser"},
	} {
		found := Between(c.a, c.b)
		if got := len(found) > 0 && found[0].Kind == c.kind; got != (c.kind != "") || c.kind == "" && len(found) > 0 {
			t.Errorf("%q and %q: found %v, want %q", c.a, c.b, found, c.kind)
		}
	}
}

// Whatever a text is, facts are read from it.
func FuzzFacts(f *testing.F) {
	f.Add("- \n*\n1.\n-  \n#\n```\n> \n")
	f.Add("İE11 Node 1.2.3.4.5, 6 or **")
	f.Add("at most 1,2,3.4 ms; port 99999; React 999999999999999999999")
	f.Fuzz(func(_ *testing.T, text string) { Between(text, text) })
}

// What is said in other words than a rule's is found, too.
func TestContradictionInOtherWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fixed, said, kind string }{
		{"The smallest screen is 320 px wide.", "Lay out the page for screens from 1024 px.", "viewport"},
		{"Pages must work from 360px up.", "Design the form for viewports of 1024 px and up.", "viewport"},
		{"No new dependencies.", "Add the package lodash.", "dependencies"},
		{"No new dependencies.", "Add requests to requirements.txt.", "dependencies"},
		{"No new dependencies.", "Import `left-pad` by adding it to the dependencies in package.json.", "dependencies"},
		{"We use PostgreSQL.", "Store the rows in MongoDB.", "store"},
		{"Our database is PostgreSQL.", "Save the drafts in SQLite.", "store"},
		{"Node 16.", "Use Node 20.", "runtime"},
		{"We are on Node 16.", "Bump the image to Node 20.", "runtime"},
		{"Production runs Node 16.", "Upgrade to Node 20.", "runtime"},
		{"Supports Node 16 and later.", "Needs Node 20.", "runtime"},
		{"We use PostgreSQL for all data.", "Store the rows in MongoDB.", "store"},
		{"All data is stored in PostgreSQL.", "Store the rows in MongoDB.", "store"},
		{"No new dependencies.", "Add lodash as a dependency.", "dependencies"},
		{"No new dependencies.", "The step is adding requests==2.31 to requirements.txt.", "dependencies"},
		{"Do not add dependencies.", "Add the package lodash for grouping.", "dependencies"},
		{"The smallest screen is 320 px.", "Lay out the settings page for screens from 1024 px.", "viewport"},
		{"Works from 320 px.", "The page is laid out for screens from 1024 px.", "viewport"},
		{"All times are UTC.", "Store the dates in Europe/Berlin.", "time zone"},
		{"Use UTC everywhere.", "All times are kept in Europe/Berlin.", "time zone"},
		{"All times are stored in UTC.", "Store the dates in Europe/Berlin.", "time zone"},
		{"Timestamps are in UTC.", "Save the time of an order in the zone Europe/Berlin.", "time zone"},
	} {
		found := Against(c.fixed, c.said)
		if len(found) != 1 || found[0].Kind != c.kind {
			t.Errorf("%q and %q: %v, want one of %s", c.fixed, c.said, found, c.kind)
		}
	}
}
