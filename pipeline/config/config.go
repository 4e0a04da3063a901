// Package config is what a repository and the server set for a run: the limits of its
// loop, its budget, how it is tested. A run keeps a snapshot of it from its start.
package config

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Mode says who lets a run go on.
type Mode string

// The modes.
const (
	ModeAuto   Mode = "auto"
	ModeManual Mode = "manual" // a human's word before every action (R7)
)

// ModuleMode says when a task is split into modules; "" is off.
type ModuleMode string

// The modes of modules.
const (
	ModulesOff  ModuleMode = "off"
	ModulesAuto ModuleMode = "auto" // where it pays
	ModulesAsk  ModuleMode = "ask"  // a split waits for a human's word
)

// OnMax says what happens at the most iterations (R3).
type OnMax string

// What happens then.
const (
	OnMaxManual OnMax = "manual" // a human is asked
	OnMaxError  OnMax = "error"  // the run fails
	OnMaxSkip   OnMax = "skip"   // it is left as it is
)

// Role is what a model, and what is remembered, can be chosen for.
type Role string

// The roles.
const (
	RolePlanner     Role = "planner"
	RoleImplementer Role = "implementer"
	RoleReviewer    Role = "reviewer"
	RoleTester      Role = "tester"
	RoleReflector   Role = "reflector"

	// Of the full track: each falls back to the planner's model.
	RoleAnalyst   Role = "analyst"
	RoleProduct   Role = "product"
	RoleArchitect Role = "architect"
	RoleUX        Role = "ux"

	RoleChecker Role = "checker" // finds what they contradict each other in, and decides it; falls back to the reflector's model
)

// Config is what a repository (.github/forge.yml) and the server set for a run.
// The zero value is not usable: start from Default. Field names in YAML are
// those of the json tags.
type Config struct {
	Mode        Mode            `json:"mode"`
	OnBaseMoved string          `json:"on_base_moved"`    // "merge" it in and check again, "ask", or "ignore"
	Gates       Gates           `json:"gates"`            //
	Loop        Loop            `json:"loop"`             //
	Limits      Limits          `json:"limits"`           //
	Tests       Tests           `json:"tests"`            //
	Breaker     Breaker         `json:"breaker"`          //
	Models      map[Role]string `json:"models,omitempty"` // → provider/model; "" for all other roles
	Paths       Paths           `json:"paths"`            //
	Learn       Learn           `json:"learn"`            //

	// who makes commits: "git", here; "api", GitHub, which signs them; "auto" or "": as the branch's rules ask
	Commits       string `json:"commits,omitempty"`
	Signoff       bool   `json:"signoff,omitempty"`        // with a Signed-off-by trailer of the App's user (DCO)
	CommitMessage string `json:"commit_message,omitempty"` // template of the first line; "": as the repository's own are
	BranchName    string `json:"branch_name,omitempty"`    // template; "": forge/issue-{issue}-{slug}
	Ready         Ready  `json:"ready,omitzero"`

	Modules    Modules    `json:"modules,omitzero"`
	Documents  string     `json:"documents,omitempty"` // where documents of the run go: "comment", "branch", or "off"
	Production Production `json:"production,omitzero"` // nothing by default
	Ship       Ship       `json:"ship,omitzero"`       // off by default
	Setup      Setup      `json:"setup,omitzero"`      // nothing by default
	Quality    []Quality  `json:"quality,omitempty"`   // none by default
	Upstream   Upstream   `json:"upstream,omitzero"`   // off by default
	Review     Review     `json:"review,omitzero"`     // the general one alone by default
	Track      string     `json:"track,omitempty"`     // how much process a task gets before it is implemented; see package track; "" is quick
	Roles      Roles      `json:"roles,omitzero"`      // who acts on the full track; agents by default
	Skills     []string   `json:"skills,omitempty"`    // those of Forge's own that agents may use, besides the repository's
}

// Loop holds the limits of the phase loop.
type Loop struct {
	MaxIterations     int     `json:"max_iterations"`      // in all (T2)
	ReviewBounces     int     `json:"review_bounces"`      // review → implement (B1)
	TestBounces       int     `json:"test_bounces"`        // test → implement (B1)
	SameFinding       int     `json:"same_finding"`        // times the same finding may come back (T2)
	SameFailure       int     `json:"same_failure"`        // times the same failure may come back (T2)
	DiminishingFrom   int     `json:"diminishing_from"`    // the bounce from which progress is demanded (B6)
	Evidence          int     `json:"evidence,omitempty"`  // how much must speak against going on (B6)
	Doubts            int     `json:"doubts"`              // signs that going on does not help, until a human is asked; 0: never
	AutoFixOnly       bool    `json:"auto_fix_only"`       // failures bounce only with a confident fix (B5)
	AutoFixConfidence float64 `json:"auto_fix_confidence"` // 0 to 1
	Faults            int     `json:"faults"`              // breakdowns in a row that cost no attempt (R6)
	Profile           string  `json:"profile,omitempty"`   // strict, balanced or patient: what is not set here; "" is strict
	Proofs            Proofs  `json:"proofs,omitempty"`    // whether each criterion needs a named test that passed
}

// Proofs says what is wanted of the tests that show the acceptance criteria.
type Proofs string

// What loop.proofs can be.
const (
	ProofsOff     Proofs = "off"     // nothing: what the reviewer's evidence names is shown; so is ""
	ProofsWarn    Proofs = "warn"    // the implementer names tests; a criterion without one is shown so
	ProofsRequire Proofs = "require" // such a criterion fails
)

// On reports whether the implementer is asked for proofs.
func (p Proofs) On() bool { return p == ProofsWarn || p == ProofsRequire }

// Weaker reports whether less is wanted than another setting wants.
func (p Proofs) Weaker(than Proofs) bool {
	rank := map[Proofs]int{ProofsWarn: 1, ProofsRequire: 2}
	return rank[p] < rank[than]
}

// Who acts for a role.
const (
	ByNone = "off"  // nobody: the planner answers for it
	ByAuto = "auto" // of the user interface: an agent where the task is about one; so is ""
)

// Roles says who acts for each role of the full track; "" is "agent".
type Roles struct {
	Analyst   string `json:"analyst,omitempty"`
	Product   string `json:"product,omitempty"`
	Architect string `json:"architect,omitempty"`
	UX        string `json:"ux,omitempty"`
}

// Of is who acts for a role.
func (r Roles) Of(role Role) string {
	return map[Role]string{RoleAnalyst: r.Analyst, RoleProduct: r.Product, RoleArchitect: r.Architect, RoleUX: r.UX}[role]
}

// Review says how a change is read.
type Review struct {
	Lenses []string `json:"lenses,omitempty"` // through which it is read besides, each by itself; see package lens
}

// Upstream says whether agents tell those whose decisions they build on what cannot be,
// and the owner revises it.
type Upstream struct {
	Enabled        bool    `json:"enabled,omitempty"`
	TimeoutMinutes int     `json:"timeout_minutes,omitempty"` // until a human is asked in the owner's place; 0: 10
	Same           int     `json:"same,omitempty"`            // times that the same may be raised until a human is asked; 0: 2
	Max            int     `json:"max,omitempty"`             // feedbacks of a run, likewise; 0: 5
	CostShare      float64 `json:"cost_share,omitempty"`      // of the run's cost, for answers; 0: 0.2
	Weaken         string  `json:"weaken,omitempty"`          // who may take away what is asked for: "human", as "" is
}

// Timeout is how long an answer may take.
func (u Upstream) Timeout() time.Duration {
	return time.Duration(cmp.Or(u.TimeoutMinutes, 10)) * time.Minute
}

// SameLimit is the time at which a matter that is raised again becomes a human's.
func (u Upstream) SameLimit() int { return cmp.Or(u.Same, 2) }

// Most is how many feedbacks of a run agents settle among themselves.
func (u Upstream) Most() int { return cmp.Or(u.Max, 5) }

// Share is the share of a run's cost that answers may take.
func (u Upstream) Share() float64 { return cmp.Or(u.CostShare, 0.2) }

// Limits are a run's budget.
type Limits struct {
	CostUSD     float64 `json:"cost_usd"`        // of the whole run
	Tokens      int64   `json:"tokens"`          // of the whole run, input and output
	WallMinutes int     `json:"wall_minutes"`    // working time of the run, waiting for humans not counted
	Steps       int     `json:"steps_per_phase"` // an agent's turns in one phase
	Adapt       bool    `json:"adapt,omitempty"` // a small task gets a share of these, and of the loop's iterations
}

// Tests says how a repository is tested.
type Tests struct {
	Commands       []string `json:"commands,omitempty"`     // empty: found by themselves
	TimeoutMinutes int      `json:"timeout_minutes"`        // for one command
	Reruns         int      `json:"reruns"`                 // of a failing test, to tell flaky ones (V3)
	Coverage       float64  `json:"coverage"`               // per cent under which a file is reported (V1)
	Checks         bool     `json:"checks"`                 // wait for the repository's own checks on the pushed head, too
	ChecksMinutes  int      `json:"checks_timeout_minutes"` // how long to wait for them
	Integration    []string `json:"integration,omitempty"`  // commands of the second tier: of what was built apart, together
	System         []string `json:"system,omitempty"`       // commands of the third: of the whole, once nothing else fails
	KnownFailures  string   `json:"known_failures"`         // tests that failed before the work: "ask" a human once, or "allow"
}

// Setup says what is done before tests that cannot be found out: commands that run on
// the base commit, in the sandbox, with a way to registries.
type Setup struct {
	Commands []string `json:"commands,omitempty"`
	Image    string   `json:"image,omitempty"`   // a container image whose system commands see; "": the server's
	Cache    []string `json:"cache,omitempty"`   // directories that are kept besides those that the repository ignores
	Install  *bool    `json:"install,omitempty"` // dependencies are installed besides; nil: they are
}

// Installs reports whether dependencies are installed.
func (s Setup) Installs() bool { return s.Install == nil || *s.Install }

// Ready says what happens on GitHub when a pull request leaves draft, besides that. Code
// owners are asked to review it by GitHub itself.
type Ready struct {
	Assign bool `json:"assign,omitempty"` // who started the run is assigned
	Review bool `json:"review,omitempty"` // who started the run is asked to review it
}

// Modules says whether a plan may split a feature into modules that are built at the
// same time, each by a run of its own.
type Modules struct {
	Mode       ModuleMode `json:"mode"`
	Max        int        `json:"max"`        // modules of a plan
	Parallel   int        `json:"parallel"`   // modules built at the same time
	Iterations int        `json:"iterations"` // of a module's own loop
	Rounds     int        `json:"rounds"`     // times that the integration may send work back to a module
	MinGain    float64    `json:"min_gain"`   // share of the time that a split must save by the plan's own sizes
	// of a module that does not get on: "ask" a human, or go on with those that "passed", without it and what
	// needs it, or revise the plan "without" it
	OnFailure string `json:"on_failure"`
}

// On reports whether a plan may be split.
func (m Modules) On() bool { return m.Mode == ModulesAuto || m.Mode == ModulesAsk }

// Unasked reports whether a module that does not get on is left out without a question.
func (m Modules) Unasked() bool { return m.OnFailure == "passed" || m.OnFailure == "without" }

// Production says what is done about incidents of production by itself. Each answer is
// on by itself; what limits them all is not to be set.
type Production struct {
	Environments []string `json:"environments,omitempty"` // whose incidents are answered; empty: production alone
	Tell         bool     `json:"tell,omitempty"`         // those of a suspected pull request, also where it is not Forge's
	Ask          bool     `json:"ask,omitempty"`          // people, by a comment with choices
	Issue        bool     `json:"issue,omitempty"`        // one for each critical incident
	Run          bool     `json:"run,omitempty"`          // on that issue
	Revert       bool     `json:"revert,omitempty"`       // by a draft of what the cause takes back
	RollBack     bool     `json:"roll_back,omitempty"`    // to what ran before, by a deployment
	BakeMinutes  int      `json:"bake_minutes,omitempty"` // that a deployment is watched after it has succeeded; 0: it is not
	Watch        string   `json:"watch,omitempty"`        // which deployments: "forge", those that bring work of Forge's, as "" does, or "all"
	Irreversible []string `json:"irreversible,omitempty"` // globs, on top of the built-in ones, of what no roll-back goes across
}

// Ship says whether verified work is merged and brought to environments, once people
// have agreed.
type Ship struct {
	Enabled        bool     `json:"enabled,omitempty"`
	Via            string   `json:"via,omitempty"`             // who deploys: "deployments", whatever follows those that Forge makes, as "" does, or "watch", the repository by itself
	Merge          string   `json:"merge,omitempty"`           // how it is merged: "merge", as "" does, "squash" or "rebase"
	Environments   []string `json:"environments,omitempty"`    // in their order
	Ask            []string `json:"ask,omitempty"`             // those of them before which people are asked
	BakeMinutes    int      `json:"bake_minutes,omitempty"`    // that each is watched before the next; 0: none is
	TimeoutMinutes int      `json:"timeout_minutes,omitempty"` // until people are asked about a deployment that does not get on; 0: 30
}

// Asks reports whether people are asked once more before an environment.
func (s Ship) Asks(environment string) bool {
	return slices.ContainsFunc(s.Ask, func(e string) bool { return strings.EqualFold(e, environment) })
}

// Timeout is how long a deployment may not get on.
func (s Ship) Timeout() time.Duration {
	return time.Duration(cmp.Or(s.TimeoutMinutes, 30)) * time.Minute
}

// WatchAll watches every deployment.
const WatchAll = "all"

// Answers reports whether anything is done about incidents of an environment.
func (p Production) Answers(environment string) bool {
	return p.Covers(environment) && (p.Tell || p.Ask || p.Issue || p.Run || p.Revert || p.RollBack)
}

// Covers reports whether an environment is one of those that are set.
func (p Production) Covers(environment string) bool {
	same := func(e string) bool { return strings.EqualFold(e, environment) } // as for GitHub
	return slices.ContainsFunc(p.Environments, same) || len(p.Environments) == 0 && same("production")
}

// Gates is how long a run waits for people.
type Gates struct {
	RemindHours  int `json:"remind_hours"`  // until who started the run is reminded, once
	TimeoutHours int `json:"timeout_hours"` // until the run is cancelled
}

// Remind is how long a question waits until it is asked again.
func (g Gates) Remind() time.Duration {
	return time.Duration(g.RemindHours) * time.Hour
}

// Timeout is how long a run waits until it is cancelled.
func (g Gates) Timeout() time.Duration {
	return time.Duration(g.TimeoutHours) * time.Hour
}

// Breaker is the circuit breaker of the rework queue (R3).
type Breaker struct {
	Enabled       bool  `json:"enabled"`
	MaxIterations int   `json:"max_iterations"` // reworks in a row, of one phase, without a pass
	OnMax         OnMax `json:"on_max"`
}

// Paths says what Forge may change.
type Paths struct {
	Protected []string `json:"protected,omitempty"` // globs, on top of the built-in ones
}

// Learn says what is made of what people do.
type Learn struct {
	Holdout    float64 `json:"holdout,omitempty"` // share of runs that work without what was learnt, to tell what it is worth; 0: none
	Share      bool    `json:"share,omitempty"`   // what two repositories of an owner have learnt is told in all that share
	OtherPulls bool    `json:"other_pulls"`       // listen to what people remark on pull requests that are not Forge's, too (H5)
}

// Evidence, unless loop.evidence says otherwise, is how much must speak against going on before it counts as
// diminishing returns: each rework after which no less is left counts as one, and
// one that mended nothing counts as many as it was sent and that are still there.
// A single issue that outlived a single rework says too little: stopping there is
// wrong two times of three, and verifies six runs of a hundred less (forge
// evaluate loop); T2 limits how often the same one may come back.
const Evidence = 2

// Default returns the defaults of requirements T2, B1, B5, B6 and R3.
func Default() Config {
	return Config{
		Mode: ModeAuto, OnBaseMoved: "merge", Commits: "auto", Gates: Gates{RemindHours: 24, TimeoutHours: 14 * 24},
		Loop: Loop{
			MaxIterations: 5, ReviewBounces: 3, TestBounces: 2, SameFinding: 3, SameFailure: 3,
			DiminishingFrom: 2, Evidence: Evidence, Doubts: 2, AutoFixOnly: true, AutoFixConfidence: 0.7, Faults: 3,
		},
		Limits:  Limits{CostUSD: 10, Tokens: 5_000_000, WallMinutes: 120, Steps: 100},
		Tests:   Tests{TimeoutMinutes: 10, Reruns: 2, Coverage: 60, ChecksMinutes: 30, KnownFailures: "ask"},
		Breaker: Breaker{Enabled: true, MaxIterations: 3, OnMax: OnMaxManual},
		Learn:   Learn{Holdout: 0.1}, Documents: "off",
		Modules: Modules{Mode: ModulesOff, Max: 6, Parallel: 3, Iterations: 3, Rounds: 2, MinGain: 0.4, OnFailure: "ask"},
	}
}

// Profile returns the limits of the loop and of its breaker by a profile's name: strict
// asks soon, balanced gives a finding time to be fixed, patient would rather wait than
// ask. What they come to, the laboratory's `loop` says. An unknown name gives strict.
func Profile(name string) (Loop, Breaker) {
	d := Default()
	l, b := d.Loop, d.Breaker
	switch name {
	case "balanced":
		l.MaxIterations, l.ReviewBounces, l.TestBounces, b.MaxIterations = 10, 10, 10, 10
		l.SameFinding, l.DiminishingFrom, l.Faults = 8, 8, 5
	case "patient":
		l.MaxIterations, l.ReviewBounces, l.TestBounces, b.MaxIterations = 20, 20, 20, 20
		l.SameFinding, l.SameFailure, l.DiminishingFrom, l.Faults = 15, 15, 15, 5
		l.AutoFixOnly = false // a sign among others: see Loop.Doubts
	}
	l.Profile = name
	return l, b
}

// Wall returns the limit on working time.
func (l Limits) Wall() time.Duration { return time.Duration(l.WallMinutes) * time.Minute }
