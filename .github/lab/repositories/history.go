package repositories

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"forge/pipeline/testname"
)

// commit is one of a project's history: what the files were, and what it made of them.
type commit struct {
	SHA, Subject string
	Files        map[string]string  // before it
	Change       map[string]*string // nil: removed
	Tests        map[string]bool    // the files of Change that hold tests, or what tests read
	Wrong        string             // what of Change is not as the commit has it
}

const (
	mostFiles = 20      // of a change
	mostBytes = 200_000 // of a file that is changed
)

// commits returns the commits that are named, else the newest n changes of code with its tests; or of
// a file whose name matches one of touching, such as Makefile. Merges, changes of what runs
// in a project's own CI, of what is no text and of many files are passed over.
func commits(ctx context.Context, clone string, n int, named, touching []string) ([]commit, error) {
	if len(named) == 0 {
		list, err := git(ctx, clone, "log", "--no-merges", "--format=%H", "--max-count=3000", "HEAD", "--")
		if err != nil {
			return nil, err
		}
		named = strings.Fields(string(list))
	}
	var out []commit
	for _, sha := range named {
		if len(out) == n {
			break
		}
		c, err := change(ctx, clone, sha, touching)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		if c.Files, err = files(ctx, clone, sha+"^"); err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	return out, nil
}

// change reads what a commit changed; nil: it is passed over.
func change(ctx context.Context, clone, sha string, touching []string) (*commit, error) {
	status, err := git(ctx, clone, "diff-tree", "-r", "-z", "--no-commit-id", "--no-renames", "--name-status", sha)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimSuffix(string(status), "\x00"), "\x00")
	if len(fields) < 2 || len(fields) > 2*mostFiles {
		return nil, nil
	}
	subject, err := git(ctx, clone, "log", "-1", "--format=%s", sha)
	if err != nil {
		return nil, err
	}
	c := &commit{SHA: sha, Subject: strings.TrimSpace(string(subject)), Change: map[string]*string{}, Tests: map[string]bool{}}
	tests, code, touches := false, false, false
	for i := 0; i+1 < len(fields); i += 2 {
		how, name := fields[i], fields[i+1]
		if strings.HasPrefix(name, ".") {
			return nil, nil
		}
		ofTests := testname.IsFile(name) || testname.IsData(name) && strings.Contains(name, "test")
		tests, code = tests || testname.IsFile(name), code || !ofTests && !testname.IsData(name)
		touches = touches || slices.ContainsFunc(touching, func(glob string) bool { ok, _ := path.Match(glob, path.Base(name)); return ok })
		c.Tests[name] = ofTests
		if how == "D" {
			c.Change[name] = nil
			continue
		}
		text, err := git(ctx, clone, "cat-file", "blob", sha+":"+name)
		if err != nil || len(text) > mostBytes || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			return nil, nil // a submodule, or no text
		}
		content := string(text)
		c.Change[name] = &content
	}
	if len(touching) > 0 && !touches || len(touching) == 0 && (!tests || !code) {
		return nil, nil
	}
	return c, nil
}

// files are all plain files of a commit, by path.
func files(ctx context.Context, clone, sha string) (map[string]string, error) {
	packed, err := git(ctx, clone, "archive", "--format=tar", sha)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the files of %s: %w", sha, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read the files of %s: %w", sha, err)
		}
		out[h.Name] = string(text)
	}
}

// alone is a commit's tests without their code.
func (c commit) alone() commit {
	c.Change = maps.Clone(c.Change)
	maps.DeleteFunc(c.Change, func(name string, _ *string) bool { return !c.Tests[name] })
	return c
}

func git(ctx context.Context, clone string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", clone}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_NO_LAZY_FETCH=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s in %s: %w: %s", args[0], clone, err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}
