package githubtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const zeroSHA = "0000000000000000000000000000000000000000"

// preReceive holds a push against the branch rules and the permission for
// workflow files. The rules are lines "TYPE PATTERN VALUE" in the file forge-rules.
const preReceive = `#!/bin/sh
# Refuses what GitHub would refuse. Objects of the push are visible, but not kept yet.
zero=0000000000000000000000000000000000000000
fail=0
while read -r old new ref; do
  if [ -f forge-rules ]; then
    while read -r kind pattern value; do
      case "$ref" in
      refs/heads/$pattern)
        why=
        case "$kind" in
        update) why="Cannot update this protected ref." ;;
        pull_request) why="Changes must be made through a pull request." ;;
        creation) [ "$old" = "$zero" ] && why="Cannot create ref due to creations being restricted." ;;
        deletion) [ "$new" = "$zero" ] && why="Cannot delete this protected ref." ;;
        required_signatures)
          # Nothing here signs but the API.
          [ "$new" != "$zero" ] && [ -n "$(git rev-list -n 1 "$new" --not --all)" ] && why="Commits must have verified signatures." ;;
        branch_name_pattern)
          case "${ref#refs/heads/}" in $value*) ;; *) why="Branch name must start with a matching pattern: $value" ;; esac ;;
        file_path_restriction)
          if [ "$new" != "$zero" ]; then
            file=$(git log --format= --name-only "$new" --not --all -- ":(glob)$value" | head -n 1)
            [ -n "$file" ] && why="File path is restricted: $file"
          fi ;;
        non_fast_forward)
          if [ "$old" != "$zero" ] && [ "$new" != "$zero" ] && ! git merge-base --is-ancestor "$old" "$new"; then
            why="Cannot force-push to this branch"
          fi ;;
        esac
        if [ -n "$why" ]; then
          echo "error: GH013: Repository rule violations found for $ref." >&2
          echo "Review all repository rules at $FORGE_HTML_URL/rules?ref=$ref" >&2
          echo "" >&2
          echo "- $why" >&2
          echo "" >&2
          fail=1
        fi ;;
      esac
    done <forge-rules
  fi
  if [ -n "$FORGE_NO_WORKFLOWS" ] && [ "$new" != "$zero" ]; then
    file=$(git log --format= --name-only --diff-merges=first-parent "$new" --not --all -- .github/workflows | head -n 1)
    if [ -n "$file" ]; then
      echo "refusing to allow a GitHub App to create or update workflow '$file' without 'workflows' permission" | tr "'" '\140' >&2
      fail=1
    fi
  fi
done
exit $fail
`

// prepareGit makes the folders: empty hooks for new repositories, a home without settings.
func prepareGit(dir string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("git is needed to serve repositories: install git 2.39 or newer")
	}
	for _, d := range []string{"repos", "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("make the repositories' folder: %w", err)
		}
	}
	return nil
}

// gitEnv is what every git process here runs with: nothing of the machine's settings.
func (s *Server) gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "LC_ALL=C", "TZ=UTC",
	}
}

// maxAsked bounds the answers that are kept; then all are forgotten.
const maxAsked = 4096

// asked keeps git's answers to questions about objects, which never change. Asking
// takes a process each time.
type asked struct {
	mu      sync.Mutex
	answers map[string]gitAnswer
}

type gitAnswer struct {
	out string
	err error
}

// once asks git what holds for ever.
func (s *Server) once(r *repository, args ...string) (string, error) {
	key := r.dir + "\x00" + strings.Join(args, "\x00")
	s.asked.mu.Lock()
	a, known := s.asked.answers[key]
	s.asked.mu.Unlock()
	if known {
		return a.out, a.err
	}
	a.out, a.err = s.gitIn(r, nil, args...)
	var exit *exec.ExitError
	if a.err == nil || errors.As(a.err, &exit) && exit.ExitCode() == 1 { // else an object may not be there yet
		s.asked.mu.Lock()
		defer s.asked.mu.Unlock()
		if s.asked.answers == nil || len(s.asked.answers) >= maxAsked {
			s.asked.answers = map[string]gitAnswer{}
		}
		s.asked.answers[key] = a
	}
	return a.out, a.err
}

// gitIn runs git in a repository with the given input and returns its output.
func (s *Server) gitIn(r *repository, in []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = s.gitEnv()
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s in %s: %w: %s", args[0], r.fullName(), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

func (s *Server) git(r *repository, args ...string) (string, error) {
	out, err := s.gitIn(r, nil, args...)
	return strings.TrimRight(out, "\n"), err
}

// initRepo makes a bare repository. What is pushed into it stays in loose objects, up to
// a hundred at once.
func (s *Server) initRepo(r *repository) error {
	var errs []error
	for _, dir := range []string{"hooks", "objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		errs = append(errs, os.MkdirAll(filepath.Join(r.dir, filepath.FromSlash(dir)), 0o755))
	}
	for name, text := range map[string]string{
		"HEAD": "ref: refs/heads/" + r.defaultBranch + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tlogAllRefUpdates = false\n" +
			"[http]\n\treceivepack = true\n[receive]\n\thideRefs = refs/pull\n\tautogc = false\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n[gc]\n\tauto = 0\n",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
	}
	errs = append(errs, os.WriteFile(filepath.Join(r.dir, "hooks", "pre-receive"), []byte(preReceive), 0o755))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("make repository %s: %w", r.fullName(), err)
	}
	return nil
}

// readRefs reads all branches and tags.
func (s *Server) readRefs(r *repository) (map[string]string, error) {
	refs := map[string]string{}
	for _, kind := range []string{"heads", "tags"} {
		err := filepath.WalkDir(filepath.Join(r.dir, "refs", kind), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
				return err
			}
			sha, err := os.ReadFile(path)
			name, _ := filepath.Rel(r.dir, path) // it is below it
			refs[filepath.ToSlash(name)] = strings.TrimSpace(string(sha))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read refs of %s: %w", r.fullName(), err)
		}
	}
	return refs, nil
}

// commitRequest describes a commit that is made here rather than pushed.
type commitRequest struct {
	parent    string // empty for a root commit
	merged    string // a second parent; what it holds is in files
	message   string
	author    *account
	committer string // "NAME <MAIL>"; the author's when empty
	files     map[string]*string
}

const webFlow = "GitHub <noreply@github.com>"

// commit writes a commit with changed files (nil deletes one) and returns its id.
// No branch moves.
func (s *Server) commit(r *repository, c commitRequest) (string, error) {
	files := map[string]treeFile{}
	for name, text := range c.files {
		if err := checkPath(name); err != nil {
			return "", err
		}
		if text == nil {
			files[name] = treeFile{}
			continue
		}
		sha, err := r.write("blob", *text)
		if err != nil {
			return "", err
		}
		files[name] = treeFile{modeFile, sha}
		if strings.HasPrefix(*text, "#!") {
			files[name] = treeFile{modeExec, sha}
		}
	}
	var parents []string
	base := ""
	if c.parent != "" {
		p, err := s.commitAt(r, c.parent)
		if err != nil {
			return "", err
		}
		base, parents = p.Tree, append(parents, c.parent)
	}
	if c.merged != "" {
		parents = append(parents, c.merged)
	}
	tree, err := s.changeTree(r, base, files)
	if err != nil {
		return "", err
	}
	author := person(c.author.login, c.author.mail(), s.now())
	committer := author
	if c.committer != "" {
		committer = fmt.Sprintf("%s %d +0000", c.committer, s.now().Unix())
	}
	return r.writeCommit(tree, parents, author, committer, c.message)
}

func checkPath(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.HasPrefix(name, ".git/") || strings.ContainsAny(name, "\n\x00") {
		return fmt.Errorf("%q is no path of a file in a repository: give it relative, with slashes, and no dots for a parent", name)
	}
	return nil
}

// show reads a file at a commit or branch. It says fs.ErrNotExist when it is not there.
func (s *Server) show(r *repository, rev, path string) (string, error) {
	if sha, found := s.resolve(r, rev); found {
		if f, err := s.find(r, sha, path); err == nil {
			if kind, text, err := s.object(r, f.sha); err == nil && kind == "blob" {
				return text, nil
			}
		}
	}
	return "", fmt.Errorf("read %s at %s: %w", path, rev, fs.ErrNotExist)
}

// resolve turns a branch, tag or object id into a commit id.
func (s *Server) resolve(r *repository, rev string) (string, bool) {
	if strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, " :^~@{\\?*[") || rev == "" {
		return "", false
	}
	for _, name := range []string{"refs/heads/" + rev, "refs/tags/" + rev, rev} {
		if sha := r.refs[name]; sha != "" && !strings.HasPrefix(name, "refs/tags/") {
			return sha, true
		}
	}
	if isHex(rev) {
		c, err := s.commitAt(r, rev)
		return c.SHA, err == nil
	}
	out, err := s.git(r, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	return out, err == nil && out != ""
}

// setRef moves, makes or deletes (new is zero) a ref and tells the world.
func (s *Server) setRef(r *repository, ref, sha string, by *account) error {
	old := r.refs[ref]
	if err := s.writeRef(r, ref, sha, ""); err != nil {
		return err
	}
	s.refMoved(r, ref, old, sha, by)
	return nil
}
