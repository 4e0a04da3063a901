package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/pipeline/needs"
)

// capabilities are the numbers of those that the Dockerfile names, as linux/capability.h has them.
var capabilities = map[string]uint{"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7}

// Covers S2: the server as the image runs it with its second user, root with exactly the
// capabilities that the Dockerfile tells to keep: it starts and carries a run to its end,
// what works on the repository is the other user, without any capability, and that user
// can read none of the server's files. A mount namespace has the users, where an image has
// them in its own files; there is no container engine here.
func TestImageWithASecondUser(t *testing.T) {
	long(t)
	needs.Root(t)
	needs.Tools(t, "unshare", "setpriv")
	needs.Sandbox(t)
	file := read(t, top+"/Dockerfile")
	names := regexp.MustCompile(`--cap-add ([A-Z_,]+)`).FindStringSubmatch(file)
	users := regexp.MustCompile(`useradd --system --uid (\d+) .* forge-worker`).FindStringSubmatch(file)
	if names == nil || users == nil {
		t.Fatal("the Dockerfile names no capabilities, or no second user")
	}
	kept, mask := "-all", uint64(0)
	for name := range strings.SplitSeq(names[1], ",") {
		n, ok := capabilities[name]
		if !ok {
			t.Fatalf("the Dockerfile keeps %s", name)
		}
		kept, mask = kept+",+"+strings.ToLower(name), mask|1<<n
	}

	l := newLab(t, labOptions{})
	passwd, group := filepath.Join(l.dir, "passwd"), filepath.Join(l.dir, "group")
	for path, line := range map[string]string{passwd: "forge-worker:x:%[1]s:%[1]s::/nonexistent:/usr/sbin/nologin\n", group: "forge-worker:x:%[1]s:\n"} {
		text := read(t, "/etc/"+filepath.Base(path)) + fmt.Sprintf(line, users[1])
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.env = append(l.env, "FORGE_WORKER_USER=forge-worker")
	l.before = []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", "mount --bind " + passwd + " /etc/passwd && mount --bind " + group +
		` /etc/group && exec setpriv --bounding-set ` + kept + ` --inh-caps -all "$@"`, "sh"}
	p := l.serve()
	if got := statusOf(t, p.cmd.Process.Pid, "CapEff"); got != fmt.Sprintf("%016x", mask) {
		t.Errorf("the server has the capabilities %s, want %016x", got, mask)
	}
	workers := make(chan string, 1)
	done := make(chan bool)
	go func() { workers <- l.worker(p.cmd.Process.Pid, users[1], done) }()
	l.start()
	l.verified(patience)
	close(done)
	if caps := <-workers; caps != strings.Repeat("0", 16) {
		t.Errorf("what worked on the repository as %s had the capabilities %q", users[1], caps)
	}
	l.unreadable(users[1])
}

// statusOf is a line of /proc/PID/status.
func statusOf(t *testing.T, pid int, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, fmt.Sprintf("/proc/%d/status", pid)), "\n"+name+":")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// worker watches until a process of the user works below the server, and returns what it
// may do; "" when there was none.
func (l *labTest) worker(server int, uid string, done <-chan bool) (caps string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return caps
		case <-tick.C:
		}
		all, _ := filepath.Glob("/proc/[0-9]*/status")
		for _, path := range all {
			text, err := os.ReadFile(path)
			s := string(text)
			if err != nil || !strings.Contains(s, "\nPPid:\t"+strconv.Itoa(server)+"\n") || !strings.Contains(s, fmt.Sprintf("\nUid:\t%[1]s\t%[1]s\t%[1]s\t%[1]s\n", uid)) {
				continue
			}
			_, rest, _ := strings.Cut(s, "\nCapEff:\t")
			caps, _, _ = strings.Cut(rest, "\n")
		}
	}
}

// unreadable wants the user to be able to read none of the files that only the server may:
// its database, keys, secrets, and those of its own directories.
func (l *labTest) unreadable(uid string) {
	l.t.Helper()
	var secret []string
	err := filepath.Walk(l.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Base(path)
		if info.Mode().IsRegular() && (strings.HasSuffix(name, ".pem") || strings.Contains(name, ".db") || strings.Contains(name, "secret")) {
			secret = append(secret, path)
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if !slices.ContainsFunc(secret, func(p string) bool { return strings.HasSuffix(p, ".db") }) || !slices.ContainsFunc(secret, func(p string) bool { return strings.HasSuffix(p, ".pem") }) {
		l.t.Fatalf("no database or key is among %q", secret)
	}
	for _, path := range secret {
		as := []string{"--reuid", uid, "--regid", uid, "--clear-groups", "--bounding-set", "-all", "cat", path}
		if out, err := exec.Command("setpriv", as...).CombinedOutput(); err == nil || !strings.Contains(string(out), "denied") {
			l.t.Errorf("%s reads %s: %v %.80q", uid, path, err, out)
		}
	}
}
