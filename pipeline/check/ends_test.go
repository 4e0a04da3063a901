package check

import (
	"os/exec"
	"strings"
	"testing"
)

// Covers lessons 16: a line after which nothing is run, words by which a script ends by
// itself, and an end that fails where the script comes to it.
func TestEndsOfScripts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		dead string // the line that ends it
		own  bool   // it may end well before its last command
		runs bool   // it comes to its end
	}{
		{text: "true\n[ 1 = 1 ]\n", runs: true},
		{text: "exit 0\n[ 1 = 2 ]\n", dead: "exit 0", own: true},
		{text: "# exit 0\ntrue\nexit # enough\nfalse", dead: "exit # enough", own: true},
		{text: "true\nexit 0\n# that is all\n", runs: true},
		{text: "bad=0\ntrue || bad=1\nexit $bad\n", runs: true},
		{text: "if true; then\nexit 0\nfi\nexit 1\n", own: true},
		{text: "fail() {\n  exit 1\n}\ntrue || fail\n", runs: true},
		{text: "skip() { exit 0; }\nskip\nfalse\n", own: true},
		{text: "exec true\nfalse\n", own: true},
		{text: "exec 3>/dev/null\ntrue\nexec true\n", runs: true},
		{text: "cat <<'END' >/dev/null\nexit 0\nEND\ntrue\n", runs: true},
		{text: "if true; then\n  exit 3\nfi\n"},
		{text: "true; if [ 1 = 1 ]; then true; fi\nexit 0", runs: true},
	} {
		if dead, own := deadEnd(tt.text), endsItself(tt.text); dead != tt.dead || own != tt.own {
			t.Errorf("%q: it always ends at %q, want %q; by itself %v, want %v", tt.text, dead, tt.dead, own, tt.own)
		}
		cmd := exec.Command("sh", "-c", badEnd(tt.text))
		out, _ := cmd.CombinedOutput()
		if runs := cmd.ProcessState.ExitCode() == 97 && strings.Contains(string(out), "the end was reached"); runs != tt.runs {
			t.Errorf("%q: it comes to its end: %v, want %v; as %q it ends with %d: %s", tt.text, runs, tt.runs, badEnd(tt.text), cmd.ProcessState.ExitCode(), out)
		}
	}
}
