package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxGitOutput is how much of a git command's output is taken in; more is an error.
const maxGitOutput = 64 << 20

// git runs one git binary on one trusted git directory.
type git struct {
	bin string // absolute path
	dir string // the git directory; empty for none
}

// gitCall is one call of git. Config and env are added to the fixed ones.
type gitCall struct {
	args   []string
	stdin  io.Reader
	dir    string   // where git runs; empty: "/"
	magic  bool     // check-ignore refuses to run with literal pathspecs
	config []string // "key=value", given with -c
	env    []string
	scheme string // the one transport that is allowed: "https", "http", "file"; empty for none
	token  string // sent as a header to remote alone
	remote *url.URL
	max    int64 // bytes of output; 0: maxGitOutput
}

// gitError is a git command that failed, with secrets taken out of its words.
type gitError struct {
	command string
	code    int
	stderr  string
	stdout  string
}

func (e *gitError) Error() string {
	text := strings.TrimSpace(e.stderr)
	if text == "" {
		text = "exit status " + fmt.Sprint(e.code)
	}
	return "git " + e.command + ": " + text
}

// errTooMuch says that a git command printed more than was allowed.
var errTooMuch = errors.New("output is over the limit")

// findGit returns git's absolute path.
func findGit() (string, error) {
	bin, err := exec.LookPath("git")
	if err != nil {
		return "", errors.New("git is not installed: install git 2.39 or newer and start again")
	}
	return filepath.Abs(bin)
}

// fixedConfig holds the settings that no repository can override, because they
// come by -c. No call has a work tree, so that what watches one has no part in it. Sources: git-config(1), and experiments with hostile repositories.
var fixedConfig = []string{
	"core.hooksPath=/dev/null",
	"core.attributesFile=/dev/null", "core.excludesFile=/dev/null",
	"core.protectHFS=true", "core.protectNTFS=true", "core.autocrlf=false",
	"core.pager=cat", "core.editor=/bin/false", "sequence.editor=/bin/false",
	"core.askPass=/bin/false", "core.sshCommand=/bin/false", "core.gitProxy=/bin/false",
	"core.alternateRefsCommand=/bin/false",
	"credential.helper=", "credential.interactive=false",
	"commit.gpgSign=false", "tag.gpgSign=false", "push.gpgSign=false",
	"gpg.program=/bin/false", "gpg.ssh.program=/bin/false",
	"protocol.ext.allow=never", "protocol.git.allow=never", "protocol.ssh.allow=never",
	"submodule.recurse=false", "fetch.recurseSubmodules=false", "push.recurseSubmodules=no",
	"diff.ignoreSubmodules=all",
	"http.followRedirects=false", "http.sslVerify=true", "http.proxy=", "http.cookieFile=",
	"http.lowSpeedLimit=1000", "http.lowSpeedTime=60",
	"transfer.fsckObjects=true", "fetch.fsckObjects=true", "receive.fsckObjects=true",
	"gc.auto=0", "maintenance.auto=false", "safe.bareRepository=explicit",
}

// oldForms are faults of form that old tools left in commits, tags and trees: people, dates
// and file modes written in another way than today. They are in the histories of large
// repositories, which nobody can change any more, and GitHub takes them; nothing is read from
// where they stand but words to show. Whatever names a path, points to an object, or is read
// by git as settings stays refused. Source: git-fsck(1), "FSCK MESSAGES".
var oldForms = []string{
	"badDate", "badDateOverflow", "badEmail", "badName", "badTimezone", "missingEmail", "missingNameBeforeEmail", "missingSpaceBeforeDate",
	"missingSpaceBeforeEmail", "multipleAuthors", "zeroPaddedDate", "zeroPaddedFilemode",
}

// fixedEnv is git's whole environment, but for a token and a call's own additions.
func fixedEnv(bin, scheme string) []string {
	allow := scheme
	if allow == "" {
		allow = "none"
	}
	return []string{
		"PATH=" + filepath.Dir(bin) + ":/usr/bin:/bin", "HOME=/nonexistent", "XDG_CONFIG_HOME=/nonexistent",
		"LC_ALL=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false",
		"GIT_SSH_COMMAND=/bin/false", "GIT_ALLOW_PROTOCOL=" + allow, "GIT_PROTOCOL_FROM_USER=0",
		"GIT_PAGER=cat", "GIT_EDITOR=/bin/false", "GIT_SEQUENCE_EDITOR=/bin/false", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1",
	}
}

// command builds the process; it is not started.
func (g git) command(ctx context.Context, c gitCall) *exec.Cmd {
	args := []string{"--no-pager", "--no-optional-locks"}
	if g.dir != "" {
		args = append(args, "--git-dir="+g.dir)
	}
	for _, kv := range fixedConfig {
		args = append(args, "-c", kv)
	}
	for _, id := range oldForms {
		args = append(args, "-c", "fetch.fsck."+id+"=ignore", "-c", "receive.fsck."+id+"=ignore")
	}
	args = append(args, "-c", "protocol.allow=never")
	for _, scheme := range []string{"https", "http", "file"} {
		allow := "never"
		if scheme == c.scheme {
			allow = "always"
		}
		args = append(args, "-c", "protocol."+scheme+".allow="+allow)
	}
	for _, kv := range c.config {
		args = append(args, "-c", kv)
	}
	cmd := exec.CommandContext(ctx, g.bin, append(args, c.args...)...)
	cmd.Dir = "/"
	if c.dir != "" {
		cmd.Dir = c.dir
	}
	cmd.Env = append(fixedEnv(g.bin, c.scheme), c.env...)
	if !c.magic {
		cmd.Env = append(cmd.Env, "GIT_LITERAL_PATHSPECS=1")
	}
	if c.token != "" && c.remote != nil {
		cmd.Env = append(cmd.Env, "GIT_CONFIG_COUNT=1",
			"GIT_CONFIG_KEY_0=http."+c.remote.Scheme+"://"+c.remote.Host+"/.extraHeader",
			"GIT_CONFIG_VALUE_0=Authorization: Basic "+basicAuth(c.token))
	}
	cmd.Stdin = c.stdin
	// A transport helper is a child of git: the whole group ends with the call.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 3 * time.Second
	return cmd
}

func basicAuth(token string) string {
	return base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
}

// run runs git to its end and returns what it printed.
func (g git) run(ctx context.Context, c gitCall) ([]byte, error) {
	max := c.max
	if max == 0 {
		max = maxGitOutput
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &limitWriter{max: max, full: func() { cancel(errTooMuch) }}
	errs := &limitWriter{max: 64 << 10}
	cmd := g.command(ctx, c)
	cmd.Stdout, cmd.Stderr = out, errs
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("git %s: %w", c.name(), cause)
	}
	if err == nil {
		return out.buf.Bytes(), nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return nil, fmt.Errorf("git %s: %w", c.name(), err)
	}
	return nil, &gitError{
		command: c.name(), code: exit.ExitCode(),
		stderr: c.redact(errs.buf.String()), stdout: c.redact(out.buf.String()),
	}
}

// name is the subcommand, for errors.
func (c gitCall) name() string {
	if len(c.args) == 0 {
		return ""
	}
	return c.args[0]
}

// redact removes the token in the forms in which git could print it.
func (c gitCall) redact(s string) string {
	if c.token == "" {
		return s
	}
	return strings.NewReplacer(c.token, "[redacted]", basicAuth(c.token), "[redacted]").Replace(s)
}

// limitWriter keeps at most max bytes and calls full, if set, when there is more.
type limitWriter struct {
	buf  bytes.Buffer
	max  int64
	full func()
}

func (w *limitWriter) Write(p []byte) (int, error) {
	room := w.max - int64(w.buf.Len())
	if int64(len(p)) <= room {
		return w.buf.Write(p)
	}
	if room > 0 {
		w.buf.Write(p[:room])
	}
	if w.full != nil {
		w.full()
	}
	return len(p), nil
}

// isOID reports whether s is a full object name.
func isOID(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// writeFile makes a file of this package's own, never one of a repository.
func writeFile(path, content string, mode os.FileMode) error {
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
