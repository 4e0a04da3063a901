package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/secrets"
	"forge/pipeline/workspace"
)

// madeToken makes up a token as GitHub does: none is in the source, where others'
// scanners would find it.
func madeToken(seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	b := []byte("ghp_")
	for range 36 {
		b = append(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(62)])
	}
	return string(b)
}

// ownSecret is one of Forge's own: it has no shape to know it by.
const ownSecret = "correct horse 9 battery staple"

// guarded lets the fixture's gateway look through what leaves.
func (f *fixture) guarded() *fixture {
	f.gateway.secrets = secrets.New(ownSecret)
	return f
}

// secretFault returns the fault that an error must be.
func secretFault(t *testing.T, err error, secret string) *pipeline.Fault {
	t.Helper()
	var fault *pipeline.Fault
	if !errors.As(err, &fault) || fault.Class != pipeline.FaultSecret || !fault.Final {
		t.Fatalf("error %v; want a final fault of class secret", err)
	}
	if strings.Contains(err.Error()+strings.Join(fault.About, ""), secret) {
		t.Fatalf("the fault holds the secret: %v, about %q", err, fault.About)
	}
	return fault
}

// Covers S25: a commit's added lines, its files' names and its message are looked
// through before any of it is an object; what the repository had is not.
func TestCommitWithholds(t *testing.T) {
	old, token := madeToken(1), madeToken(2)
	f := newFixture(t, map[string]string{"old.yml": "a: 1\ntoken: " + old + "\n", "b.txt": "b\n"}).guarded()
	at := func(path, content string) workspace.CommitOptions { return change(f.head, path, content) }
	named := at("b.txt", "c\n")
	named.Message = "Use it\n\nIt is " + token
	moved := at("new.yml", "token: "+old+"\nmore\n")
	moved.Changes = append(moved.Changes, workspace.Change{Path: "old.yml", Deleted: true})
	copied := at("new.yml", "token: "+old+"\n")
	split := change(f.head, "b.txt", "key = \""+token+"\"\n")
	split.Changes = append(split.Changes, workspace.Change{Path: "c/d.txt", Content: []byte("x\n\n" + token + "\n")})
	for name, tt := range map[string]struct {
		o    workspace.CommitOptions
		want []string // places; none: it is committed
	}{
		"a line":            {at("conf/dev.yml", "a: 1\nb: 2\ntoken: "+token+"\n"), []string{"conf/dev.yml:3 (github-token"}},
		"a changed line":    {at("old.yml", "a: 2\ntoken: "+old+"\nnew: "+token+"\n"), []string{"old.yml:3 (github-token"}},
		"two files":         {split, []string{"b.txt:1 (github-token", "c/d.txt:3 (github-token"}},
		"a file's name":     {at("dir/"+token+".txt", "x\n"), []string{"the name of a file:1 (github-token"}},
		"the message":       {named, []string{"the commit message:3 (github-token"}},
		"Forge's own":       {at("x.go", "// "+ownSecret+"\n"), []string{"x.go:1 (forge-secret"}},
		"what was there":    {at("old.yml", "a: 2\ntoken: "+old+"\n"), nil},
		"what moves":        {moved, nil},
		"what is copied":    {copied, []string{"new.yml:1 (github-token"}},
		"a made-up example": {at("README.md", "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nAKIAIOSFODNN7EXAMPLE\n"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			count := func() string {
				return gitIn(t, "/", nil, "--git-dir="+f.gateway.Dir(f.repo), "cat-file", "--batch-all-objects", "--batch-check")
			}
			before := count()
			sha, err := f.gateway.Commit(t.Context(), f.repo, tt.o)
			if len(tt.want) == 0 {
				if err != nil || !isOID(sha) {
					t.Errorf("Commit = %s, %v; want a commit", sha, err)
				}
				return
			}
			fault := secretFault(t, err, token)
			for _, place := range tt.want {
				if !strings.Contains(fault.Message, place) {
					t.Errorf("the fault %q does not name %q", fault.Message, place)
				}
			}
			if after := count(); after != before {
				t.Error("something of it was written")
			}
		})
	}
}

// Covers S25: what a human lets pass passes, and nothing else in its file; Forge's own
// secrets never.
func TestCommitCleared(t *testing.T) {
	one, two := madeToken(3), madeToken(4)
	f := newFixture(t, sources).guarded()
	o := change(f.head, "fixture.txt", one+"\n")
	_, err := f.gateway.Commit(t.Context(), f.repo, o)
	o.Cleared = secretFault(t, err, one).About
	if len(o.Cleared) != 1 {
		t.Fatalf("about %q; want one name", o.Cleared)
	}
	first := f.mustCommit(t, o)
	if err := f.gateway.Push(t.Context(), f.repo, "", workspace.PushOptions{Branch: "forge/x", SHA: first, Base: f.head, Cleared: o.Cleared}); err != nil {
		t.Errorf("push of what was let pass: %v", err)
	}
	for name, content := range map[string]string{"another one": one + "\n" + two + "\n", "on the same line": one + " " + two + "\n"} {
		o.Changes = []workspace.Change{{Path: "fixture.txt", Content: []byte(content)}}
		if fault := secretFault(t, ignoreSHA(f.gateway.Commit(t.Context(), f.repo, o)), two); len(fault.About) != 1 || slices.Equal(fault.About, o.Cleared) {
			t.Errorf("%s: about %q", name, fault.About)
		}
	}
	o.Changes = []workspace.Change{{Path: "fixture.txt", Content: []byte(one + "\n" + ownSecret + "\n")}}
	if fault := secretFault(t, ignoreSHA(f.gateway.Commit(t.Context(), f.repo, o)), ownSecret); len(fault.About) > 0 {
		t.Errorf("Forge's own secret can be let pass: %q", fault.About)
	}
	var many strings.Builder
	for seed := range uint64(150) {
		fmt.Fprintln(&many, madeToken(100+seed))
	}
	o.Changes = []workspace.Change{{Path: "many.txt", Content: []byte(many.String())}}
	if fault := secretFault(t, ignoreSHA(f.gateway.Commit(t.Context(), f.repo, o)), madeToken(100)); len(fault.About) > 0 {
		t.Errorf("what nobody is shown can be let pass: %q", fault.About)
	}
}

func ignoreSHA(_ string, err error) error { return err }

// Covers S25: a push looks through the whole history that the remote lacks: what one
// commit adds and the next takes away would be there for good.
func TestPushWithholds(t *testing.T) {
	token := madeToken(5)
	f := newFixture(t, map[string]string{"old.yml": "token: " + madeToken(6) + "\n"})
	one := f.mustCommit(t, change(f.head, "conf.yml", "a: 1\ntoken: "+token+"\n"))
	two := f.mustCommit(t, change(one, "conf.yml", "a: 1\n"))
	three := f.mustCommit(t, change(two, "more.txt", "more\n"))
	f.guarded()
	for name, o := range map[string]workspace.PushOptions{
		"a new branch": {Branch: "forge/a", SHA: three, Base: f.head}, "without a base": {Branch: "forge/b", SHA: three},
		"the commit alone": {Branch: "forge/c", SHA: one, Base: f.head},
	} {
		fault := secretFault(t, f.gateway.Push(t.Context(), f.repo, "", o), token)
		if !strings.Contains(fault.Message, "conf.yml:2 (github-token, ghp_… (40 characters))") {
			t.Errorf("%s: %s", name, fault.Message)
		}
		if got := gitMay(f.remote, "rev-parse", "-q", "--verify", "refs/heads/"+o.Branch); got != "" {
			t.Errorf("%s: the branch is there, at %s", name, got)
		}
	}
	if err := f.gateway.Push(t.Context(), f.repo, "",
		workspace.PushOptions{Branch: "forge/" + token, SHA: f.head, Base: f.head}); !strings.Contains(secretFault(t, err, token).Message,
		"the branch's name:1") {
		t.Errorf("a branch's name: %v", err)
	}
	if found := gitMay(f.remote, "cat-file", "-t", one); found != "" {
		t.Errorf("the remote has the commit: %s", found)
	}
	// What the remote has already is nobody's leak of now.
	if err := f.gateway.Push(t.Context(), f.repo, "",
		workspace.PushOptions{Branch: "forge/clean", SHA: f.mustCommit(t, change(f.head, "x.txt", "x\n")), Base: f.head}); err != nil {
		t.Error(err)
	}
}
