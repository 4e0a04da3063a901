package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"forge/pipeline"
)

// Caps on what is read from a mirror.
const (
	maxFileBytes = 10 << 20 // of one file
	maxDiffBytes = 32 << 20 // of one patch
)

// GatewayOptions say where mirrors live and whom git may talk to.
type GatewayOptions struct {
	Dir        string   // the mirrors' directory; made when missing
	Hosts      []string // base URLs besides https://github.com, "http://127.0.0.1:8080"; http works for these alone
	AllowLocal bool     // a clone URL may be a path on this machine, for `forge run` on a local repository
	Prefix     string   // of the branches that may be pushed; empty: "forge/"
	Secrets    Secrets  // what is committed and pushed is looked through by it; nil: it is not
	GID        int      // the group that may read the mirrors: the worker's; 0: 65534 when this process is root
	Log        *slog.Logger
}

// Gateway is the only git that holds a token. It keeps one bare mirror per
// repository, which nobody else can write.
type Gateway struct {
	dir    string
	hosts  map[string]bool // "scheme://host"
	local  bool
	prefix string
	gid    int // -1: the mirrors stay with this process' own group
	bin    string
	log    *slog.Logger

	secrets Secrets

	refused atomic.Pointer[Refused]

	known known

	mu    sync.Mutex
	locks map[string]*sync.RWMutex // by mirror
}

// NewGateway prepares the mirrors' directory.
func NewGateway(o GatewayOptions) (*Gateway, error) {
	if o.Dir == "" || !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("gateway directory %q: must be an absolute path", o.Dir)
	}
	bin, err := findGit()
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		dir: o.Dir, hosts: map[string]bool{"https://github.com": true}, local: o.AllowLocal,
		prefix: o.Prefix, gid: -1, bin: bin, log: o.Log, secrets: o.Secrets, locks: map[string]*sync.RWMutex{},
	}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if g.prefix == "" {
		g.prefix = "forge/"
	}
	if os.Geteuid() == 0 {
		g.gid = o.GID
		if g.gid == 0 {
			g.gid = nobody
		}
	}
	for _, h := range o.Hosts {
		u, err := url.Parse(h)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			return nil, fmt.Errorf("git host %q: must be a base URL such as https://github.example.com", h)
		}
		g.hosts[u.Scheme+"://"+u.Host] = true
	}
	return g, g.prepare()
}

// prepare makes the directories. Mirrors are readable by the worker's group and
// by nobody else; what this process alone needs is in private.
func (g *Gateway) prepare() error {
	if err := os.MkdirAll(g.dir, 0o750); err != nil {
		return fmt.Errorf("make gateway directory: %w", err)
	}
	if g.gid >= 0 {
		if err := os.Chown(g.dir, 0, g.gid); err != nil {
			return fmt.Errorf("gateway directory: %w", err)
		}
	}
	if err := os.Chmod(g.dir, 0o710); err != nil {
		return fmt.Errorf("gateway directory: %w", err)
	}
	if err := os.MkdirAll(g.private(), 0o700); err != nil {
		return fmt.Errorf("gateway directory: %w", err)
	}
	// Git's upload-pack looks at the owner of a local repository, and takes the
	// exception from a global configuration file alone.
	return writeFile(filepath.Join(g.private(), "local.gitconfig"), "[safe]\n\tdirectory = *\n", 0o600)
}

func (g *Gateway) private() string { return filepath.Join(g.dir, "private") }

// Dir is the repository's bare git directory. It is only ever read by others.
func (g *Gateway) Dir(repo pipeline.Repo) string { return filepath.Join(g.dir, mirrorName(repo)) }

// mirrorName is stable under renames of a repository on GitHub.
func mirrorName(repo pipeline.Repo) string {
	key := repo.CloneURL
	if repo.ID != 0 {
		host := ""
		if u, err := url.Parse(repo.CloneURL); err == nil {
			host = u.Host
		}
		key = fmt.Sprintf("%s/%d", host, repo.ID)
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:10]) + ".git"
}

func (g *Gateway) git(repo pipeline.Repo) git { return git{bin: g.bin, dir: g.Dir(repo)} }

func (g *Gateway) lock(repo pipeline.Repo) *sync.RWMutex {
	return g.lockOf(mirrorName(repo))
}

func (g *Gateway) lockOf(name string) *sync.RWMutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.locks[name] == nil {
		g.locks[name] = new(sync.RWMutex)
	}
	return g.locks[name]
}

// remote returns a call that talks to the repository's remote, and the remote's
// address for git's command line.
func (g *Gateway) remote(repo pipeline.Repo, token string) (gitCall, string, error) {
	if filepath.IsAbs(repo.CloneURL) {
		if !g.local {
			return gitCall{}, "", fmt.Errorf("clone URL %q is a path on this machine: only `forge run` works on those", repo.CloneURL)
		}
		config := filepath.Join(g.private(), "local.gitconfig")
		return gitCall{scheme: "file", env: []string{"GIT_CONFIG_GLOBAL=" + config}}, repo.CloneURL, nil
	}
	u, err := url.Parse(repo.CloneURL)
	switch {
	case err != nil || u.Host == "":
		return gitCall{}, "", fmt.Errorf("clone URL of %s is not a URL", repo.FullName())
	case u.User != nil:
		return gitCall{}, "", fmt.Errorf("clone URL of %s carries credentials: give it without", repo.FullName())
	case u.RawQuery != "" || u.Fragment != "":
		return gitCall{}, "", fmt.Errorf("clone URL of %s has a query or a fragment", repo.FullName())
	case !g.hosts[u.Scheme+"://"+u.Host]:
		return gitCall{}, "", fmt.Errorf("clone URL of %s: %s://%s is not among the hosts that git may talk to; add it to the server's configuration", repo.FullName(), u.Scheme, u.Host)
	}
	return gitCall{scheme: u.Scheme, remote: u, token: token}, u.String(), nil
}

// init makes the mirror when there is none. The caller holds the write lock.
func (g *Gateway) init(ctx context.Context, repo pipeline.Repo) error {
	dir := g.Dir(repo)
	ready := filepath.Join(dir, readyFile)
	if info, err := os.Stat(ready); err == nil {
		if _, gid := ownerOf(info); g.gid >= 0 && gid != g.gid { // the worker's user is another one by now
			if err := chgrp(dir, g.gid); err != nil {
				return err
			}
		}
		now := time.Now()
		return os.Chtimes(ready, now, now) // what is used stays
	}
	if err := os.RemoveAll(dir); err != nil { // left by a crash in between
		return err
	}
	if err := os.Mkdir(dir, 0o750); err != nil {
		return err
	}
	if g.gid >= 0 {
		if err := os.Chown(dir, 0, g.gid); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o750|fs.ModeSetgid); err != nil {
			return err
		}
	}
	call := gitCall{args: []string{"init", "-q", "--bare", "--shared=0640", "--template=", dir}}
	if _, err := (git{bin: g.bin}).run(ctx, call); err != nil {
		return err
	}
	info := filepath.Join(dir, "info")
	if err := os.MkdirAll(info, 0o750); err != nil {
		return err
	}
	// This file outranks every .gitattributes: no filter, no conversion, ever.
	if err := writeFile(filepath.Join(info, "attributes"), "* -text -eol -crlf -ident -filter -working-tree-encoding\n", 0o640); err != nil {
		return err
	}
	return writeFile(ready, "1\n", 0o640)
}

// chgrp gives all that is in a directory to a group.
func chgrp(dir string, gid int) error {
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(name, -1, gid))
	})
}

const (
	readyFile  = "forge-ready"  // in a mirror that is whole; its time is that of the last fetch
	packedFile = "forge-packed" // its time is when the mirror was packed last
)

// Fetch brings branches (by name), refs ("refs/pull/7/head") and commits (by full
// SHA) into the mirror, with their whole history. A commit that is there already
// costs no call. Errors are *pipeline.Fault; Final when the repository or the ref
// does not exist.
func (g *Gateway) Fetch(ctx context.Context, repo pipeline.Repo, token string, refs ...string) (err error) {
	defer func() { err = roomFault(g.dir, err) }()
	call, address, err := g.remote(repo, token)
	if err != nil {
		return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
	}
	if err := checkRoom(g.dir, DefaultLimits().Reserve); err != nil {
		return err
	}
	lock := g.lock(repo)
	lock.Lock()
	defer lock.Unlock()
	if err := g.init(ctx, repo); err != nil {
		return fmt.Errorf("make mirror of %s: %w", repo.FullName(), err)
	}
	call.args = []string{"fetch", "-q", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--force"}
	if call.scheme == "file" {
		call.args = append(call.args, "--update-shallow") // a clone on this machine may have been cut short itself
	}
	call.args = append(call.args, address)
	wanted := 0
	for _, ref := range refs {
		if isOID(ref) {
			if g.has(ctx, repo, ref) {
				continue
			}
			call.args = append(call.args, ref)
		} else {
			name, err := fullRef(ref)
			if err != nil {
				return &pipeline.Fault{Class: pipeline.FaultGitHub, Message: err.Error(), Final: true}
			}
			call.args = append(call.args, "+"+name+":"+keptRef(name))
		}
		wanted++
	}
	if wanted == 0 {
		return nil
	}
	if _, err := g.call(ctx, repo, call); err != nil {
		return remoteFault("fetch", repo, err)
	}
	return nil
}

// has reports whether a commit and what it needs is in the mirror.
func (g *Gateway) has(ctx context.Context, repo pipeline.Repo, sha string) bool {
	_, err := g.git(repo).run(ctx, gitCall{args: []string{"cat-file", "-e", sha + "^{commit}"}})
	return err == nil
}

// fullRef checks a branch's or ref's name by the rules of git-check-ref-format(1).
func fullRef(ref string) (string, error) {
	bad := ref == "" || strings.HasPrefix(ref, "-") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, "/") ||
		strings.HasSuffix(ref, ".") || strings.Contains(ref, "..") || strings.Contains(ref, "//") ||
		strings.Contains(ref, "@{") || ref == "@" || len(ref) > 255
	for _, c := range ref {
		bad = bad || c <= ' ' || c == 0x7f || strings.ContainsRune("~^:?*[\\", c)
	}
	for part := range strings.SplitSeq(ref, "/") {
		bad = bad || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return "", fmt.Errorf("%q is not a valid branch name", ref)
	}
	if strings.HasPrefix(ref, "refs/") || ref == "HEAD" {
		return ref, nil
	}
	return "refs/heads/" + ref, nil
}

// keptRef is where the mirror keeps a ref. The name is hashed, because a branch
// "a" that was replaced by "a/b" on the remote could not be fetched otherwise.
func keptRef(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "refs/kept/" + hex.EncodeToString(sum[:12])
}

// Resolve returns the SHA of a branch or ref as it was last fetched, or of a
// commit that is in the mirror. Errors wrap fs.ErrNotExist when there is none.
func (g *Gateway) Resolve(ctx context.Context, repo pipeline.Repo, ref string) (string, error) {
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	spec, key := ref, ""
	if isOID(ref) {
		if key = commitKey(g.Dir(repo), ref); g.known.has(key) {
			return ref, nil
		}
	} else {
		name, err := fullRef(ref)
		if err != nil {
			return "", err
		}
		spec = keptRef(name)
	}
	out, err := g.git(repo).run(ctx, gitCall{args: []string{"rev-parse", "--verify", "-q", "--end-of-options", spec + "^{commit}"}})
	if err != nil {
		var failed *gitError
		if errors.As(err, &failed) {
			return "", fmt.Errorf("resolve %s of %s: %w", ref, repo.FullName(), fs.ErrNotExist)
		}
		return "", fmt.Errorf("resolve %s of %s: %w", ref, repo.FullName(), err)
	}
	if key != "" && strings.TrimSpace(string(out)) == ref {
		g.known.add(key)
	}
	return strings.TrimSpace(string(out)), nil
}

// diffArgs make a patch: renames found, a/ and b/ before the paths, no program of
// anybody's.
var diffArgs = []string{
	"diff-tree", "-r", "-p", "-M", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color",
	"--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/",
}

// Diff returns the unified patch between two commits, renames found, with a/ and
// b/ before the paths. A patch over 32 MiB is an error, never cut short.
func (g *Gateway) Diff(ctx context.Context, repo pipeline.Repo, from, to string) (string, error) {
	if err := checkOIDs(from, to); err != nil {
		return "", err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	out, err := g.git(repo).run(ctx, gitCall{max: maxDiffBytes, args: append(slices.Clone(diffArgs), from, to, "--")})
	if err != nil {
		return "", fmt.Errorf("diff %s %s: %w", from, to, err)
	}
	return string(out), nil
}

// File returns a file as it is in a commit, up to 10 MiB; of a symbolic link, its
// target. Errors wrap fs.ErrNotExist when there is none.
func (g *Gateway) File(ctx context.Context, repo pipeline.Repo, sha, path string) ([]byte, error) {
	if err := checkOIDs(sha); err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	out, err := g.git(repo).run(ctx, gitCall{max: maxFileBytes, args: []string{"cat-file", "blob", sha + ":" + path}})
	var failed *gitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("file %s at %s: %w", path, sha, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("file %s at %s: %w", path, sha, err)
	}
	return out, nil
}

// ReadFiles returns files as they are in a commit, by path, with one process for all of
// them. Those that are not there are left out, and those over 10 MiB.
func (g *Gateway) ReadFiles(ctx context.Context, repo pipeline.Repo, sha string, paths []string) (map[string][]byte, error) {
	if err := checkOIDs(sha); err != nil {
		return nil, err
	}
	var names, specs []string
	for _, path := range paths {
		if checkPath(path) == nil {
			names, specs = append(names, path), append(specs, sha+":"+path)
		}
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	contents, err := blobs(ctx, g.git(repo), specs)
	if err != nil {
		return nil, fmt.Errorf("read %d files at %s: %w", len(specs), sha, err)
	}
	out := map[string][]byte{}
	for i, content := range contents {
		if content != nil && len(content) <= maxFileBytes {
			out[names[i]] = bytes.Clone(content)
		}
	}
	return out, nil
}

// Files returns the paths of all files in a commit, sorted.
func (g *Gateway) Files(ctx context.Context, repo pipeline.Repo, sha string) ([]string, error) {
	if err := checkOIDs(sha); err != nil {
		return nil, err
	}
	lock := g.lock(repo)
	lock.RLock()
	defer lock.RUnlock()
	key := commitKey(g.Dir(repo), sha)
	if paths, ok := g.known.files(key); ok {
		return slices.Clone(paths), nil
	}
	out, err := g.git(repo).run(ctx, gitCall{args: []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", sha}})
	if err != nil {
		return nil, fmt.Errorf("files at %s: %w", sha, err)
	}
	var paths []string
	for name := range bytes.SplitSeq(out, []byte{0}) {
		if len(name) > 0 {
			paths = append(paths, string(name))
		}
	}
	if len(out) <= maxList {
		g.known.list(key, slices.Clone(paths))
	}
	return paths, nil
}

func checkOIDs(shas ...string) error {
	for _, sha := range shas {
		if !isOID(sha) {
			return fmt.Errorf("%q is not a full commit SHA", sha)
		}
	}
	return nil
}

// remoteFault says in plain words why a remote could not be used.
func remoteFault(verb string, repo pipeline.Repo, err error) error {
	var known *pipeline.Fault
	if errors.As(err, &known) {
		return known
	}
	var failed *gitError
	if !errors.As(err, &failed) || isNoRoom(err) {
		return fmt.Errorf("%s %s: %w", verb, repo.FullName(), err)
	}
	text := failed.stderr
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	fault := &pipeline.Fault{Class: pipeline.FaultGitHub}
	switch {
	case has("couldn't find remote ref", "not our ref", "no such remote ref"):
		fault.Message, fault.Final = "the branch or commit is not there any more: "+lastLine(text), true
	case has("Authentication failed", "could not read Username", "error: 401", "error: 403", "terminal prompts disabled"):
		fault.Message = "the token was refused: check that the App is installed on the repository with access to its contents"
	case has("not found", "error: 404", "does not appear to be a git repository", "does not exist"):
		fault.Message, fault.Final = "there is no such repository, or the App may not see it", true
	case has("fsck error", "fsckObjects", "index-pack failed", "missingSpaceBeforeDate", "hasDotgit"):
		fault.Message, fault.Final = "the repository holds objects that git's checks refuse: "+refusedObject(text), true
	case has("error: 301", "error: 302", "error: 307", "error: 308", "redirect"):
		fault.Message = "the remote redirects; the repository was renamed or moved"
	default:
		fault.Message = lastLine(text)
	}
	fault.Message = verb + " " + repo.FullName() + ": " + fault.Message
	return fault
}

// refusedObject is what git says of the object that it refuses, or its last words.
func refusedObject(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "error: object ") {
			return line[:min(len(line), 500)]
		}
	}
	return lastLine(text)
}

// lastLine is the last line of git's words that is an error, within 500 bytes.
func lastLine(text string) string {
	last := "git failed without a word"
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line != "" && (strings.HasPrefix(line, "fatal:") || strings.HasPrefix(line, "error:") || strings.HasPrefix(line, "remote: error:")) {
			last = line
		}
	}
	return last[:min(len(last), 500)]
}
