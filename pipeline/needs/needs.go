// Package needs skips a test that lacks something on this machine, and says what it is
// and how to install it. Go, git and a POSIX shell are always there; nothing else is.
//
// Where CI=true, a tool that .ci/run installs must be there: its lack is a failure, so
// that no test disappears unnoticed.
package needs

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// tool is a program that some tests run.
type tool struct {
	install string // the command that installs it
	inCI    bool   // .ci/run installs it
	check   string // a shell command that succeeds where it works; "": its name is in PATH
}

// The system's own Python, which the sandbox sees; not one of a version manager in $HOME.
const systemPath = "PATH=/usr/local/bin:/usr/bin:/bin "

var tools = map[string]tool{
	"bwrap":                   {install: "apt-get install bubblewrap", inCI: true},
	"prlimit":                 {install: "apt-get install util-linux", inCI: true},
	"python3":                 {install: "apt-get install python3", inCI: true, check: systemPath + "command -v python3"},
	"pytest":                  {install: "apt-get install python3-pytest", inCI: true, check: systemPath + "python3 -c 'import pytest'"},
	"pip":                     {install: "apt-get install python3-pip", inCI: true, check: systemPath + "python3 -m pip --version"},
	"node":                    {install: "apt-get install nodejs", inCI: true},
	"npm":                     {install: "apt-get install npm", inCI: true},
	"ruby":                    {install: "apt-get install ruby", inCI: true},
	"bundle":                  {install: "apt-get install bundler", inCI: true},
	"composer":                {install: "apt-get install composer", inCI: true},
	"unzip":                   {install: "apt-get install unzip", inCI: true},
	"chromium":                {install: "apt-get install chromium", inCI: true},
	"prometheus":              {install: "apt-get install prometheus"},
	"prometheus-alertmanager": {install: "apt-get install prometheus-alertmanager"},
	"initdb":                  {install: "apt-get install postgresql", inCI: true, check: "ls /usr/lib/postgresql/*/bin/initdb"},
	"git-http-backend":        {install: "apt-get install git", inCI: true, check: `test -x "$(git --exec-path)/git-http-backend"`},
	"cargo":                   {install: "see https://rustup.rs"},
	"mvn":                     {install: "apt-get install maven"},
	"ctags":                   {install: "apt-get install universal-ctags"},
	"perl":                    {install: "apt-get install perl"},
	"xxd":                     {install: "apt-get install xxd"},
	"unshare":                 {install: "apt-get install util-linux"},
	"setpriv":                 {install: "apt-get install util-linux"},
}

var found sync.Map // name of a tool → whether it works

// Tools skips the test unless all these tools work here. The names are those of the
// table above; another name is looked up in PATH.
func Tools(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		works, known := found.Load(name)
		if !known {
			works = look(name)
			found.Store(name, works)
		}
		if works == true {
			continue
		}
		lacks(t, name, tools[name].install, tools[name].inCI)
	}
}

func look(name string) bool {
	check := tools[name].check
	if check == "" {
		_, err := exec.LookPath(name)
		return err == nil
	}
	return exec.Command("/bin/sh", "-c", check).Run() == nil
}

// Sandbox skips the test unless commands can run in bubblewrap here.
func Sandbox(t testing.TB) {
	t.Helper()
	Tools(t, "bwrap", "prlimit")
	if err := namespaces(); err != "" {
		lacks(t, "unprivileged user namespaces ("+err+")", "see .github/docs/security.md", runtime.GOOS == "linux")
	}
}

var namespaces = sync.OnceValue(func() (failed string) {
	cmd := exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "true")
	unprivileged(cmd)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	if text := strings.TrimSpace(string(out)); text != "" {
		return text
	}
	return err.Error()
})

// Root skips the test unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		lacks(t, "root", "run it as root", false)
	}
}

// Postgres returns the postgres:// URL of a database in which tests make schemas of their
// own, from FORGE_TEST_POSTGRES; without it the test is skipped.
func Postgres(t testing.TB) (url string) {
	t.Helper()
	url = os.Getenv("FORGE_TEST_POSTGRES")
	if url == "" {
		lacks(t, "PostgreSQL", "set FORGE_TEST_POSTGRES to the postgres:// URL of a database for tests", true)
	}
	return url
}

func lacks(t testing.TB, what, install string, inCI bool) {
	t.Helper()
	text := "needs " + what
	if install != "" {
		text += ": " + install
	}
	if inCI && os.Getenv("CI") == "true" {
		t.Fatal(text + " (.ci/run installs it, so with CI=true this is a failure)")
	}
	t.Skip(text)
}
