package check

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/measure"
	"forge/pipeline/quality"
	"forge/pipeline/text"
)

// gatePrefix begins the names of failures that are missed gates of quality.
const gatePrefix = "quality/"

// GateOptions say which gates of quality are measured, and against what.
type GateOptions struct {
	Gates    []config.Quality // those of the base's settings
	Base     string           // SHA
	Head     string           // SHA
	Patch    string           // unified diff base..head
	Baseline *pipeline.TestReport
	Earlier  []Past
	Tests    config.Tests
	Known    map[string]pipeline.KnownFailure
	Timeout  time.Duration // of one command, instead of the settings'; 0: those
	Kept     Kept          // nil: nothing is kept
	Tools    string        // those of the machine, with their versions: with others the base is measured again
	Log      *slog.Logger
	Clock    func() time.Time
}

// Kept holds what was measured at bases, by [quality.Key].
type Kept interface {
	Get(ctx context.Context, key string) *measure.Reading
	Put(ctx context.Context, key string, r *measure.Reading)
}

// gauge measures the gates of one change.
type gauge struct {
	o          GateOptions
	head, base Opener
	report     *pipeline.TestReport
	patch      *patch
}

// Measure measures the gates of quality on a head whose tests passed, and puts into
// their report what they come to: a gate that blocks and is missed is a failure, or one
// from before the work where the base misses it no less; one that cannot be measured
// keeps the report from being clean. The two openers must not share a tree.
//
// What a command names of the repository is run as the base has it, too, where the change
// edits it: the change does not measure itself.
func Measure(ctx context.Context, head, base Opener, report *pipeline.TestReport, o GateOptions) error {
	g := &gauge{o: o, head: head, base: base, report: report}
	var err error
	if g.patch, err = parsePatch(o.Patch); err != nil {
		return err
	}
	for _, q := range o.Gates {
		gate := quality.Of(q)
		begun := o.Clock()
		m, err := g.gate(ctx, gate)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("measure the quality gate %s: %w", gate.Name, err)
		}
		m.Millis = o.Clock().Sub(begun).Milliseconds()
		o.Log.Info("quality gate measured", "gate", m.Name, "head", o.Head, "value", m.Value, "ok", m.OK, "error", m.Error, "ms", m.Millis)
		g.enter(m)
	}
	return nil
}

// enter puts a measure into the report.
func (g *gauge) enter(m measure.Result) {
	g.report.Measures = append(g.report.Measures, m)
	switch {
	case !m.Block || m.OK:
	case m.Error != "":
		why := fmt.Sprintf("the quality gate %s could not be measured: %s", m.Name, m.Error)
		g.report.Unclean = strings.TrimPrefix(g.report.Unclean+"; "+why, "; ")
	case m.Before:
		g.report.Before = append(g.report.Before, g.missedBefore(m))
	default:
		g.report.Failures = append(g.report.Failures, g.missed(m))
	}
}

// missed is the failure that a missed gate is.
func (g *gauge) missed(m measure.Result) pipeline.Failure {
	f := pipeline.Failure{Test: gatePrefix + m.Name, Error: m.Says(), Cause: pipeline.CauseQuality}
	if cause := m.Cause(); cause != "" {
		f.Error += "\n" + cause
	}
	if len(m.Owner) > 0 {
		f.Error += "\nanswered for by: " + strings.Join(m.Owner, ", ")
	}
	f.Fingerprint = GateFingerprint(f.Test)
	if len(m.Places) > 0 {
		f.File, f.Line = m.Places[0].File, m.Places[0].Line
	}
	if m.Base != nil {
		f.WorkedIn = WorkedAtBase
	}
	for _, past := range g.o.Earlier {
		for _, was := range past.Report.Measures {
			if was.Name == m.Name && was.OK && past.Iteration > 0 {
				f.WorkedIn = past.Iteration
			}
		}
	}
	return f
}

// missedBefore is the failure from before the work that a gate is which the base misses,
// too. Its error holds no figure of the head: whoever lets it pass lets the base's pass.
func (g *gauge) missedBefore(m measure.Result) pipeline.Failure {
	f := pipeline.Failure{Test: gatePrefix + m.Name, Cause: pipeline.CauseQuality, WorkedIn: 0,
		Error: fmt.Sprintf("missed at the base, too, and no worse now: %s; %s at the base", m.Bound, measure.Show(*m.Base, m.Unit))}
	f.Fingerprint, f.Key = GateFingerprint(f.Test), f.ErrorKey()
	switch k := g.o.Known[f.Test]; {
	case k.Login != "" && k.Error == f.Key:
		f.KnownBy, f.KnownFor = k.Login, k.For()
	case g.o.Tests.KnownFailures == "allow":
		f.KnownBy = knownBySettings
	}
	return f
}

// GateFingerprint is the same whatever a gate's figure is: 2.5 MB and 900 kB over one bound
// are one failure.
func GateFingerprint(test string) string {
	f := pipeline.Failure{Test: test, Error: "quality gate"}
	return f.Digest()
}

// gate measures one gate: as the change leaves it and, where the change edits what
// measures it, also with that as the base has it. The worst counts.
func (g *gauge) gate(ctx context.Context, gate quality.Gate) (measure.Result, error) {
	switch gate.Use {
	case quality.Coverage, quality.CoverageChanged:
		return g.coverage(gate), nil
	case quality.Licences:
		return g.dependencies(ctx, gate)
	}
	tools, err := g.tools(ctx, gate)
	if err != nil {
		return measure.Result{}, err
	}
	asIs := gate
	asIs.Gone = len(tools) > 0
	m, err := g.once(ctx, asIs, nil)
	if err != nil || len(tools) == 0 {
		return m, err
	}
	again, err := g.once(ctx, gate, tools)
	if err != nil {
		return m, err
	}
	if badness(again) > badness(m) || worse(gate, again, m) {
		with := "with " + text.Clip(strings.Join(tools, ", "), 200) + " as the base has it"
		if m = again; m.Error != "" {
			m.Error = with + ": " + m.Error
		} else {
			m.Note = strings.TrimPrefix(m.Note+"; "+with, "; ")
		}
	}
	return m, nil
}

// worse reports whether a value is the worse of two that come to the same, where measuring
// varies by nothing.
func worse(gate quality.Gate, a, b measure.Result) bool {
	return badness(a) == badness(b) && a.Error == "" && gate.Repeats < 2 && a.Value != b.Value && (a.Value < b.Value) == gate.Higher
}

// badness orders what a gate comes to: one that is missed by the base, too, is not as bad.
func badness(m measure.Result) int {
	switch {
	case m.Error != "":
		return 3
	case m.OK:
		return 0
	case m.Before:
		return 1
	}
	return 2
}

// once measures a gate at head and base, with some files of the head as the base has them.
func (g *gauge) once(ctx context.Context, gate quality.Gate, put []string) (measure.Result, error) {
	head, err := g.head(ctx, g.o.Head)
	if err != nil {
		return measure.Result{}, err
	}
	defer head.Close()
	if len(put) > 0 {
		if err := head.Restore(ctx, g.o.Base, put); err != nil {
			return measure.Result{}, err
		}
	}
	if gate.Repeats > 1 {
		return g.inTurn(ctx, gate, head)
	}
	now, why, err := g.read(ctx, head, gate)
	if err != nil {
		return measure.Result{}, err
	}
	if why != "" {
		return gate.Unmeasured(why), nil
	}
	was, why, err := g.atBase(ctx, gate)
	if err != nil {
		return measure.Result{}, err
	}
	m := gate.Judge(now, was, why)
	if was != nil && m.Error == "" {
		m.Kept = was.Cut()
	}
	return m, nil
}

// atBase returns what the base comes to: it is measured once for all changes to it.
func (g *gauge) atBase(ctx context.Context, gate quality.Gate) (*measure.Reading, string, error) {
	if !gate.NeedsBase() || g.o.Base == "" {
		return nil, "there is none", nil
	}
	key := quality.Key(g.o.Base, g.o.Tools, gate.Quality)
	for _, past := range g.o.Earlier {
		for _, m := range past.Report.Measures {
			if m.Kept != nil && m.Kept.Key == key {
				return m.Kept, "", nil
			}
		}
	}
	if g.o.Kept != nil {
		if r := g.o.Kept.Get(ctx, key); r != nil {
			return r, "", nil
		}
	}
	tree, err := g.base(ctx, g.o.Base)
	if err != nil {
		return nil, "", err
	}
	defer tree.Close()
	r, why, err := g.read(ctx, tree, gate)
	if err != nil || why != "" {
		return nil, why, err
	}
	r.Key = key
	if g.o.Kept != nil {
		g.o.Kept.Put(ctx, key, &r)
	}
	return &r, "", nil
}

// inTurn measures head and base in turn, so that what else the machine does meets both. Of
// twenty looks at what is equal, one may show a difference by chance: what is missed is
// looked at once more, and both must show it.
func (g *gauge) inTurn(ctx context.Context, gate quality.Gate, head Tree) (measure.Result, error) {
	base, err := g.base(ctx, g.o.Base)
	if err != nil {
		return measure.Result{}, err
	}
	defer base.Close()
	m, err := g.look(ctx, gate, head, base)
	if err != nil || m.Error != "" || m.OK || m.Before {
		return m, err
	}
	again, err := g.look(ctx, gate, head, base)
	if err == nil && again.OK {
		again.Note = strings.TrimPrefix(again.Note+"; it was worse at a first look, and not at a second", "; ")
	}
	return again, err
}

// look measures both sides as often as the gate says.
func (g *gauge) look(ctx context.Context, gate quality.Gate, head, base Tree) (measure.Result, error) {
	var now, was measure.Reading
	for i := range gate.Repeats {
		for side := range 2 {
			tree, to, where := workTree(head), &now, "at the head"
			if (i+side)%2 == 0 {
				tree, to, where = base, &was, "at the base"
			}
			r, why, err := g.read(ctx, tree, gate)
			if err != nil {
				return measure.Result{}, err
			}
			if why != "" {
				return gate.Unmeasured(fmt.Sprintf("%s, measure %d of %d: %s", where, i+1, gate.Repeats, why)), nil
			}
			to.Add(r)
		}
	}
	return gate.Judge(now, &was, ""), nil
}
