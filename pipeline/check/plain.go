package check

import (
	"context"
	"strings"
	"time"

	"forge/pipeline/workspace"
)

// A test runner and a sandbox leave traces in the process of the code under test: its
// output is no terminal, the log and crashes are taken in, the environment has names
// that no machine has. They cannot all be listed. So in another place the tests run as
// plainly as can be had: at a terminal, without the runner's extras, and without those
// names.

// sandboxNames are variables of the environment that a sandbox sets, and that code does
// not need to run.
const sandboxNames = "XDG_CACHE_HOME GOTMPDIR GOPROXY GOSUMDB GOTOOLCHAIN GOTELEMETRY GOENV GOFLAGS"

// plainPytest has pytest leave the process as it is.
var plainPytest = []string{"-s", "--assert=plain", "-p", "no:logging", "-p", "no:faulthandler", "-p", "no:warnings", "-p", "no:unraisableexception", "-p", "no:threadexception"}

// plainPython goes before what starts a runner: it forks, and the child has a terminal
// at whose other end the parent passes on what is printed. Input is at its end.
const plainPython = `import os, sys
for name in "` + sandboxNames + `".split(): os.environ.pop(name, None)
os.environ["TERM"] = "xterm"
pid = 0
try:
    import fcntl, pty, struct, termios, threading
    pid, fd = pty.fork()
except (ImportError, OSError):
    pass
if pid:
    a = termios.tcgetattr(fd)
    a[1] &= ~termios.OPOST
    a[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, a)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.write(fd, b"\x04" * 200)
    def relay():
        try:
            while b := os.read(fd, 65536):
                while b: b = b[os.write(1, b):]
        except OSError:
            pass
    t = threading.Thread(target=relay, daemon=True)
    t.start()
    end = os.waitpid(pid, 0)[1]
    t.join(5)
    os._exit(os.waitstatus_to_exitcode(end) & 255)
`

// plainNode is loaded before the code under test, which alone sees a terminal: the
// runner keeps to what it prints elsewhere.
const plainNode = `'use strict';
const path = require('node:path'), tty = require('node:tty');
const root = path.dirname(__dirname) + path.sep;
const asked = () => {
  const at = (new Error().stack || '').split('\n')[3] || '';
  return at.includes(root) && !at.includes('node_modules') && !at.includes(__dirname);
};
for (const name of '` + sandboxNames + `'.split(' ')) delete process.env[name];
process.env.TERM = 'xterm';
const like = { isTTY: true, columns: 80, rows: 24 };
for (const name of ['getColorDepth', 'hasColors', 'getWindowSize']) like[name] = tty.WriteStream.prototype[name];
for (const stream of [process.stdout, process.stderr]) {
  for (const name of Object.keys(like)) {
    let was = stream[name];
    Object.defineProperty(stream, name, { configurable: true, enumerable: false, get: () => (asked() ? like[name] : was), set: (v) => { was = v; } });
  }
}
const isatty = tty.isatty;
tty.isatty = (fd) => (asked() ? fd < 3 : isatty(fd));
`

// atTerminal runs the program $app at a terminal, where the means for it are there.
const atTerminal = `unset ` + sandboxNames + `
if command -v script >/dev/null && command -v stty >/dev/null; then
	q=
	for a; do q="$q '$(printf '%s' "$a" | sed "s/'/'\\\\''/g")'"; done
	SHELL=/bin/sh TERM=xterm exec script -qefc "stty -opost -echo cols 80 rows 24; exec '$app' $q" /dev/null
fi
exec "$app" "$@"`

// plainly writes what the commands of a plain run need into the scratch directory.
func (c *checker) plainly(ctx context.Context) error {
	for _, f := range [][2]string{{"exec", withoutSources}, {"plain.cjs", plainNode}} {
		if _, err := c.ws.Run(ctx, workspace.Command{Timeout: time.Minute, Args: []string{"sh", "-c", `printf '%s\n' "$1" >"$2"`, "sh", f[1], scratch + "/" + f[0]}}); err != nil {
			return err
		}
	}
	return nil
}

// plainEnv is what a command's environment has in addition in a plain run.
func (c *checker) plainEnv() []string {
	if c.moved == nil || strings.ContainsAny(c.root, " \t\"'\\") {
		return nil
	}
	return []string{"NODE_OPTIONS=--require=" + c.root + "/" + scratch + "/plain.cjs"}
}
