package githubtest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What git keeps is read and written here in git's own form: a process for each question
// would take most of the time of a test. Git itself makes diffs and merges, and serves
// fetches and pushes.

const (
	modeFile = "100644"
	modeExec = "100755"
	modeTree = "40000"
)

// object reads an object.
func (s *Server) object(r *repository, sha string) (kind, content string, err error) {
	if !isHex(sha) {
		return "", "", fmt.Errorf("%q is no object's id: %w", sha, fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(r.dir, "objects", sha[:2], sha[2:]))
	if err != nil {
		return s.packed(r, sha)
	}
	defer f.Close()
	var head string
	z, err := zlib.NewReader(f)
	if err == nil {
		var data []byte
		data, err = io.ReadAll(z)
		head, content, _ = strings.Cut(string(data), "\x00")
	}
	if err != nil {
		return "", "", fmt.Errorf("read object %s: %w", sha, err)
	}
	kind, _, _ = strings.Cut(head, " ")
	return kind, content, nil
}

// packed reads an object from the packs that git keeps of large pushes.
func (s *Server) packed(r *repository, sha string) (kind, content string, err error) {
	packs, err := filepath.Glob(filepath.Join(r.dir, "objects", "pack", "*.pack"))
	if err == nil && len(packs) > 0 {
		var out string
		out, err = s.gitIn(r, []byte(sha+"\n"), "cat-file", "--batch")
		head, content, _ := strings.Cut(out, "\n")
		if f := strings.Fields(head); len(f) == 3 {
			return f[1], strings.TrimSuffix(content, "\n"), err
		}
	}
	return "", "", errors.Join(fmt.Errorf("object %s: %w", sha, fs.ErrNotExist), err)
}

// write keeps an object and returns its id.
func (r *repository) write(kind, content string) (sha string, err error) {
	data := fmt.Sprintf("%s %d\x00%s", kind, len(content), content)
	sum := sha1.Sum([]byte(data))
	sha = hex.EncodeToString(sum[:])
	file := filepath.Join(r.dir, "objects", sha[:2], sha[2:])
	if _, err := os.Stat(file); err == nil {
		return sha, nil
	}
	var b bytes.Buffer
	z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // a level that there is
	_, err = io.WriteString(z, data)
	if err = errors.Join(err, z.Close(), os.MkdirAll(filepath.Dir(file), 0o755)); err != nil {
		return "", err
	}
	draft, err := os.CreateTemp(filepath.Join(r.dir, "objects"), "new-")
	if err != nil {
		return "", err
	}
	_, err = draft.Write(b.Bytes())
	return sha, errors.Join(err, draft.Close(), os.Rename(draft.Name(), file))
}

// treeFile is what a tree says of a file or folder.
type treeFile struct{ mode, sha string }

// tree reads a tree; that of "" is empty.
func (s *Server) tree(r *repository, sha string) (map[string]treeFile, error) {
	list := map[string]treeFile{}
	if sha == "" || sha == emptyTree {
		return list, nil
	}
	kind, text, err := s.object(r, sha)
	if err != nil || kind != "tree" {
		return nil, errors.Join(fmt.Errorf("%s is no tree", sha), err)
	}
	for text != "" {
		mode, rest, _ := strings.Cut(text, " ")
		name, rest, _ := strings.Cut(rest, "\x00")
		if len(rest) < sha1.Size {
			return nil, fmt.Errorf("the tree %s is damaged", sha)
		}
		list[name] = treeFile{mode, hex.EncodeToString([]byte(rest[:sha1.Size]))}
		text = rest[sha1.Size:]
	}
	return list, nil
}

// find looks up a file or folder of a commit.
func (s *Server) find(r *repository, sha, path string) (treeFile, error) {
	c, err := s.commitAt(r, sha)
	at := treeFile{modeTree, c.Tree}
	for part := range strings.SplitSeq(path, "/") {
		if err != nil || path == "" {
			break
		}
		var list map[string]treeFile
		if list, err = s.tree(r, at.sha); err == nil {
			if at = list[part]; at.sha == "" {
				err = fmt.Errorf("%s at %s: %w", path, sha, fs.ErrNotExist)
			}
		}
	}
	if err != nil {
		return treeFile{}, err
	}
	return at, nil
}

// changeTree writes a tree with files changed, by path; one without an id is taken away.
func (s *Server) changeTree(r *repository, sha string, files map[string]treeFile) (string, error) {
	list, err := s.tree(r, sha)
	if err != nil {
		return "", err
	}
	below := map[string]map[string]treeFile{}
	for path, f := range files {
		name, rest, deeper := strings.Cut(path, "/")
		switch {
		case deeper && below[name] == nil:
			below[name] = map[string]treeFile{rest: f}
		case deeper:
			below[name][rest] = f
		case f.sha == "":
			delete(list, name)
		default:
			list[name] = f
		}
	}
	for name, files := range below {
		old := ""
		if list[name].mode == modeTree {
			old = list[name].sha
		}
		sha, err := s.changeTree(r, old, files)
		switch {
		case err != nil:
			return "", err
		case sha != emptyTree:
			list[name] = treeFile{modeTree, sha}
		case old != "":
			delete(list, name)
		}
	}
	var b strings.Builder
	order := func(name string) string { // a folder's place is that of the files in it
		if list[name].mode == modeTree {
			return name + "/"
		}
		return name
	}
	for _, name := range slices.SortedFunc(maps.Keys(list), func(a, b string) int { return strings.Compare(order(a), order(b)) }) {
		id, err := hex.DecodeString(list[name].sha)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "%s %s\x00%s", list[name].mode, name, id)
	}
	return r.write("tree", b.String())
}

// changedFiles lists the files that two trees do not have in common, and how: A, D or M.
func (s *Server) changedFiles(r *repository, from, to string) (map[string]byte, error) {
	old, err1 := s.tree(r, from)
	now, err2 := s.tree(r, to)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	all := map[string]byte{}
	names := maps.Clone(old)
	maps.Copy(names, now)
	for name := range names {
		a, b := old[name], now[name]
		if a == b {
			continue
		}
		was, is := a.sha != "" && a.mode != modeTree, b.sha != "" && b.mode != modeTree
		switch {
		case was && is:
			all[name] = 'M'
		case was:
			all[name] = 'D'
		case is:
			all[name] = 'A'
		}
		if a.mode != modeTree {
			a.sha = ""
		}
		if b.mode != modeTree {
			b.sha = ""
		}
		more, err := s.changedFiles(r, a.sha, b.sha)
		if err != nil {
			return nil, err
		}
		for path, how := range more {
			all[name+"/"+path] = how
		}
	}
	return all, nil
}

// person is a name in a commit.
func person(name, mail string, at time.Time) string {
	clean := func(s string) string {
		return strings.Trim(strings.NewReplacer("<", "", ">", "", "\n", "").Replace(s), " .,:;\"'\\")
	}
	return fmt.Sprintf("%s <%s> %d +0000", clean(name), clean(mail), at.Unix())
}

// writeCommit writes a commit; what is said of its author and committer is made by [person].
func (r *repository) writeCommit(tree string, parents []string, author, committer, message string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for i, p := range parents {
		if !slices.Contains(parents[:i], p) {
			fmt.Fprintf(&b, "parent %s\n", p)
		}
	}
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", author, committer, message)
	return r.write("commit", b.String())
}

// commitInfo is what git knows about a commit.
type commitInfo struct {
	SHA, Tree, Message               string
	Author, AuthorMail, AuthorDate   string
	Committer, CommitMail, CommitDat string
	Parents                          []string
	when                             int64 // in seconds, of its committer
}

// commitAt reads a commit, or the one that a tag is for.
func (s *Server) commitAt(r *repository, sha string) (commitInfo, error) {
	if c, ok := r.commits.Load(sha); ok {
		return c.(commitInfo), nil
	}
	kind, text, err := s.object(r, sha)
	if err != nil {
		return commitInfo{}, err
	}
	head, message, _ := strings.Cut(text, "\n\n")
	c := commitInfo{SHA: sha, Message: strings.TrimRight(message, "\n")}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "object":
			if kind == "tag" {
				return s.commitAt(r, value)
			}
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "author":
			c.Author, c.AuthorMail, c.AuthorDate, _ = readPerson(value)
		case "committer":
			c.Committer, c.CommitMail, c.CommitDat, c.when = readPerson(value)
		}
	}
	if kind != "commit" {
		return c, fmt.Errorf("%s is a %s and no commit", sha, kind)
	}
	r.commits.Store(sha, c)
	return c, nil
}

func readPerson(text string) (name, mail, date string, when int64) {
	name, rest, _ := strings.Cut(text, " <")
	mail, rest, _ = strings.Cut(rest, "> ")
	seconds, _, _ := strings.Cut(rest, " ")
	when, _ = strconv.ParseInt(seconds, 10, 64) // zero is 1970
	return name, mail, time.Unix(when, 0).UTC().Format(time.RFC3339), when
}

// commits lists a commit and those before it, but for those of others, the newest first
// as git log orders them.
func (s *Server) commits(r *repository, from string, others ...string) (list []commitInfo, err error) {
	seen, err := s.ancestors(r, others...)
	if err != nil || seen[from] {
		return nil, err
	}
	seen[from] = true
	queue := []string{from}
	for len(queue) > 0 {
		c, err := s.commitAt(r, queue[0])
		if err != nil {
			return nil, err
		}
		list, queue = append(list, c), queue[1:]
		for _, sha := range c.Parents {
			p, err := s.commitAt(r, sha)
			if err != nil {
				return nil, err
			}
			if seen[sha] {
				continue
			}
			seen[sha] = true
			i := slices.IndexFunc(queue, func(other string) bool { o, _ := s.commitAt(r, other); return o.when < p.when }) // it was read before
			if i < 0 {
				i = len(queue)
			}
			queue = slices.Insert(queue, i, sha)
		}
	}
	return list, nil
}

// ancestors are commits and all that are before them.
func (s *Server) ancestors(r *repository, from ...string) (map[string]bool, error) {
	seen := map[string]bool{}
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		c, err := s.commitAt(r, queue[0])
		if err != nil {
			return nil, err
		}
		seen[queue[0]] = true
		queue = append(queue, c.Parents...)
	}
	return seen, nil
}

func (s *Server) isAncestor(r *repository, a, b string) bool {
	seen, err := s.ancestors(r, b)
	return err == nil && seen[a]
}

// mergeBase returns the best common ancestor, "" when there is none.
func (s *Server) mergeBase(r *repository, a, b string) string {
	known, err := s.ancestors(r, a)
	list, err2 := s.commits(r, b)
	if err != nil || err2 != nil {
		return ""
	}
	list = slices.DeleteFunc(list, func(c commitInfo) bool { return !known[c.SHA] })
	behind := map[string]bool{} // other common ones
	for _, c := range list {
		for _, p := range c.Parents {
			behind[p] = true
		}
	}
	for _, c := range list {
		if !behind[c.SHA] {
			return c.SHA
		}
	}
	return ""
}

// writeRef moves, makes or deletes (sha is zero) a ref under git's own lock. With old, it
// has to be there.
func (s *Server) writeRef(r *repository, ref, sha, old string) error {
	file := filepath.Join(r.dir, filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("lock %s: %w", ref, err)
	}
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) { // a push is at it, for which git waits
		args := []string{"update-ref", ref, sha}
		if old != "" {
			args = append(args, old)
		}
		_, err := s.git(r, args...)
		return err
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", ref, err)
	}
	defer func() {
		_ = os.Remove(lock.Name()) // unless it took the ref's place
		for dir := filepath.Dir(file); strings.Count(dir, "/") > strings.Count(r.dir, "/")+2 && os.Remove(dir) == nil; {
			dir = filepath.Dir(dir) // nothing is in it any more
		}
	}()
	_, err = lock.WriteString(sha + "\n")
	if err = errors.Join(err, lock.Close()); err != nil {
		return fmt.Errorf("write %s: %w", ref, err)
	}
	if now, _ := os.ReadFile(file); old != "" && strings.TrimSpace(string(now)) != old {
		return fmt.Errorf("write %s: it is at %q and not at %s", ref, strings.TrimSpace(string(now)), old)
	}
	if sha == zeroSHA {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete %s: %w", ref, err)
		}
		return nil
	}
	return os.Rename(lock.Name(), file)
}
