package pipeline

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"forge/pipeline/config"
	"forge/pipeline/record"
)

// SignalKind says what a person did with what Forge said or made.
type SignalKind string

// The kinds of signals.
const (
	SignalDismissed    SignalKind = "dismissed"         // a finding: resolved without a change of its code, refused in words, hidden, deleted, 👎 (H1)
	SignalApplied      SignalKind = "applied"           // a suggestion, as it was (H2)
	SignalRewritten    SignalKind = "rewritten"         // a suggestion's lines, in another way (H3)
	SignalIgnored      SignalKind = "ignored"           // a suggestion whose lines were merged as they were
	SignalFixedByHuman SignalKind = "mended"            // a finding: a person changed its code in their own way, and it was resolved or merged so
	SignalGap          SignalKind = "gap"               // a comment where Forge had nothing to say (H5); with a finding, one beside it (H7)
	SignalApproved     SignalKind = "approved"          // the pull request, as Forge left it
	SignalEdited       SignalKind = "edited"            // the pull request, after commits by people (H4)
	SignalChanges      SignalKind = "changes_requested" // of the pull request
	SignalMerged       SignalKind = "merged"            //
	SignalClosed       SignalKind = "closed"            // unmerged
	SignalReverted     SignalKind = "reverted"          // after the merge
	SignalAnswered     SignalKind = "answered"          // a finding, in words that a model is to read (H7)
	SignalRead         SignalKind = "read"              // such an answer, by a model: what the words mean
	SignalRefused      SignalKind = "refused"           // a finding, as a model read its answer, and nothing that became of the code speaks against it; weak
	SignalEscaped      SignalKind = "escaped"           // a defect, to production; nobody's word, but what mended it showed it
)

// Signal is one thing that a person did on GitHub, judged by content. Signals with
// the same key are about the same fact: the one with the latest At counts, and
// when it is Off the fact was taken back.
type Signal struct {
	Key     string     `json:"key"` // of GitHub's own ids: "dismissed/COMMENT", "suggestion/COMMENT", "mended/COMMENT", "gap/COMMENT", "answer/REPLY", "read/REPLY", "refused/COMMENT", "review/ID", "edit/SHA/PATH", "pull/NODE/merged"
	Kind    SignalKind `json:"kind"`
	Off     bool       `json:"off,omitempty"` // taken back: reopened, undismissed
	At      time.Time  `json:"at"`            // when it happened on GitHub
	Actor   Actor      `json:"actor"`
	Weight  float64    `json:"weight"`            // of the actor's word by their role here, 0 to 1; 0 for people without write access
	Pull    int        `json:"pull,omitempty"`    //
	Finding string     `json:"finding,omitempty"` // fingerprint of the finding that it is about
	File    string     `json:"file,omitempty"`    //
	Line    int        `json:"line,omitempty"`    //
	Before  string     `json:"before,omitempty"`  // the lines as Forge left or suggested them
	After   string     `json:"after,omitempty"`   // the lines as the person left them
	Text    string     `json:"text,omitempty"`    // the person's words: the reason, the comment
	Waited  int64      `json:"waited,omitempty"`  // milliseconds from Forge's comment to it (H6)
	Where   string     `json:"where,omitempty"`   // of an applied suggestion: "" in its place, else the path and line
	Button  bool       `json:"button,omitempty"`  // applied by GitHub's own button: committed by web-flow with the bot as co-author
	Implied bool       `json:"implied,omitempty"` // derived from what did not happen; weak
	Unsure  bool       `json:"unsure,omitempty"`  // what became of the code, or somebody else, speaks against the words: it holds in its run, and teaches nothing
	Comment int64      `json:"comment,omitempty"` // id of the comment that it is about, or that it is
	Scope   string     `json:"scope,omitempty"`   // of the repository that it happened in; keys are unique within it
	Run     int64      `json:"run,omitempty"`     //
	About   *Finding   `json:"about,omitempty"`   // the finding, as it stood when the signal was taken in

	Reading *record.Reading `json:"reading,omitempty"` // of what a model read, and of what follows from it
}

// Supersedes reports whether s counts instead of t, which has the same scope and
// key: the later one does. Of two of the same microsecond the one that takes back
// does, then the one whose text is greater, so that the order of their arrival
// never matters.
func (s Signal) Supersedes(t Signal) bool {
	if a, b := s.At.UnixMicro(), t.At.UnixMicro(); a != b {
		return a > b
	}
	if s.Off != t.Off {
		return s.Off
	}
	s.At, t.At = time.Time{}, time.Time{}
	a, _ := json.Marshal(s) // plain data: it cannot fail
	b, _ := json.Marshal(t)
	return string(a) > string(b)
}

// LearningType says what kind of knowledge a learning is (L3).
type LearningType string

// The types of learnings.
const (
	LearningEpisodic   LearningType = "episodic"   // what happened
	LearningSemantic   LearningType = "semantic"   // a fact or a pattern
	LearningProcedural LearningType = "procedural" // how to do something
)

// LearningSource says where a learning comes from.
type LearningSource string

// The sources of learnings.
const (
	SourceReflection LearningSource = "reflection"
	SourceDismissal  LearningSource = "dismissal"
	SourceRewrite    LearningSource = "rewrite"
	SourceEdit       LearningSource = "edit"
	SourceGap        LearningSource = "gap"
	SourceRevert     LearningSource = "revert"
	SourceHuman      LearningSource = "human"
	SourceImport     LearningSource = "import"
)

// LearningState says whether a learning is in use, and why not.
type LearningState string

// The states of learnings.
const (
	LearningActive    LearningState = "active"
	LearningWithdrawn LearningState = "withdrawn" // its signal was taken back
	LearningMerged    LearningState = "merged"    // into another
	LearningRetired   LearningState = "retired"   // by its measured impact, or because its scope is full
	LearningForgotten LearningState = "forgotten" // by a person
)

// Learning is one thing that Forge remembers. Confidence is Base with all the
// evidence on it; what decay leaves of it is computed when it is read, never stored.
type Learning struct {
	ID         int64          `json:"id"`
	Key        string         `json:"key"`   // its identity within the scope, on every machine: "dismissal:thread/PRRT_x"
	Scope      string         `json:"scope"` // "repo:OWNER/NAME" or "org:OWNER"
	Type       LearningType   `json:"type"`
	Category   Category       `json:"category,omitempty"` // of a finding
	Content    string         `json:"content"`
	Context    string         `json:"context,omitempty"` // when it matters
	Paths      []string       `json:"paths,omitempty"`   // files that it is about
	Tags       []string       `json:"tags,omitempty"`
	Source     LearningSource `json:"source"`
	Author     Actor          `json:"author"`            // whose word it is; zero for a reflection
	Weight     float64        `json:"weight"`            // of the author's word, 0 to 1
	Run        int64          `json:"run,omitempty"`     // the run that it comes from
	Signal     string         `json:"signal,omitempty"`  // key of the signal that it was born of: withdrawn with it
	Finding    string         `json:"finding,omitempty"` // fingerprint of the finding that was dismissed
	Code       string         `json:"code,omitempty"`    // digest of the code that it was dismissed for
	Cites      []record.Cite  `json:"cites,omitempty"`   // the code that it is about, as it stood when it was learnt; none: it is known by its paths
	Base       float64        `json:"base"`              // the confidence that it began with, 0 to 1
	Confidence float64        `json:"confidence"`        // 0 to 1
	For        int            `json:"for"`               // pieces of evidence
	Against    int            `json:"against"`
	Created    time.Time      `json:"created"`
	Touched    time.Time      `json:"touched"` // last confirmed or of use: decay counts from here
	Recalled   int            `json:"recalled"`
	Used       int            `json:"used"`
	State      LearningState  `json:"state"`
}

// Evidence is what one signal says for or against a learning. There is one row
// for a learning and a signal's key: a later one replaces it.
type Evidence struct {
	Learning int64     `json:"learning"`
	Of       string    `json:"of,omitempty"` // key of the learning
	Key      string    `json:"key"`          // of the signal
	Delta    float64   `json:"delta"`        // what it does to confidence, weight included
	Why      string    `json:"why"`
	Actor    Actor     `json:"actor"`
	Run      int64     `json:"run,omitempty"`
	At       time.Time `json:"at"`
	Off      bool      `json:"off,omitempty"` // taken back
}

// Acts without a word are weak evidence, however many there are: all together they take
// no more than one dismissal with a reason does (H1).
const (
	quietly   = " without a reason"
	quietMost = 200_000 // millionths
)

// Quiet marks evidence as that of an act without a word.
func (e Evidence) Quiet() Evidence {
	if !strings.HasSuffix(e.Why, quietly) {
		e.Why += quietly
	}
	return e
}

// WhyDismissed is why the dismissal of a finding takes from a learning that asks for it.
// What a person said or did is not unwanted because findings of its kind were wrong in one
// pull request, whatever was said of each: those of one run take no more from it than one
// does, and all together no more than two. Who said it is the one to end it.
const (
	WhyDismissed = "a related finding was dismissed"

	dismissedMost = 200_000 // millionths, in one run
	unwantedMost  = 400_000 // over all runs
)

// Sway is what evidence adds to the learning's base, in whole millionths: there is at most
// one piece for a key, what was taken back does not count, the order does not matter.
func (l *Learning) Sway(evidence []Evidence) (micro float64) {
	var quiet, unwanted float64
	persons := l.Source == SourceHuman || l.Author.ID != 0
	dismissed := map[int64]float64{} // by run
	for _, e := range evidence {
		switch delta := math.Round(e.Delta * 1e6); {
		case e.Off:
		case delta < 0 && strings.HasSuffix(e.Why, quietly):
			quiet += delta
		case delta < 0 && persons && e.Why == WhyDismissed:
			dismissed[e.Run] += delta
		default:
			micro += delta
		}
	}
	for _, delta := range dismissed {
		unwanted += max(delta, -dismissedMost)
	}
	return micro + max(quiet, -quietMost) + max(unwanted, -unwantedMost)
}

// Weigh computes the learning's confidence, its counts and when it was last
// confirmed, from its base and all its evidence; see [Learning.Sway].
func (l *Learning) Weigh(evidence []Evidence) {
	l.For, l.Against, l.Touched = 0, 0, l.Created
	for _, e := range evidence {
		switch {
		case e.Off:
		case e.Delta > 0:
			l.For++
			if e.At.After(l.Touched) {
				l.Touched = e.At
			}
		case e.Delta < 0:
			l.Against++
		}
	}
	l.Confidence = max(0, min(1, (math.Round(l.Base*1e6)+l.Sway(evidence))/1e6))
}

// Recall is which learnings an agent was given, and what became of them (L5).
type Recall struct {
	Phase     Phase       `json:"phase"`
	Iteration int         `json:"iteration"`
	Role      config.Role `json:"role"`
	Given     []int64     `json:"given,omitempty"`    // in the prompt
	Withheld  []int64     `json:"withheld,omitempty"` // left out at random, to measure what they are worth
	Used      []int64     `json:"used,omitempty"`     // cited by the agent, or present in what changed
	Text      string      `json:"text,omitempty"`     // what the prompt said of those given: the same when the phase is carried out again
}

// Reflection is what a look back at a run gave (L1–L4).
type Reflection struct {
	Trigger   string  `json:"trigger"` // run_ended, bounced_twice, half_budget, errors, override
	Now       bool    `json:"now,omitempty"`
	Learnings []int64 `json:"learnings,omitempty"`
	Usage     Usage   `json:"usage"`
	Refused   string  `json:"refused,omitempty"` // why nothing was stored: over budget, nonsense

	Left []string `json:"left,omitempty"` // which of what it said was left out, and why
}
