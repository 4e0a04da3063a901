package needs

import (
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that notes how it was ended, and goes on in no case.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()       {}
func (r *recorder) Skip(a ...any) { r.skipped, _ = a[0].(string); runtime.Goexit() }
func (r *recorder) Fatal(a ...any) {
	r.failed, _ = a[0].(string)
	runtime.Goexit()
}

func outcome(f func(testing.TB)) *recorder {
	r, done := &recorder{}, make(chan bool)
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// Covers D6: what a test lacks is named with how to install it, and is never red but in CI.
func TestTools(t *testing.T) {
	t.Setenv("CI", "")
	if r := outcome(func(tb testing.TB) { Tools(tb, "git") }); r.skipped+r.failed != "" {
		t.Errorf("git: skipped %q, failed %q", r.skipped, r.failed)
	}
	tools["no-such-tool"] = tool{install: "apt-get install it", inCI: true}
	defer delete(tools, "no-such-tool")
	lack := func(tb testing.TB) { Tools(tb, "git", "no-such-tool") }
	const want = "needs no-such-tool: apt-get install it"
	if r := outcome(lack); r.skipped != want || r.failed != "" {
		t.Errorf("skipped %q, failed %q; want skipped %q", r.skipped, r.failed, want)
	}
	t.Setenv("CI", "true")
	if r := outcome(lack); r.skipped != "" || !strings.HasPrefix(r.failed, want) {
		t.Errorf("with CI=true: skipped %q, failed %q; want failed", r.skipped, r.failed)
	}
	if r := outcome(func(tb testing.TB) { Tools(tb, "not-in-the-table") }); r.skipped == "" {
		t.Errorf("a tool that .ci/run does not install failed: %q", r.failed)
	}
}
