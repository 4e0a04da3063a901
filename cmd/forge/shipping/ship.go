// Package shipping brings verified work into production, where a repository wants that:
// it asks people, merges the pull request at the head that was verified, and goes from
// environment to environment by GitHub's deployments, each watched before the next.
// What has happened is kept in the database, and written down before the next thing is
// done: after a crash it is looked for on GitHub, and not done again.
package shipping

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/config"
	"forge/pipeline/rollout"
	"forge/pipeline/text"
)

// State is where work stands on its way.
type State string

// The states. The last two are ends, and "again" leaves the last one.
const (
	Unverified State = "unverified" // it is not verified at its head now
	Asking     State = "asking"     // a person must agree before the next step
	Agreed     State = "agreed"     // to be merged; it waits for what is before it in the repository
	Merging    State = "merging"
	Leaving    State = "leaving"   // it was stopped while it was merged; what came of that is looked up
	Deploying  State = "deploying" // a deployment is being made
	Rolling    State = "rolling"   // a deployment is there; whatever follows it deploys
	Watching   State = "watching"  // it has succeeded, and is watched
	Done       State = "done"
	Stopped    State = "stopped"
)

// Ship is the way of a run's work.
type Ship struct {
	Run      int64       `json:"run"`
	Pull     int         `json:"pull"`
	Slug     string      `json:"slug,omitempty"`
	Settings config.Ship `json:"settings"`
	State    State       `json:"state"`
	Since    time.Time   `json:"since"` // it is in that state
	Why      string      `json:"why,omitempty"`
	Question *Question   `json:"question,omitempty"` // that is open
	Asked    int         `json:"asked,omitempty"`    // questions, ever

	Head     string    `json:"head"`               // that was verified, and people are asked about
	Base     string    `json:"base,omitempty"`     // branch that it was verified for
	Enqueued bool      `json:"enqueued,omitempty"` // in the merge queue
	Dequeued bool      `json:"dequeued,omitempty"` // and taken out of it again
	Refused  string    `json:"refused,omitempty"`  // why GitHub does not let it be taken out
	Merged   string    `json:"merged,omitempty"`   // SHA
	MergedAt time.Time `json:"merged_at,omitzero"`
	AgreedAt time.Time `json:"agreed_at,omitzero"` // people agreed to merge it
	Foreign  bool      `json:"foreign,omitempty"`  // people merged it without being asked: they are before it is deployed

	At     int       `json:"at,omitempty"`    // environment, of the settings
	Looked time.Time `json:"looked,omitzero"` // when it was last looked up what was said of the present deployment
	Seen   int64     `json:"seen,omitempty"`  // the newest deployment of others that people were told of
	Record []Record  `json:"record,omitempty"`

	Heard  Heard     `json:"heard,omitzero"`
	Log    []Entry   `json:"log,omitempty"`
	Say    []Message `json:"say,omitempty"`    // what people are still to be told
	Out    []Step    `json:"out,omitempty"`    // what the run's log is still to be told
	Holder string    `json:"holder,omitempty"` // the process that acts, until then
	Until  time.Time `json:"until,omitzero"`

	Repo string `json:"-"` // "owner/name"
}

// Question is what people are asked.
type Question struct {
	About string    `json:"about"`        // what they write behind the choice
	Pass  bool      `json:"pass"`         // whether to go on although it is not known to be healthy
	Wait  bool      `json:"wait"`         // whether to wait on for a deployment
	At    time.Time `json:"at"`           //
	Why   string    `json:"why,omitzero"` // it is asked once more
}

// Record is one time that the work is brought to an environment.
type Record struct {
	Environment string        `json:"environment"`
	Deployment  int64         `json:"deployment,omitempty"` // GitHub's
	By          string        `json:"by,omitempty"`         // who agreed
	Began       time.Time     `json:"began"`
	Succeeded   time.Time     `json:"succeeded,omitzero"`
	Ended       time.Time     `json:"ended,omitzero"`
	State       rollout.State `json:"state,omitempty"` // how it fared when it was watched
	Why         string        `json:"why,omitempty"`
	Turned      string        `json:"turned,omitempty"` // what became of it after it had arrived, where that is bad
}

// Entry is something that happened.
type Entry struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	By   string    `json:"by,omitempty"`
}

// Heard is the last answer that was taken in, and what was said to it.
type Heard struct {
	Cause string `json:"cause,omitempty"` // the delivery
	Words string `json:"words,omitempty"`
}

// Message is something that people are told, once for its key.
type Message struct {
	Key     string           `json:"key"`
	Words   string           `json:"words"`
	Choices []command.Choice `json:"choices,omitempty"` // of a question
}

// question is a message as people are asked.
func (m Message) question() command.Question {
	return command.Question{Text: m.Words, Choices: m.Choices}
}

// String is a message for who reads it elsewhere than on GitHub.
func (m Message) String() string { return m.question().String() }

// Step is an event for the run's log, once for its ID.
type Step struct {
	ID   string             `json:"id"`
	Type pipeline.EventType `json:"type"`
	Step rollout.Step       `json:"step"`
}

// log adds an event for the run's log.
func (s *Ship) log(t pipeline.EventType, step rollout.Step) {
	s.Out = append(s.Out, Step{ID: fmt.Sprintf("ship/%d/%d/%s", s.Run, len(s.Log), t), Type: t, Step: step})
}

// New is the way of a run that was verified or accepted.
func New(run *pipeline.Run) *Ship {
	return &Ship{Run: run.ID, Pull: run.Published.Pull.Number, Slug: run.Slug, Settings: run.Config.Ship, State: Unverified}
}

// Verified reports whether a run's work may be shipped as it is on GitHub.
func Verified(run *pipeline.Run) bool {
	return (run.State == pipeline.StateVerified || run.State == pipeline.StateAccepted) && run.Published.Pull != nil && run.Published.Pull.Ready &&
		run.Published.Head == run.Head && run.Part == nil
}

// active reports whether it goes on.
func (s *Ship) active() bool {
	return s.State != Done && s.State != Stopped || len(s.Say)+len(s.Out) > 0
}

// busy reports whether nothing else of the repository may be shipped meanwhile.
func (s *Ship) busy() bool {
	return s.Merged != "" && s.State != Done && s.State != Stopped || s.State == Merging || s.State == Leaving
}

// arrivals are the last records of the environments that it has arrived in.
func (s *Ship) arrivals() (out []*Record) {
	for n := range s.Record {
		r := &s.Record[n]
		at := slices.Index(s.Settings.Environments, r.Environment)
		later := slices.ContainsFunc(s.Record[n+1:], func(o Record) bool { return o.Environment == r.Environment })
		if at >= 0 && at < s.At && r.Deployment != 0 && !r.Succeeded.IsZero() && !later {
			out = append(out, r)
		}
	}
	return out
}

// environment is the one that it is brought to now; "" before it is merged.
func (s *Ship) environment() string {
	if s.Merged == "" || s.At >= len(s.Settings.Environments) {
		return ""
	}
	return s.Settings.Environments[s.At]
}

// deploys reports whether Forge makes the deployments.
func (s *Ship) deploys() bool { return s.Settings.Via != "watch" }

// record is that of the present environment's last try; nil for none.
func (s *Ship) record() *Record {
	n := len(s.Record)
	if n == 0 || s.Record[n-1].Environment != s.environment() {
		return nil
	}
	return &s.Record[n-1]
}

// tries is how often it was brought to the present environment.
func (s *Ship) tries() (n int) {
	for _, r := range s.Record {
		if r.Environment == s.environment() {
			n++
		}
	}
	return n
}

// to brings it to a state.
func (s *Ship) to(state State, now time.Time, by, format string, args ...any) {
	what := text.Clip(fmt.Sprintf(format, args...), 500)
	s.State, s.Since, s.Why = state, now, what
	s.Log = append(s.Log, Entry{At: now, What: what, By: by})
	if state != Asking {
		s.Question = nil
	}
}

// tell adds something that people are told, and may answer so.
func (s *Ship) tell(words string, choices ...command.Choice) {
	s.Say = append(s.Say, Message{Key: fmt.Sprintf("ship/%d/%d", s.Run, len(s.Log)), Words: words, Choices: choices})
}

// stop ends it, until somebody says "again".
func (s *Ship) stop(now time.Time, by, format string, args ...any) {
	if r := s.record(); r != nil && r.Ended.IsZero() {
		r.Ended, r.Why = now, text.Clip(fmt.Sprintf(format, args...), 300)
	}
	s.to(Stopped, now, by, format, args...)
	s.log(pipeline.EventShipFinished, rollout.Step{Environment: s.environment(), Commit: s.Merged, By: by, At: now, Why: "stopped: " + s.Why})
	var b strings.Builder
	fmt.Fprintf(&b, "**Shipping stopped**: %s.\n\n", s.Why)
	if s.Merged == "" {
		b.WriteString("Nothing is deployed.")
	} else {
		fmt.Fprintf(&b, "It is merged as %s.", text.ShortSHA(s.Merged))
		b.WriteString(s.records())
	}
	s.tell(b.String(), s.choice("again", "go on from here; you are asked before anything happens"))
}

// ask asks people before the next step.
func (s *Ship) ask(q Question, now time.Time) {
	s.Asked++
	q.At = now
	s.to(Asking, now, "", "a person is asked about %s", q.About)
	s.Question = &q
	s.tell(s.question(), s.choices()...)
	step := rollout.Step{Environment: s.environment(), Commit: s.Merged, At: now, Why: s.Why, Question: s.question(), Choices: map[string]string{}}
	for _, c := range s.choices() {
		step.Choices[strings.TrimPrefix(c.Write, command.Write(s.Slug, "ship")+" ")] = c.What
	}
	s.log(pipeline.EventShipAsked, step)
}

// askMerge asks whether to merge what is verified, and to go on from there.
func (s *Ship) askMerge(head, why string, now time.Time) {
	s.Head, s.Enqueued, s.Dequeued, s.Refused = head, false, false, ""
	s.ask(Question{About: text.ShortSHA(head), Why: why}, now)
}

// next goes to the environment at s.At; at their end, to the end.
func (s *Ship) next(now time.Time, why string) {
	env := s.environment()
	switch {
	case env == "":
		s.done(now)
	case !s.deploys():
		s.begin(now, "")
		s.to(Rolling, now, "", "the repository deploys to %s", env)
	case why != "" || s.Foreign || s.Settings.Asks(env):
		s.ask(Question{About: env, Why: why}, now)
	default:
		s.begin(now, "")
		s.to(Deploying, now, "", "a deployment to %s is made", env)
	}
}

// begin begins to bring it to the present environment.
func (s *Ship) begin(now time.Time, by string) {
	s.Foreign = false
	s.Record = append(s.Record, Record{Environment: s.environment(), By: by, Began: now})
}

// arrived ends the way to the present environment, and begins the one to the next.
func (s *Ship) arrived(now time.Time, state rollout.State, by, why string) {
	r := s.record()
	r.Ended, r.State, r.Why = now, state, why
	s.Log = append(s.Log, Entry{At: now, What: "arrived in " + r.Environment, By: by})
	s.log(pipeline.EventShipDeployed, rollout.Step{Environment: r.Environment, Deployment: r.Deployment, Commit: s.Merged, By: r.By,
		At: r.Began, Succeeded: r.Succeeded, State: state, Why: "deployed to " + r.Environment})
	s.At++
	s.next(now, "")
}

// minute is how times are shown.
const minute = "2006-01-02 15:04 MST"

// done ends it.
func (s *Ship) done(now time.Time) {
	s.to(Done, now, "", "shipped")
	s.log(pipeline.EventShipFinished, rollout.Step{Commit: s.Merged, At: now, Why: "shipped", Done: true})
	s.tell(fmt.Sprintf("**Shipped**: merged as %s. This is how it stood at %s; what comes of it later is said apart.%s",
		text.ShortSHA(s.Merged), now.UTC().Format(minute), s.records()))
}

// records says what was brought where, as a table.
func (s *Ship) records() string {
	if len(s.Record) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\n| environment | deployment | agreed | began | how it fares |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range s.Record {
		number, fares := "none", "not deployed"
		if r.Deployment != 0 {
			number = fmt.Sprint(r.Deployment)
		}
		switch {
		case r.State == rollout.Healthy:
			fares = "healthy since " + r.Succeeded.UTC().Format(minute)
		case !r.Succeeded.IsZero():
			fares = "since " + r.Succeeded.UTC().Format(minute)
			if r.State == "" && r.Why == "" {
				fares += ", not watched"
			}
		}
		if r.Turned != "" {
			fares = r.Turned
		}
		if r.Why != "" {
			fares += ": " + strings.ReplaceAll(r.Why, "|", "/")
		}
		by := r.By
		if by == "" {
			by = "with the merge"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Environment, number, by, r.Began.UTC().Format(minute), fares)
	}
	return b.String()
}

// choice is something that people may answer.
func (s *Ship) choice(words, what string) command.Choice {
	return command.Choice{Write: command.Write(s.Slug, "ship "+words), What: what}
}

// choices are those of the question that is open.
func (s *Ship) choices() []command.Choice {
	q := s.Question
	words, what := "approve "+q.About, ""
	switch {
	case q.Pass:
		words, what = "pass "+q.About, fmt.Sprintf("take %s as it is; then %s", q.About, steps(s.after(s.At+1)))
	case q.Wait:
		words, what = "wait "+q.About, "wait "+minutes(s.Settings.Timeout())+" more"
	case s.Merged != "":
		what = steps(append([]string{s.deploysTo(s.At)}, s.after(s.At+1)...))
	default:
		merged := fmt.Sprintf("this pull request is merged%s at %s, and at no other head (%s)", s.into(), text.ShortSHA(s.Head), s.method())
		what = steps(append([]string{merged}, s.after(0)...))
	}
	return []command.Choice{s.choice(words, what), s.choice("stop", "nothing more is merged or deployed")}
}

// question is what people read.
func (s *Ship) question() string {
	switch q := s.Question; {
	case q.Pass:
		return fmt.Sprintf("**Go on from %s?** %s.", q.About, q.Why)
	case q.Wait:
		return fmt.Sprintf("**%s.** Wait on?", q.Why)
	case s.Merged != "":
		return fmt.Sprintf("**Deploy to %s?**%s", q.About, because(q.Why))
	default:
		return fmt.Sprintf("**Ship this?**%s", because(q.Why))
	}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " " + strings.ToUpper(why[:1]) + why[1:] + "."
}

// into names the branch that it is merged into.
func (s *Ship) into() string {
	if s.Base == "" { // it was asked before this was kept
		return ""
	}
	return " into " + s.Base
}

// method is how it is merged.
func (s *Ship) method() string {
	if s.Settings.Merge == "" {
		return "merge"
	}
	return s.Settings.Merge
}

// minutes is a time as people read it.
func minutes(d time.Duration) string {
	return text.Plural(int(d.Round(time.Minute).Minutes()), "minute", "minutes")
}

// deploysTo says how it comes to an environment.
func (s *Ship) deploysTo(n int) string {
	env := s.Settings.Environments[n]
	how := fmt.Sprintf("a deployment to %s is made, which what deploys for this repository follows", env)
	if !s.deploys() {
		how = fmt.Sprintf("the repository's own deployment to %s is waited for", env)
	}
	if m := s.Settings.BakeMinutes; m > 0 {
		how += fmt.Sprintf(", and it is watched for %s", text.Plural(m, "minute", "minutes"))
	}
	return how
}

// after says what happens from an environment on, as far as nobody is asked.
func (s *Ship) after(from int) (out []string) {
	for n := from; n < len(s.Settings.Environments); n++ {
		if env := s.Settings.Environments[n]; s.Settings.Asks(env) {
			return append(out, "you are asked about "+env)
		}
		out = append(out, s.deploysTo(n))
	}
	return out
}

func steps(list []string) string {
	if len(list) == 0 {
		return "it is done"
	}
	return strings.Join(list, "; then ")
}
