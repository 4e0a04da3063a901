package feedback

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// branch is a pull request's commits, each with the files as they are after it.
type branch struct {
	Source
	commits []Commit
	files   map[string]map[string]string // by commit, by path
	patches map[string][]Patch
}

func (b *branch) Commits(context.Context) ([]Commit, error) { return b.commits, nil }

func (b *branch) File(_ context.Context, sha, path string) (string, error) {
	return b.files[sha][path], nil
}

func (b *branch) Patch(_ context.Context, sha string) ([]Patch, error) { return b.patches[sha], nil }

func (b *branch) Files(context.Context) (out []Patch, _ error) {
	for p := range b.files[b.commits[len(b.commits)-1].SHA] {
		out = append(out, Patch{Path: p})
	}
	return out, nil
}

func (b *branch) Weight(context.Context, pipeline.Actor) (float64, error) { return 0.8, nil }

// What a person made of a suggestion is theirs as long as its code stands, although a forced
// push has taken the commits away by which it was known, and it is never said to be ignored.
func TestSuggestionAfterForcedPush(t *testing.T) {
	t.Parallel()
	th := forgeTalk("aaaa")
	th.Comments[0].Body += "\n```suggestion\nconst total = base + part;\n```"
	text := func(line string) string { return "one\ntwo\nthree\n" + line + "\nfive\nsix\nseven\neight\n" }
	const old, applied, rewritten, news = "line four stands here", "const total = base + part;", "const total = sum(base, part);", "# News\n"
	commit := func(sha string, by pipeline.Actor) Commit {
		return Commit{SHA: sha, Author: by, Parents: 1, At: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	}
	forge := pipeline.Actor{ID: botID, Bot: true}
	hunk := func(path, from, to string) []Patch {
		return []Patch{{Path: path, Hunks: fmt.Sprintf("@@ -4 +4 @@\n-%s\n+%s\n", from, to), Lines: 2}}
	}
	type files = map[string]string
	for _, c := range []struct {
		name, mine string
		seen       bool   // before the forced push
		head       files  // after it
		want       string // what holds in the end, and by whom
		n          int    // signals after the first look
	}{
		{"applied, rebased, then another file", applied, true, files{"retry.go": text(applied), "README.md": news}, "applied alice", 0},
		{"rewritten, rebased, then another file", rewritten, true, files{"retry.go": text(rewritten), "README.md": news}, "rewritten alice", 0},
		{"applied, rebased, not looked at before", applied, false, files{"retry.go": text(applied), "README.md": news}, "applied alice", 1},
		{"rewritten, rebased, not looked at before", rewritten, false, files{"retry.go": text(rewritten), "README.md": news}, "rewritten alice", 1},
		{"applied, rebased and moved", applied, true, files{"again.go": text(applied), "retry.go": "package again\n"}, "applied alice", 0},
		{"rewritten, rebased and moved", rewritten, true, files{"again.go": text(rewritten), "retry.go": "package again\n"}, "rewritten alice", 0},
		{"applied, rebased, and main merged", applied, true, files{"retry.go": text(applied)}, "applied alice", 0},
		{"applied, and put back", applied, true, files{"retry.go": text(old), "README.md": news}, "ignored boss", 2},
		{"moved, and not looked at before", applied, false, files{"again.go": text(applied), "retry.go": text(old)}, "", 0},
	} {
		src := &branch{files: map[string]files{"c0": {"retry.go": text(old)}, "p": {"retry.go": text(c.mine)}, "c1": {"retry.go": text(old)},
			"p1": {"retry.go": text(c.mine)}, "q": c.head},
			patches: map[string][]Patch{"p": hunk("retry.go", old, c.mine), "p1": hunk("retry.go", old, c.mine), "q": hunk("README.md", "a", "b")}}
		var all []pipeline.Signal
		look := func(state string, commits ...Commit) int {
			st := &Pull{State: state, Number: 8, Node: "PR_8", Merger: boss, Ended: time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC), Threads: []Thread{th}}
			src.commits = commits
			g := tester(st, pipeline.Notice{}, all...)
			g.src, g.history.loaded = src, false
			got, err := g.finish(context.Background(), g.all)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, s := range got {
				if s.Key == keySuggestion(501) {
					all = append(all, s)
					n++
				}
			}
			return n
		}
		if c.seen && look("OPEN", commit("c0", forge), commit("p", alice)) != 1 {
			t.Fatalf("%s: %+v at first", c.name, all)
		}
		n := 0
		for _, state := range []string{"OPEN", "OPEN", "MERGED"} {
			last := commit("q", boss)
			if strings.Contains(c.name, "main merged") {
				last.Parents = 2
			}
			n += look(state, commit("c1", forge), commit("p1", alice), last)
		}
		got := ""
		if len(all) > 0 && !all[len(all)-1].Off {
			last := all[len(all)-1]
			got = strings.TrimPrefix(string(last.Kind), "fix_") + " " + last.Actor.Login
		}
		if got != c.want || n != c.n {
			t.Errorf("%s: %q by %d signals, want %q by %d:\n%+v", c.name, got, n, c.want, c.n, all)
		}
	}
}
