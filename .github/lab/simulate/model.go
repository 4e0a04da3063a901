package simulate

import (
	"math"
	"math/rand/v2"
)

// Model is a stochastic model of tasks and of the agents that work on them. All
// of it is chances (0 to 1) and means; Parameters says where the figures come
// from and over which range they are varied.
type Model struct {
	Unsolvable float64 // chance that a task holds a defect that the agent never mends
	Defects    float64 // mean number of defects in the first change of a task of middling difficulty
	Fix        float64 // mean chance that a rework mends a defect it was told of; see spread
	Break      float64 // mean number of new defects that a rework brings
	Misread    float64 // chance that the implementer does something else than asked
	Idle       float64 // chance that such a round leaves no commit either
	Tested     float64 // chance that a defect makes a test fail
	Recall     float64 // chance that a review finds a defect that it has not named before
	Blind      float64 // chance that a defect is one that this reviewer never sees, however often it looks; see blind
	Recheck    float64 // chance that it names again what it named before and is still there
	Reworded   float64 // chance that what it names again has got another fingerprint
	False      float64 // mean number of false findings that block, which a review adds
	Convince   float64 // chance that a rework rids the review of a false finding
	Unable     float64 // chance that the implementer says so in a round that is about a defect it cannot mend
	Timid      float64 // chance that it says so in any other round
	Asked      float64 // chance that it says so about a defect it cannot mend and that has come back, when it is asked outright
	TimidAsked float64 // chance that it says so in any other round in which something has come back, when it is asked outright
	Flaky      float64 // chance that a test phase reports a failure that is none, reruns notwithstanding
	Sure       float64 // chance that a failure which the agent can mend gets a confident fix from the analysis
	SureWrong  float64 // the same of one that it cannot mend, or that is none
	Fault      float64 // chance that a phase breaks down
	FaultAgain float64 // chance that it breaks down again
}

// Parameter is one figure of the Model with the range it is varied over.
type Parameter struct {
	Name        string  `json:"name"`
	Base        float64 `json:"base"`
	Optimistic  float64 `json:"optimistic"`  // the end of the range at which agents do well
	Pessimistic float64 `json:"pessimistic"` // the other end
	Source      string  `json:"source"`      // where the figure comes from, or what it says

	field func(*Model) *float64
}

// Parameters lists the model's figures. Where there is a published one, the range
// is around it; the others are assumptions, and the range is wide for that.
func Parameters() []Parameter {
	return []Parameter{
		{"unsolvable tasks", 0.15, 0.05, 0.40, "the best agents leave 20 to 30 % of SWE-bench Verified unresolved in one attempt, and more of harder sets; more attempts resolve some", func(m *Model) *float64 { return &m.Unsolvable }},
		{"defects in the first change", 0.7, 0.3, 2.0,
			"such that 4 of 10 first changes are right, between SWE-bench Pro (a quarter to a half) and Verified (over 70 %)",
			func(m *Model) *float64 { return &m.Defects }},
		{"a rework mends a defect", 0.60, 0.77, 0.45, "self-repair mends 45 % of logical and 77 % of simple errors (arXiv 2604.10508)",
			func(m *Model) *float64 { return &m.Fix }},
		{"new defects by a rework", 0.15, 0.05, 0.30, "assumed", func(m *Model) *float64 { return &m.Break }},
		{"a round misreads its task", 0.08, 0.03, 0.20, "assumed", func(m *Model) *float64 { return &m.Misread }},
		{"… and leaves no commit", 0.25, 0.10, 0.50, "assumed", func(m *Model) *float64 { return &m.Idle }},
		{"a defect fails a test", 0.60, 0.80, 0.40, "assumed", func(m *Model) *float64 { return &m.Tested }},
		{"a review finds a defect", 0.50, 0.70, 0.35, "review bots find 42 to 48 % of runtime bugs, by their makers' figures",
			func(m *Model) *float64 { return &m.Recall }},
		{"a defect it never sees", 0.25, 0.05, 0.45,
			"assumed: the same reviewer misses the same again; the others it finds oftener, so that a first look finds as many",
			func(m *Model) *float64 { return &m.Blind }},
		{"it names it again", 0.95, 0.99, 0.85, "assumed: it is given its earlier findings", func(m *Model) *float64 { return &m.Recheck }},
		{"… in other words", 0.15, 0.02, 0.40, "assumed: category, rule, message and code make the fingerprint", func(m *Model) *float64 { return &m.Reworded }},
		{"false findings by a review", 0.20, 0.05, 0.50, "5 to 40 % of review bots' comments are false; few of them block",
			func(m *Model) *float64 { return &m.False }},
		{"a rework clears a false finding", 0.70, 0.90, 0.40, "assumed", func(m *Model) *float64 { return &m.Convince }},
		{"says that it cannot, rightly", 0.30, 0.50, 0.15,
			"assumed; models ask instead of coding in under 40 % of tasks that lack what they need (arXiv 2406.00215)",
			func(m *Model) *float64 { return &m.Unable }},
		{"says that it cannot, wrongly", 0.02, 0.01, 0.03, "assumed", func(m *Model) *float64 { return &m.Timid }},
		{"… asked outright, rightly", 0.50, 0.80, 0.25,
			"assumed; an agent that must decide whether to ask does so far more often than one that may, in the same study",
			func(m *Model) *float64 { return &m.Asked }},
		{"… asked outright, wrongly", 0.05, 0.02, 0.12, "assumed; that agent asks where nothing is missing, too", func(m *Model) *float64 { return &m.TimidAsked }},
		{"flaky test phases", 0.015, 0.002, 0.08, "1.5 % of test runs (Micco, Flaky Tests at Google, 2016)", func(m *Model) *float64 { return &m.Flaky }},
		{"confident fix, mendable failure", 0.85, 0.95, 0.60, "assumed", func(m *Model) *float64 { return &m.Sure }},
		{"confident fix, other failure", 0.50, 0.20, 0.80, "assumed: models are too sure of themselves", func(m *Model) *float64 { return &m.SureWrong }},
		{"a phase breaks down", 0.02, 0.005, 0.06, "assumed", func(m *Model) *float64 { return &m.Fault }},
		{"… and again", 0.30, 0.10, 0.60, "assumed", func(m *Model) *float64 { return &m.FaultAgain }},
	}
}

// Base is the model with every parameter at its base.
func Base() Model { return each(func(p Parameter) float64 { return p.Base }) }

// Optimistic is the model with every parameter at its optimistic end.
func Optimistic() Model { return each(func(p Parameter) float64 { return p.Optimistic }) }

// Pessimistic is the model with every parameter at its pessimistic end.
func Pessimistic() Model { return each(func(p Parameter) float64 { return p.Pessimistic }) }

// draw is a model with every parameter somewhere within its range, independently;
// the base is each one's median.
func draw(rng *rand.Rand) Model {
	return each(func(p Parameter) float64 {
		end := p.Optimistic
		if rng.IntN(2) == 0 {
			end = p.Pessimistic
		}
		return p.Base + rng.Float64()*(end-p.Base)
	})
}

func each(value func(Parameter) float64) Model {
	var m Model
	for _, p := range Parameters() {
		*p.field(&m) = value(p)
	}
	return m
}

// What is the same in all models.
const (
	spread = 0.35 // a defect's own chance of being mended is uniform within Model.Fix ± spread

	// An unsolvable defect fails a test with this chance at least: that a task
	// cannot be done mostly shows.
	coreTested = 0.8

	// A review's confidence in a true finding, and in a false one, is uniform from
	// the first to the second. No guard looks at it.
	sureFrom, sureTo   = 0.7, 1.0
	falseFrom, falseTo = 0.4, 0.9

	costFresh, costRework, costReview, costTest, costPlan = 600_000, 350_000, 150_000, 50_000, 100_000 // micro-dollars, mean
	costSigma                                             = 0.5                                        // of the logarithm
	tokensPerMicroUSD                                     = 0.5                                        // two dollars a million, cached input included

	minutesImplement, minutesReview, minutesTest, minutesPlan = 5, 2, 2, 2 // mean
)

// blind is the chance that the reviewer never sees a defect: at most what a first look
// misses.
func (m *Model) blind() float64 { return min(m.Blind, 1-m.Recall) }

// sight is the chance that a look finds a defect that is not hidden from the reviewer, and
// that it has not named before: over all defects it is Recall.
func (m *Model) sight() float64 {
	if m.Recall <= 0 {
		return 0
	}
	return m.Recall / (1 - m.blind())
}

// poisson draws from the Poisson distribution, for small means.
func poisson(rng *rand.Rand, mean float64) int {
	n, limit := 0, math.Exp(-mean)
	for p := rng.Float64(); p > limit; p *= rng.Float64() {
		n++
	}
	return n
}
