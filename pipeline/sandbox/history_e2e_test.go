//go:build e2e

package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"forge/pipeline/secrets"
)

// TestFalseAlarms counts the commits of real repositories that would not be pushed. The
// bare repositories are listed in FORGE_HISTORIES, apart by colons; of each, its newest
// FORGE_HISTORY commits are looked through as those of a push are.
func TestFalseAlarms(t *testing.T) {
	if os.Getenv("FORGE_HISTORIES") == "" {
		t.Skip("needs histories: set FORGE_HISTORIES to bare repositories, apart by colons")
	}
	most := 1000
	if s := os.Getenv("FORGE_HISTORY"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("FORGE_HISTORY: %v", err)
		}
		most = n
	}
	bin, err := findGit()
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{secrets: secrets.New()}
	all, withheld := 0, 0
	for _, dir := range filepath.SplitList(os.Getenv("FORGE_HISTORIES")) {
		git := git{bin: bin, dir: dir}
		out, err := git.run(t.Context(), gitCall{args: []string{"rev-list", "--no-merges", "--max-count=" + strconv.Itoa(most), "HEAD", "--"}})
		if err != nil {
			t.Fatal(err)
		}
		shas, hits := strings.Fields(string(out)), 0
		for _, sha := range shas {
			l, err := leavingWith(t.Context(), git, sha)
			if err != nil {
				t.Errorf("%s %s: %v", dir, sha, err)
				continue
			}
			found, err := g.leaks(t.Context(), l)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 0 {
				hits++
				t.Logf("%s %.10s: %s:%d %s: %s, of %d", filepath.Base(filepath.Dir(dir)), sha, found[0].File, found[0].Line, found[0].Rule, found[0].Redacted, len(found))
			}
		}
		t.Logf("%s: %d of %d commits", filepath.Base(filepath.Dir(dir)), hits, len(shas))
		all, withheld = all+len(shas), withheld+hits
	}
	t.Logf("%d of %d commits would be held back", withheld, all)
}
