package githubtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"forge/pipeline/lazyregexp"
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

// fixed are revisions that always mean the same: whole object ids, with a path,
// a type or a second one behind them.
var fixed = lazyregexp.New(`^\^?[0-9a-f]{40}(?::.*|\^\{\w+\}|\.\.\.?[0-9a-f]{40})?$`)

// maxAsked bounds the answers that are kept; then all are forgotten.
const maxAsked = 4096

// asked keeps git's answers to questions about objects, which never change. Asking
// takes a process each time.
type asked struct {
	mu      sync.Mutex
	answers map[string]string
}

// key names a question whose answer holds for ever, or is empty.
func (a *asked) key(r *repository, args []string) string {
	rest := args
	for len(rest) > 1 && rest[0] == "-c" {
		rest = rest[2:]
	}
	switch rest[0] {
	case "cat-file", "diff", "diff-tree", "log", "merge-base", "merge-tree", "rev-parse":
	default:
		return ""
	}
	found := false
	for _, arg := range rest[1:] {
		switch {
		case arg == "--":
			return ""
		case strings.HasPrefix(arg, "-"), arg == "blob":
		case fixed.MatchString(arg):
			found = true
		case strings.Trim(arg, "0123456789") != "": // a number of commits is fine
			return ""
		}
	}
	if !found {
		return ""
	}
	return r.dir + "\x00" + strings.Join(args, "\x00")
}

func (a *asked) get(key string) (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out, ok := a.answers[key]
	return out, ok && key != ""
}

func (a *asked) put(key, answer string) {
	if key == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers == nil || len(a.answers) >= maxAsked {
		a.answers = map[string]string{}
	}
	a.answers[key] = answer
}

// gitIn runs git in a repository with the given input and returns its output.
func (s *Server) gitIn(r *repository, env []string, in []byte, args ...string) (string, error) {
	key := ""
	if env == nil && in == nil {
		key = s.asked.key(r, args)
	}
	if out, ok := s.asked.get(key); ok {
		return out, nil
	}
	cmd := exec.CommandContext(s.ctx, "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(s.gitEnv(), env...)
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s in %s: %w: %s", args[0], r.fullName(), err, strings.TrimSpace(errs.String()))
	}
	s.asked.put(key, out.String())
	return out.String(), nil
}

func (s *Server) git(r *repository, args ...string) (string, error) {
	out, err := s.gitIn(r, nil, nil, args...)
	return strings.TrimRight(out, "\n"), err
}

func (s *Server) initRepo(r *repository) error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return fmt.Errorf("make repository %s: %w", r.fullName(), err)
	}
	if _, err := s.git(r, "init", "--bare", "--quiet", "--template=", "--initial-branch="+r.defaultBranch, "."); err != nil {
		return err
	}
	config := "[http]\n\treceivepack = true\n[receive]\n\thideRefs = refs/pull\n\tautogc = false\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n[gc]\n\tauto = 0\n[core]\n\tlogAllRefUpdates = false\n"
	f, err := os.OpenFile(filepath.Join(r.dir, "config"), os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("configure repository %s: %w", r.fullName(), err)
	}
	_, err = f.WriteString(config)
	if err := errors.Join(err, f.Close(), os.MkdirAll(filepath.Join(r.dir, "hooks"), 0o755)); err != nil {
		return fmt.Errorf("configure repository %s: %w", r.fullName(), err)
	}
	return os.WriteFile(filepath.Join(r.dir, "hooks", "pre-receive"), []byte(preReceive), 0o755)
}

// readRefs asks git for all branches and tags.
func (s *Server) readRefs(r *repository) (map[string]string, error) {
	out, err := s.git(r, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	refs := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if sha, name, ok := strings.Cut(line, " "); ok {
			refs[name] = sha
		}
	}
	return refs, err
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
	who := fmt.Sprintf("%s <%s>", c.author.login, c.author.mail())
	committer := c.committer
	if committer == "" {
		committer = who
	}
	var b bytes.Buffer
	when := s.now().Unix()
	data := func(text string) { fmt.Fprintf(&b, "data %d\n%s\n", len(text), text) }
	fmt.Fprintf(&b, "commit refs/forge/new\nmark :1\nauthor %s %d +0000\ncommitter %s %d +0000\n", who, when, committer, when)
	data(c.message)
	if c.parent != "" {
		fmt.Fprintf(&b, "from %s\n", c.parent)
	}
	if c.merged != "" {
		fmt.Fprintf(&b, "merge %s\n", c.merged)
	}
	names := make([]string, 0, len(c.files))
	for name := range c.files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if err := checkPath(name); err != nil {
			return "", err
		}
		if text := c.files[name]; text == nil {
			fmt.Fprintf(&b, "D %s\n", strconv.Quote(name))
		} else {
			mode := "100644"
			if strings.HasPrefix(*text, "#!") {
				mode = "100755"
			}
			fmt.Fprintf(&b, "M %s inline %s\n", mode, strconv.Quote(name))
			data(*text)
		}
	}
	b.WriteString("\nget-mark :1\ndone\n")
	out, err := s.gitIn(r, nil, b.Bytes(), "fast-import", "--quiet", "--force", "--done", "--date-format=raw")
	if err != nil {
		return "", err
	}
	if _, err := s.git(r, "update-ref", "-d", "refs/forge/new"); err != nil {
		return "", err
	}
	return strings.TrimSpace(out), nil
}

func checkPath(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.HasPrefix(name, ".git/") || strings.ContainsAny(name, "\n\x00") {
		return fmt.Errorf("%q is no path of a file in a repository: give it relative, with slashes, and no dots for a parent", name)
	}
	return nil
}

// show reads a file at a commit or branch. It says fs.ErrNotExist when it is not there.
func (s *Server) show(r *repository, rev, path string) (string, error) {
	out, err := s.gitIn(r, nil, nil, "cat-file", "blob", rev+":"+path)
	if err != nil {
		return "", fmt.Errorf("read %s at %s: %w", path, rev, fs.ErrNotExist)
	}
	return out, nil
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
	out, err := s.git(r, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	return out, err == nil && out != ""
}

// commitInfo is what git knows about a commit.
type commitInfo struct {
	SHA, Tree, Message               string
	Author, AuthorMail, AuthorDate   string
	Committer, CommitMail, CommitDat string
	Parents                          []string
}

// log lists commits, the newest first, as git's arguments choose them.
func (s *Server) gitLog(r *repository, args ...string) ([]commitInfo, error) {
	format := "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x01"
	out, err := s.git(r, append([]string{"log", format}, args...)...)
	if err != nil {
		return nil, err
	}
	var list []commitInfo
	for _, rec := range strings.Split(out, "\x01") {
		f := strings.Split(strings.TrimPrefix(rec, "\n"), "\x00")
		if len(f) != 10 {
			continue
		}
		list = append(list, commitInfo{
			SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]), Author: f[3], AuthorMail: f[4], AuthorDate: gitDate(f[5]),
			Committer: f[6], CommitMail: f[7], CommitDat: gitDate(f[8]), Message: strings.TrimRight(f[9], "\n"),
		})
	}
	return list, nil
}

func gitDate(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.UTC().Format(time.RFC3339)
}

// setRef moves, makes or deletes (new is zero) a ref and tells the world.
func (s *Server) setRef(r *repository, ref, sha string, by *account) error {
	old := r.refs[ref]
	args := []string{"update-ref", ref, sha}
	if sha == zeroSHA {
		args = []string{"update-ref", "-d", ref}
	}
	if _, err := s.git(r, args...); err != nil {
		return err
	}
	s.refMoved(r, ref, old, sha, by)
	return nil
}

// mergeBase returns the best common ancestor, or a when there is none.
func (s *Server) mergeBase(r *repository, a, b string) string {
	if out, err := s.git(r, "merge-base", a, b); err == nil && out != "" {
		return out
	}
	return a
}
