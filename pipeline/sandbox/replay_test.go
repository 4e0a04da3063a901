package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"forge/pipeline/workspace"
)

// What an API that takes whole files cannot say is refused by name, and what has lost
// commits elsewhere (quoted names, copies, renames) is listed as it is.
func TestReplays(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n", "run.sh": "#!/bin/sh\n"})
	dir := f.gateway.Dir(f.repo)
	git := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"--git-dir=" + dir, "-c", "user.name=f", "-c", "user.email=f@example.com"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	blob := git("x\n", "hash-object", "-w", "--stdin")
	// by makes a commit whose tree has these entries instead of the base's own.
	by := func(entries string, parents ...string) string {
		tree := git(strings.ReplaceAll(entries, "|", "\x00")+"\x00", "mktree", "-z")
		args := []string{"commit-tree", tree, "-m", "subject\n\nbody"}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		return git("", args...)
	}
	plain := func(names ...string) string {
		var b []string
		for _, n := range names {
			b = append(b, fmt.Sprintf("100644 blob %s\t%s", blob, n))
		}
		return strings.Join(b, "|")
	}
	linked := by("120000 blob "+blob+"\tlink", f.head)
	grouped := by("160000 commit "+f.head+"\tsub", f.head)
	for _, c := range []struct {
		name, sha, old string
		want           string // the changes, or words of the refusal
	}{
		{"names that git would quote", by(plain(`"quoted"`, "-dash", "tab\tname", "ö ß", "with space"), f.head), "",
			"\"quoted\" -dash D a.txt D dir/b.txt D run.sh tab\tname with space ö ß"},
		{"copies are files", by(plain("copy", "copy2"), f.head), "", "D a.txt copy copy2 D dir/b.txt D run.sh"},
		{"a link goes", by(plain("a"), linked), linked, "a D link"},
		{"a link comes", linked, "", "! symbolic link \"link\""},
		{"a file takes a link's place", by(plain("link"), linked), linked, "! symbolic link \"link\""},
		{"a submodule comes", grouped, "", "! submodule \"sub\""},
		{"a submodule moves", by("160000 commit "+linked+"\tsub", grouped), grouped, "! submodule \"sub\""},
		{"a submodule goes", by(plain("a"), grouped), grouped, "! submodule \"sub\""},
		{"a program comes", by("100755 blob "+blob+"\trun", f.head), "", "! executable bit of \"run\""},
		{"a program is changed", by("100755 blob "+blob+"\trun.sh", f.head), "", "! executable bit of \"run.sh\""},
		{"a program becomes a file", by(plain("run.sh"), f.head), "", "D a.txt D dir/b.txt run.sh"},
		{"a name that is no text", by(plain("\xff"), f.head), "", "! not UTF-8"},
		{"a merge", by(plain("m"), f.head, linked), "", "merge of " + linked},
		{"an octopus", by(plain("m"), f.head, linked, grouped), "", "! more than two branches"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := f.gateway.Replays(t.Context(), f.repo, workspace.PushOptions{Branch: "forge/x", SHA: c.sha, Old: c.old, Base: f.head})
			if words, refused := strings.CutPrefix(c.want, "! "); refused {
				var r *workspace.RejectedError
				if !errors.As(err, &r) || !strings.Contains(r.Reason, words) {
					t.Fatalf("Replays = %v, want a refusal with %q", err, words)
				}
				return
			}
			if err != nil || len(list) != 1 {
				t.Fatalf("Replays = %d, %v", len(list), err)
			}
			var got []string
			for _, ch := range list[0].Changes {
				if ch.Deleted {
					got = append(got, "D")
				} else if string(ch.Content) != "x\n" {
					t.Errorf("%s holds %q", ch.Path, ch.Content)
				}
				got = append(got, ch.Path)
			}
			if m := list[0].Merged; m != "" {
				got = append(got, "merge of "+m)
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("changes %q, want %q", s, c.want)
			}
			if list[0].Message != "subject\n\nbody\n" || list[0].Tree == "" {
				t.Errorf("message %q, tree %q", list[0].Message, list[0].Tree)
			}
		})
	}
}

// The checks of a push hold here, too.
func TestReplaysAreChecked(t *testing.T) {
	f := newFixture(t, map[string]string{"a.txt": "a\n"})
	one := f.mustCommit(t, change(f.head, "a.txt", "b\n"))
	big := change(f.head, "big.bin", "")
	big.Changes = []workspace.Change{{Path: "big.bin", Content: bytes.Repeat([]byte{1}, maxReplay+1)}}
	for _, c := range []struct {
		o     workspace.PushOptions
		words string
	}{
		{workspace.PushOptions{Branch: "main", SHA: one, Base: f.head}, "only branches under forge/"},
		{workspace.PushOptions{Branch: "forge/x", SHA: f.head, Old: one, Base: f.head}, "commits would be lost"},
		{workspace.PushOptions{Branch: "forge/x", SHA: one}, "not a full commit SHA"},
		{workspace.PushOptions{Branch: "forge/x", SHA: f.mustCommit(t, big), Base: f.head}, "takes no 30 MB at once"},
	} {
		if _, err := f.gateway.Replays(t.Context(), f.repo, c.o); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("Replays(%+v) = %v, want %q", c.o, err, c.words)
		}
	}
	if list, err := f.gateway.Replays(t.Context(), f.repo,
		workspace.PushOptions{Branch: "forge/x", SHA: f.mustCommit(t, change(one, "c.txt", "c\n")), Old: f.head, Base: f.head}); err != nil ||
		len(list) != 2 || list[0].SHA != one {
		t.Errorf("two commits: %+v, %v", list, err)
	}
}
