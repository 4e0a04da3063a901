package check

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

const (
	// MendNotRun says what to do about a suite that the server cannot run.
	MendNotRun = "Install what is missing on the server, under /usr/local or /usr (the sandbox sees no home directories, where rustup, nvm or pyenv put theirs), or name the commands that are to be run under tests.commands in .github/forge.yml."
	noNetwork  = "and the sandbox has no network"
	fetchIt    = ": name commands that fetch them under setup.commands in .github/forge.yml, or vendor them"
)

var (
	notFound  = lazyregexp.New(`(?m)(?:^|[\s:"'])([\w./+@-]+)["']?: (?:(?:command )?not found|executable file not found|No such file or directory)`)
	makeError = lazyregexp.New(`(?m)^make.*\bError 127$`)
)

// lack is an output that means that something is missing around the tests, not in
// the code.
type lack struct {
	pattern *lazyregexp.Regexp
	mend    string // what is missing and how to provide it
}

// missing holds for suites of every kind.
var missing = []lack{
	{lazyregexp.New(`module lookup disabled by GOPROXY=off`), "a Go module is not in the module cache " + noNetwork + ": vendor it (go mod vendor), or fill the server's module cache"},
	{lazyregexp.New(`requires go >= [\d.]+ \(running go|toolchain not available`), "the repository needs a newer Go than the server has: install it on the server"},
	{lazyregexp.New(`No space left on device|ENOSPC`), "the disk, or the work tree's share of it, is full: make room on the server"},
	{lazyregexp.New(`Could not resolve host|Temporary failure in name resolution|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|failed to download from|Network is unreachable`), "the tests want the network, and the sandbox has none: vendor the dependencies, or name commands that do without under tests.commands in .github/forge.yml"},
}

// needs is why a suite cannot run when programs are missing.
func needs(tools ...string) string {
	for i, t := range tools {
		tools[i] = "`" + t + "`"
	}
	it := "it was"
	if len(tools) > 1 {
		it = "they were"
	}
	return "needs " + strings.Join(tools, " and ") + " on the server: " + it + " not found in the sandbox"
}

// cannotRun returns what was missing when a command ended with an error before
// any of its tests ran; "" when nothing around the tests was.
func (s *suite) cannotRun(exit int, text string) string {
	for _, m := range slices.Concat(s.lacks, missing) {
		if found := m.pattern.FindString(text); found != "" {
			return m.mend + " (" + oneLine(found) + ")"
		}
	}
	if exit != 127 && exit != 126 && !makeError.MatchString(text) {
		return ""
	}
	if m := notFound.FindStringSubmatch(text); m != nil {
		return needs(m[1])
	}
	return fmt.Sprintf("a program that it starts was not found in the sandbox (exit code %d)", exit)
}

var moduleNotFound = lazyregexp.New(`ModuleNotFoundError: No module named '([\w]+)`)

// absentPackage returns which Python package is not installed, when no test ran
// for want of it. What ran at the base commit failed because of the change.
func (c *checker) absentPackage(s *suite, text string) string {
	if s.own == nil || c.o.Baseline != nil && slices.ContainsFunc(c.o.Baseline.Suites, func(b pipeline.Suite) bool {
		return b.Command == s.done.Command && b.NotRun == ""
	}) {
		return ""
	}
	var names []string
	for _, m := range moduleNotFound.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(s.own, m[1]) && !slices.Contains(names, "`"+m[1]+"`") {
			names = append(names, "`"+m[1]+"`")
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "the Python package " + names[0] + " is not installed " + noNetwork
	}
	return "the Python packages " + strings.Join(names, ", ") + " are not installed " + noNetwork
}

// notRun lists the suites that could not run, with what is missing.
func (c *checker) notRun() (out []string, all bool) {
	all = len(c.suites) > 0
	for _, s := range c.suites {
		if s.done.NotRun != "" && !s.optional {
			out = append(out, fmt.Sprintf("`%s` could not run: %s", s.done.Command, s.done.NotRun))
		} else if s.done.NotRun == "" {
			all = false
		}
	}
	return out, all
}

// nothingRan is the fault of a repository none of whose suites can run on this
// server. It is not a test failure (R6).
func (c *checker) nothingRan() error {
	out, all := c.notRun()
	if !all {
		return nil
	}
	return &pipeline.Fault{Class: pipeline.FaultEnvironment, Final: true, Message: strings.Join(out, "; ") + ". " + MendNotRun}
}
