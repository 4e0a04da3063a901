package simulate

import (
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"forge/pipeline"
)

// world is what is true of one run and what no guard can see: the defects that
// are really there. It draws everything that happens from one stream, in the
// order in which phases are carried out, so that two policies see the same until
// one of them stops.
type world struct {
	m    *Model
	rng  *rand.Rand
	hard float64 // the task's difficulty, a factor of its defects
	core bool    // the task holds a defect that is never mended
	own  float64 // how well the implementer sees that, 0 to 1

	defects []defect
	claims  []claim // false findings that the review holds on to
	names   int     // fingerprints given so far
	commits int
	faulted bool // the last execution broke down

	useful   []bool // by iteration, from 0: whether fewer defects were open after it than ever since the first change
	improved []bool // likewise: whether fewer were open than before it
	fewest   int
}

// defect is something really wrong with the change.
type defect struct {
	fix      float64 // its own chance of being mended by a rework that was told of it
	tested   bool    // it makes a test fail
	blind    bool    // the reviewer never sees it
	open     bool
	told     bool   // the last review or test report named it
	back     bool   // under the same name as an earlier one
	finding  string // fingerprint under which the review named it last; "" for never
	failure  string // fingerprint of its failing test
	failed   bool   // that test was seen to fail
	worked   int    // iteration before the one that brought it; 0 for the first
	critical bool
}

// claim is a false finding.
type claim struct {
	finding string
	open    bool
	told    bool
	back    bool
}

func newWorld(m *Model, seed, run uint64) *world {
	w := &world{m: m, rng: rand.New(rand.NewPCG(seed, run))}
	w.hard = []float64{0.5, 0.5, 0.5, 1, 1, 1, 1, 2, 2, 2}[w.rng.IntN(10)]
	w.core = w.chance(m.Unsolvable)
	w.own = w.rng.Float64() // some it sees through, of others it never thinks so
	return w
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) between(from, to float64) float64 { return from + (to-from)*w.rng.Float64() }

func (w *world) name() string {
	w.names++
	return strconv.Itoa(w.names)
}

// left counts the true defects that are open.
func (w *world) left() int {
	n := 0
	for i := range w.defects {
		if w.defects[i].open {
			n++
		}
	}
	return n
}

func (w *world) add(iteration int) {
	w.defects = append(w.defects, defect{
		fix:  min(0.98, max(0.02, w.m.Fix+spread*(2*w.rng.Float64()-1))),
		open: true, tested: w.chance(w.m.Tested), blind: w.m.blind() > 0 && w.chance(w.m.blind()), failure: w.name(), worked: iteration - 1, critical: w.chance(0.2),
	})
}

// breaksDown draws whether an execution of a phase breaks down.
func (w *world) breaksDown() bool {
	p := w.m.Fault
	if w.faulted {
		p = w.m.FaultAgain
	}
	w.faulted = w.chance(p)
	return w.faulted
}

// cost draws what a phase costs; its mean is given.
func (w *world) cost(mean float64) pipeline.Usage {
	micro := int64(mean * math.Exp(costSigma*w.rng.NormFloat64()-costSigma*costSigma/2))
	tokens := int64(float64(micro) * tokensPerMicroUSD)
	return pipeline.Usage{Calls: 1, Input: tokens, MicroUSD: micro}
}

// millis draws how long a phase takes: half to one and a half of its mean.
func (w *world) millis(minutes float64) int64 {
	return int64(minutes * (0.5 + w.rng.Float64()) * float64(time.Minute/time.Millisecond))
}

// implement carries out the implementer's phase of an iteration, and returns the
// new head, or the old one when nothing was committed.
func (w *world) implement(iteration int, head string) *pipeline.Implementation {
	before := w.left()
	for len(w.useful) < iteration {
		w.useful, w.improved = append(w.useful, false), append(w.improved, false)
	}
	misread := w.chance(w.m.Misread)
	if misread && w.chance(w.m.Idle) {
		return &pipeline.Implementation{Parent: head, Head: head}
	}
	n, made := iteration-1, &pipeline.Implementation{Parent: head, Files: files}
	if w.commits == 0 {
		w.first(iteration, misread)
		w.useful[n], w.improved[n], w.fewest = true, true, w.left() // from nothing to something
	} else {
		w.says(made, misread)
		w.rework(iteration, misread)
		left := w.left()
		w.improved[n] = w.improved[n] || left < before
		w.useful[n] = w.useful[n] || left < w.fewest
		w.fewest = min(w.fewest, left)
	}
	w.commits++
	made.Head = "commit" + strconv.Itoa(w.commits)
	return made
}

// says draws whether the implementer thinks that it cannot mend what it was told
// of, and says so: by itself, or as a doubt, because it is asked outright about
// what has come back. It does the rest of its work all the same.
func (w *world) says(made *pipeline.Implementation, misread bool) {
	itself, asked := w.m.Timid, 0.0
	for i := range w.claims {
		if c := &w.claims[i]; c.open && c.told && c.back {
			asked = w.m.TimidAsked
		}
	}
	for i := range w.defects {
		if d := &w.defects[i]; d.open && d.told && d.back {
			asked = w.m.TimidAsked
		}
	}
	for i := range w.defects {
		if d := &w.defects[i]; d.open && d.told && d.fix == 0 && !misread {
			itself = 2 * w.m.Unable * w.own
			if d.back {
				asked = 2 * w.m.Asked * w.own
			}
		}
	}
	switch drawn := w.rng.Float64(); {
	case drawn < itself:
		made.Unable = "this cannot be mended"
	case drawn < asked:
		made.Doubts = aDoubt
	}
}

func (w *world) first(iteration int, misread bool) {
	for range poisson(w.rng, w.m.Defects*w.hard) {
		w.add(iteration)
	}
	if misread {
		w.add(iteration)
	}
	if w.core {
		w.add(iteration)
		d := &w.defects[len(w.defects)-1]
		d.fix, d.tested = 0, w.chance(max(coreTested, w.m.Tested))
	}
}

func (w *world) rework(iteration int, misread bool) {
	for i := range w.defects {
		d := &w.defects[i]
		if d.open && d.told && !misread && w.chance(d.fix) {
			d.open = false
		}
		d.told, d.back = false, false
	}
	for i := range w.claims {
		c := &w.claims[i]
		if c.open && c.told && !misread && w.chance(w.m.Convince) {
			c.open = false
		}
		c.told, c.back = false, false
	}
	for range poisson(w.rng, w.m.Break) {
		w.add(iteration)
	}
}

// review carries out the reviewer's phase.
func (w *world) review(head string) *pipeline.Review {
	v := &pipeline.Review{Head: head, Reviewed: files}
	for i := range w.defects {
		d := &w.defects[i]
		known := d.finding != ""
		see := w.m.sight()
		if known {
			see = w.m.Recheck
		}
		if !d.open || d.blind || !w.chance(see) {
			continue
		}
		if !known || w.chance(w.m.Reworded) {
			d.finding = w.name()
		} else {
			d.back = true
		}
		d.told = true
		v.Findings = append(v.Findings, w.finding(d.finding, d.critical, w.between(sureFrom, sureTo)))
	}
	for range poisson(w.rng, w.m.False) {
		w.claims = append(w.claims, claim{open: true})
	}
	for i := range w.claims {
		c := &w.claims[i]
		known := c.finding != ""
		if !c.open || known && !w.chance(w.m.Recheck) {
			continue
		}
		if !known || w.chance(w.m.Reworded) {
			c.finding = w.name()
		} else {
			c.back = true
		}
		c.told = true
		v.Findings = append(v.Findings, w.finding(c.finding, w.chance(0.1), w.between(falseFrom, falseTo)))
	}
	return v
}

func (w *world) finding(fingerprint string, critical bool, confidence float64) pipeline.Finding {
	f := pipeline.Finding{Fingerprint: fingerprint, Severity: pipeline.SeverityError, Category: pipeline.CategoryCorrectness,
		Message: "finding", File: files[0], Confidence: confidence}
	if critical {
		f.Severity = pipeline.SeverityCritical
	}
	return f
}

// test carries out the tests.
func (w *world) test(head string) *pipeline.TestReport {
	t := &pipeline.TestReport{Head: head, Total: tests, Passed: tests}
	fail := func(fingerprint string, sure float64, worked int) {
		f := pipeline.Failure{Fingerprint: fingerprint, Test: fingerprint, Error: "failure", Cause: "logic",
			Confidence: 0.4 + 0.3*w.rng.Float64(), WorkedIn: worked, Fix: aFix}
		if w.chance(sure) {
			f.Confidence = 0.75 + 0.2*w.rng.Float64()
		}
		t.Failures = append(t.Failures, f)
		t.Failed++
		t.Passed = max(1, t.Passed-1)
	}
	for i := range w.defects {
		d := &w.defects[i]
		if !d.open || !d.tested {
			continue
		}
		d.told, d.back, d.failed = true, d.back || d.failed, true
		sure := w.m.Sure
		if d.fix == 0 {
			sure = w.m.SureWrong
		}
		fail(d.failure, sure, d.worked)
	}
	if w.chance(w.m.Flaky) {
		fail("flaky"+w.name(), w.m.SureWrong, 0)
	}
	return t
}

// What all changes and all test reports have alike.
var (
	files  = []string{"a.go"}
	aDoubt = []string{"it: what is missing"}
	aFix   = &pipeline.Fix{Description: "a fix"}
)

const tests = 100
