package check

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"forge/pipeline"
	"forge/pipeline/look"
	"forge/pipeline/point"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// Code under test can keep a test from showing anything without a word about tests:
// it agrees with whatever it is compared with, swallows what is raised, does not call
// back what would hold something. So the base's tests run on it with wrong
// expectations, which they must notice, as they do on the base's own code.

const (
	spoiledAtMost = 5 * time.Minute // of tests whose run takes longer, nobody waits for another
	maxBent       = 20              // findings
	maxSingly     = 4               // expectations of a test that are changed alone
)

// runSpoiled finds the tests that pass whatever they expect, since this change. Where it
// settles how values compare, each expectation is changed alone, too: else another one of
// the same test would hide that this one holds nothing.
func (v *verdict) runSpoiled(ctx context.Context) error {
	if !v.worthSpoiling() {
		return nil
	}
	p := spoiler{tail: "~" + v.o.word(8), used: v.used}
	for {
		if err := v.spoil(ctx, &p); err != nil || len(v.found) > 0 {
			return err
		}
		if p.one++; p.one > maxSingly || !v.settlesCompare() {
			return nil
		}
	}
}

// settlesCompare reports whether the change adds code that settles how its values compare,
// that ends what a test checks in, or that reaches something by a way that hides what.
func (v *verdict) settlesCompare() bool {
	return v.asksOf(point.Compare, point.Hidden, point.Ends)
}

// asksOf reports whether the reviewer is asked about something of these kinds.
func (v *verdict) asksOf(kinds ...point.Kind) bool {
	return slices.ContainsFunc(v.head.patch.lookFiles(v.isTest), func(f look.File) bool {
		return slices.ContainsFunc(look.Find([]look.File{f}, nil), func(p point.Point) bool { return slices.Contains(kinds, p.Kind) })
	})
}

// lookFiles are the files that are no tests with what the change adds to them.
func (p *patch) lookFiles(isTest map[string]bool) []look.File {
	var out []look.File
	for f, lines := range p.productLines(isTest) {
		file := look.File{Name: f.NewName, New: f.IsNew, Added: lines}
		file.Source, file.Gone = shown(f)
		out = append(out, file)
	}
	return out
}

// shown returns what a patch shows of a file after the change, each line in its place, and the lines that go.
func shown(f *gitdiff.File) (source string, gone []string) {
	var lines []string
	for _, frag := range f.TextFragments {
		n := int(frag.NewPosition)
		for _, l := range frag.Lines {
			line := strings.TrimRight(l.Line, "\r\n")
			if l.Op == gitdiff.OpDelete {
				gone = append(gone, line)
				continue
			}
			for len(lines) < n {
				lines = append(lines, "")
			}
			lines[n-1] = line
			n++
		}
	}
	return strings.Join(lines, "\n"), gone
}

// spoil finds the tests that pass with expectations changed in one way, since this change.
func (v *verdict) spoil(ctx context.Context, p *spoiler) error {
	kept := map[string]string{}
	if v.stood != nil {
		kept = v.stood.kept
	}
	now, err := v.spoiled(ctx, treeRun{sha: v.o.Head, back: true, kept: kept, spoil: p})
	if err != nil || len(now) == 0 {
		return err
	}
	var deaf []string
	for _, name := range v.passing() {
		if o, there := now[name]; there && o.ok() && !flakyAt(v.o.Baseline, name) {
			deaf = append(deaf, name)
		}
	}
	if len(deaf) == 0 {
		return nil
	}
	before, err := v.spoiled(ctx, treeRun{sha: v.o.Base, spoil: p})
	if err != nil {
		return err
	}
	bent := slices.DeleteFunc(deaf, func(name string) bool { return before[name].status != failed })
	if bent, err = v.heldBefore(ctx, bent); err != nil {
		return err
	}
	if bent, err = v.steadily(ctx, bent, treeRun{sha: v.o.Head, back: true, kept: kept, spoil: p}, treeRun{sha: v.o.Base, spoil: p}); err != nil {
		return err
	}
	slices.Sort(bent)
	bent = slices.Compact(bent)
	for _, name := range bent[:min(len(bent), maxBent)] {
		v.found = append(v.found, pipeline.Finding{Rule: ruleBent, File: before[name].file, Code: name, Message: fmt.Sprintf(
			"`%s` passes whatever it expects, since this change: with other values in the place of those that it expects, it passes on this code, and fails on the base's (%s). What it holds is not reached any more, or what it looks at agrees with everything",
			name, text.Clip(text.OneLine(before[name].err), 200))})
	}
	return nil
}

// heldBefore returns of the tests those that pass at the base with what they do expect:
// others fail there whatever it is.
func (v *verdict) heldBefore(ctx context.Context, names []string) ([]string, error) {
	unsure := func(name string) bool { return v.o.Baseline == nil || !slices.Contains(v.o.Baseline.Names, name) }
	if !slices.ContainsFunc(names, unsure) {
		return names, nil
	}
	plain, err := v.spoiled(ctx, treeRun{sha: v.o.Base})
	return slices.DeleteFunc(names, func(name string) bool { return !plain[name].ok() }), err
}

// steadily returns of the tests that passed by one run and failed by the other those that
// do so each time: a flaky test says nothing.
func (v *verdict) steadily(ctx context.Context, names []string, passes, fails treeRun) ([]string, error) {
	for range maxFresh {
		for _, r := range []treeRun{fails, passes} {
			if len(names) == 0 {
				return nil, nil
			}
			got, err := v.spoiled(ctx, r)
			if err != nil {
				return nil, err
			}
			names = slices.DeleteFunc(names, func(name string) bool { return got[name].ok() != (r.sha == passes.sha) })
		}
	}
	return names, nil
}

func flakyAt(b *pipeline.TestReport, name string) bool {
	return b != nil && slices.Contains(b.Flaky, name)
}

// worthSpoiling reports whether the change could bend tests that pass: where
// something fails already, or runs for long, that is enough.
func (v *verdict) worthSpoiling() bool {
	var ms int64
	for _, s := range v.head.suites {
		ms += s.done.Millis
	}
	code := slices.ContainsFunc(v.head.patch.files, func(f *gitdiff.File) bool {
		return languageOf(f.NewName) != &otherLang || sourceExt.MatchString(f.NewName)
	})
	if time.Duration(ms)*time.Millisecond > spoiledAtMost || !code || v.allBack() {
		return false
	}
	for name, o := range v.tests {
		if o.status == failed {
			if _, before := v.head.base[name]; !before {
				return false
			}
		}
	}
	return true
}

// spoiled runs tests, with wrong expectations where r has a spoiler. A suite that tells no tests apart is
// one test, by its command.
func (v *verdict) spoiled(ctx context.Context, r treeRun) (map[string]outcome, error) {
	c, err := v.run(ctx, r)
	if _, mine := environment(err); mine {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return outcomes(c.cases()), nil
}

// files lists what is changed in a work tree.
func (p *spoiler) files(ctx context.Context, tree Tree) ([]string, error) {
	if p.ends != nil {
		return slices.Sorted(maps.Keys(p.ends)), nil
	}
	files, err := sourceFiles(ctx, tree, "*.sh", "*.bash", "*.bats", "*.rb", "*.php", "*.java", "*.kt", "*.groovy")
	for name := range p.used {
		if path.Ext(name) == "" {
			files = append(files, name)
		}
	}
	return slices.DeleteFunc(files, func(name string) bool {
		return !testname.IsFile(name) && !testNames.MatchString(path.Base(name)) && !p.used[name]
	}), err
}

// tree changes what the tests of a work tree expect, and returns in how many files.
func (p *spoiler) tree(ctx context.Context, tree Tree) (spoiled int, err error) {
	files, err := p.files(ctx, tree)
	if err != nil {
		return 0, err
	}
	for _, name := range files {
		source, err := tree.Read(ctx, name)
		if err != nil {
			if ctx.Err() != nil {
				return spoiled, ctx.Err()
			}
			continue // a link
		}
		changed, n := p.spoil(name, source)
		if p.ends != nil {
			changed, n = []byte(badEnd(string(source))), 1
		}
		if n == 0 {
			continue
		}
		if err := tree.Write(ctx, name, changed); err == nil {
			spoiled++
		} else if ctx.Err() != nil {
			return spoiled, ctx.Err()
		}
	}
	return spoiled, nil
}
