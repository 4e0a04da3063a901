package check

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// A script of a shell shows by its exit code alone that it passes, also where it ends
// before it has looked at anything: what it sources may end it, or a line of its own. So
// a command that fails is put at the end of each, which those that come to it notice.

// ruleEnds is the rule of a script that passes without coming to its end.
const ruleEnds = "tests.ended"

// script is a test that is a script of a shell.
type script struct {
	file, test string
	text, was  string // at the head and at the base
}

// findScripts lists the scripts that passed as tests, each under its own name or as the
// file that a command starts which tells no tests apart.
func (v *verdict) findScripts(b *baseView) {
	for _, s := range v.head.suites {
		for i := range s.result.cases {
			t := &s.result.cases[i]
			files := []string{t.name}
			if s.format == formatAny && t.name == s.done.Name {
				files = b.startedBy(s)
			}
			for _, file := range files {
				text, there := b.read(file)
				if t.status != passed || !there || !isShell(file, text) || slices.ContainsFunc(v.scripts, func(o script) bool { return o.file == file }) {
					continue
				}
				v.scripts = append(v.scripts, script{file: file, test: t.name, text: string(text), was: string(b.text(file))})
			}
		}
	}
}

// startedBy lists the files that a suite's command names, also through npm and make.
func (b *baseView) startedBy(s *suite) (out []string) {
	for _, command := range b.commandTexts(s) {
		for _, w := range pathWord.FindAllString(command, -1) {
			if strings.ContainsAny(w, "./") {
				out = append(out, path.Join(s.dir, w))
			}
		}
	}
	return out
}

// bringsScripts finds the commands of which the change brings the file that they start: the
// base has no such test.
func (b *baseView) bringsScripts() map[string]bool {
	out := map[string]bool{}
	for _, s := range b.v.head.suites {
		fresh, stood := false, false
		for _, file := range b.startedBy(s) {
			f := b.v.head.patch.file(file)
			fresh = fresh || f != nil && f.IsNew
			stood = stood || b.text(file) != nil
		}
		if s.format == formatAny && fresh && !stood {
			out[s.done.Name] = true
		}
	}
	return out
}

// runToEnd finds the scripts that pass without coming to their end, since this change.
func (v *verdict) runToEnd(ctx context.Context) error {
	early := func(s script) bool {
		line := deadEnd(s.text)
		if line == "" || deadEnd(s.was) != "" {
			return false
		}
		v.found = append(v.found, pipeline.Finding{Rule: ruleEnds, File: s.file, Code: s.test, Message: fmt.Sprintf(
			"%s ends at `%s`, and nothing after that is ever run: let it come to its end, or take out what it does not do", s.file, line)})
		return true
	}
	scripts := slices.DeleteFunc(slices.Clone(v.scripts), early)
	if len(scripts) == 0 || !v.worthSpoiling() {
		return nil
	}
	p := &spoiler{ends: map[string]bool{}}
	for _, s := range scripts {
		p.ends[s.file] = true
	}
	now, err := v.spoiled(ctx, treeRun{sha: v.o.Head, spoil: p})
	if err != nil {
		return err
	}
	scripts = slices.DeleteFunc(scripts, func(s script) bool { return !now[s.test].ok() || flakyAt(v.o.Baseline, s.test) })
	if len(scripts) == 0 {
		return nil
	}
	before, err := v.spoiled(ctx, treeRun{sha: v.o.Base, spoil: p, all: true})
	if err != nil {
		return err
	}
	for _, s := range scripts[:min(len(scripts), maxBent)] {
		came := v.o.Baseline != nil && slices.Contains(v.o.Baseline.Names, s.test) && before[s.test].status == failed
		if before[s.test].ok() || !came && endsItself(s.text) { // its way before, or by its own word
			continue
		}
		v.found = append(v.found, pipeline.Finding{Rule: ruleEnds, File: s.file, Code: s.test, Message: fmt.Sprintf(
			"`%s` passes without coming to its end, since this change: with a command that fails as the last one of %s, it passes all the same. "+
				"What it runs ends it before, with exit code 0: let it come to its end", s.test, s.file)})
	}
	return nil
}

var (
	lastWord = lazyregexp.New(`^\s*(?:exit|exec)\b`)
	anExit   = lazyregexp.New(`(?:^|[\s;&|({])exit\b[ \t]*([^\s;&|)}]*)`)
	anExec   = lazyregexp.New(`(?:^|[\s;&|({])exec[ \t]+([^\s;&|)}]+)`)
	exitWell = lazyregexp.New(`^\s*exit(?:[ \t]+0)?[ \t]*(?:[;#].*)?$`)
	opens    = lazyregexp.New(`^\s*(?:if|for|while|until|case|select)\b|(?:\{|\()\s*$`)
	closes   = lazyregexp.New(`^\s*(?:(?:fi|done|esac)\b|[})])`)
	inLine   = lazyregexp.New(`\b(?:fi|done|esac)\s*;?\s*$`)
	hereDoc  = lazyregexp.New(`<<-?\s*["'\\]?(\w+)`)
)

// commands are the lines of a script but for remarks, blank ones, and texts that it holds.
// Deep tells those of a condition, a loop or a function.
func commands(text string, each func(number int, line string, deep bool)) {
	depth, until := 0, ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case until != "":
			if bare == until {
				until = ""
			}
			continue
		case bare == "" || strings.HasPrefix(bare, "#"):
			continue
		}
		if closes.MatchString(line) {
			depth = max(0, depth-1)
		}
		each(i, line, depth > 0)
		if opens.MatchString(line) && !inLine.MatchString(line) {
			depth++
		}
		if m := hereDoc.FindStringSubmatch(line); m != nil {
			until = m[1]
		}
	}
}

// deadEnd returns the line by which a script always ends well before its last command;
// "" where there is none.
func deadEnd(text string) string {
	at := ""
	dead := false
	commands(text, func(_ int, line string, deep bool) {
		switch {
		case at != "":
			dead = true
		case !deep && exitWell.MatchString(line):
			at = strings.TrimSpace(line)
		}
	})
	if !dead {
		return ""
	}
	return at
}

// endsItself reports whether a script may end well before its last command by its own word.
func endsItself(text string) bool {
	last := -1
	commands(text, func(number int, _ string, _ bool) { last = number })
	own := false
	commands(text, func(number int, line string, _ bool) {
		if number == last {
			return
		}
		for _, m := range anExit.FindAllStringSubmatch(line, -1) {
			own = own || m[1] == "" || m[1][0] < '1' || m[1][0] > '9'
		}
		for _, m := range anExec.FindAllStringSubmatch(line, -1) {
			own = own || !strings.ContainsAny(m[1][:1], "<>0123456789")
		}
	})
	return own
}

// badEnd puts a command that fails at the end of a script, before the one that ends it.
func badEnd(text string) string {
	const fails = "echo 'the end was reached' >&2; exit 97\n"
	lines := strings.SplitAfter(strings.TrimRight(text, "\n")+"\n", "\n")
	last, deepLast := -1, false
	commands(text, func(number int, _ string, deep bool) { last, deepLast = number, deep })
	if last >= 0 && !deepLast && last < len(lines) && lastWord.MatchString(lines[last]) {
		lines = slices.Insert(lines, last, fails)
		return strings.Join(lines, "")
	}
	return strings.Join(lines, "") + fails
}
