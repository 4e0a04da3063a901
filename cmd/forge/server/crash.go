package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"forge/pipeline/text"
	"forge/pipeline/work"
)

// In the state directory: what the Go runtime writes when the server ends by itself, and what it
// wrote the last time that it did. An end from outside, as by kill -9, leaves the first one empty.
const (
	crashFile     = "crash.txt"
	lastCrashFile = "crash.last.txt"
)

const maxCrash = 256 << 10 // bytes of it that are read

// watchCrashes has the runtime write down how this process ends by itself, from now on, and returns
// what it wrote when an earlier one did; "" where that was ended in order, or from outside. It is
// for a process that is one server and nothing else.
func watchCrashes(dir string) (earlier string, err error) {
	name, last := filepath.Join(dir, crashFile), filepath.Join(dir, lastCrashFile)
	content, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(content) > 0 {
		if err := os.Rename(name, last); err != nil {
			return "", err
		}
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer f.Close() // the runtime has its own
	if err := debug.SetCrashOutput(f, debug.CrashOptions{}); err != nil {
		return "", err
	}
	// Goroutines are named with what they work on.
	if err := os.Setenv("GODEBUG", strings.TrimPrefix(os.Getenv("GODEBUG")+",tracebacklabels=1", ",")); err != nil {
		return "", err
	}
	earlier = string(content[:min(len(content), maxCrash)])
	for _, asked := range []string{"SIGQUIT", "SIGABRT"} { // somebody wanted to see where it stood
		if strings.HasPrefix(earlier, asked) {
			earlier = ""
		}
	}
	return earlier, nil
}

// jobLabel begins the label of what goes on beside the engine.
const jobLabel = "job/"

// howItEnded names the end of a process in a few words. What a panic said is the operator's alone.
func howItEnded(crash string) string {
	top, _, _ := strings.Cut(crash, "\n\ngoroutine ")
	switch {
	case strings.HasPrefix(crash, "panic: "):
		return "a panic"
	case strings.Contains(top, "runtime.throw(") && strings.Contains(top, "runtime.morestack"):
		return "a stack overflow"
	case strings.Contains(top, "runtime.throw(") && strings.Contains(top, "runtime.mallocgc"):
		return "no memory was left"
	}
	return "a fatal error"
}

// afterCrash looks how the server ended the last time, and has set aside what would end it again.
func (s *Server) afterCrash(ctx context.Context, dir string) {
	before, _ := os.ReadFile(filepath.Join(dir, lastCrashFile)) // none, as a rule
	crash, err := watchCrashes(dir)
	if err != nil {
		s.log.Warn("it is not known how the server ended last, and will not be the next time", "error", err)
	}
	if crash == "" {
		return
	}
	on, how := work.WorkedOn(crash), howItEnded(crash)
	log := s.log.With("what", on, "error", how, "stack", text.ClipBytes(strings.TrimSpace(crash), 4000), "file", filepath.Join(dir, lastCrashFile))
	aside, err := s.Engine.Crashed(ctx, on, how)
	if job, ok := strings.CutPrefix(on, jobLabel); ok && work.WorkedOn(string(before)) == on {
		aside, s.aside = true, job // until the next start
	}
	switch {
	case err != nil:
		log.Error("the server ended by itself, and what it worked on is taken up again", "why", err)
	case aside:
		log.Error("the server ended by itself a second time while it worked on the same thing, which is set aside")
	case on != "":
		log.Error("the server ended by itself; what it worked on is tried once more")
	default:
		log.Error("the server ended by itself; what it worked on is not known")
	}
}
