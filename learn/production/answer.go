package production

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/config"
	"forge/pipeline/glob"
	"forge/pipeline/text"
)

// Answer is something that is done about an incident.
type Answer string

// The answers, in the order in which they are given.
const (
	AnswerIssue    Answer = "issue"    // an issue about it
	AnswerRun      Answer = "run"      // a run on that issue
	AnswerRollBack Answer = "rollback" // what ran before is deployed again
	AnswerRevert   Answer = "revert"   // a draft that takes back what it comes from
	AnswerAsk      Answer = "ask"      // people are asked
)

// Answers are all of them.
var Answers = []Answer{AnswerIssue, AnswerRollBack, AnswerRevert, AnswerRun, AnswerAsk}

// ActState says how far an answer is.
type ActState string

// The states of an answer.
const (
	ActBegun   ActState = "begun" // it is being carried out, or the server died meanwhile: it is looked for, and done when it is not there
	ActDone    ActState = "done"
	ActRefused ActState = "refused" // it cannot be carried out; it is not tried again by itself
)

// Act is an answer that is or was carried out. An incident has each at most once.
type Act struct {
	Answer Answer    `json:"answer"`
	State  ActState  `json:"state"`
	By     string    `json:"by,omitempty"`   // who chose it; "": the settings
	Said   int64     `json:"said,omitempty"` // the issue or pull request where it was chosen
	At     time.Time `json:"at"`
	Aim    Aim       `json:"aim,omitzero"`
	Number int64     `json:"number,omitempty"` // of the issue, pull request, run or deployment that was made
	URL    string    `json:"url,omitempty"`
	Why    string    `json:"why,omitempty"`   // it was refused, or fails
	Tries  int       `json:"tries,omitempty"` // that failed
	Next   time.Time `json:"next,omitzero"`   // not tried again before
}

// Aim is what an answer is directed at, fixed when it is begun.
type Aim struct {
	Deployment int64  `json:"deployment,omitempty"` // the suspect
	From       string `json:"from,omitempty"`       // the commit that runs
	To         string `json:"to,omitempty"`         // of a roll-back: the commit that is deployed
	// Over are the commits that were deployed in between, oldest first: what they changed
	// may have been done, also where nothing is seen of it at the end.
	Over   []string `json:"over,omitempty"`
	Commit string   `json:"commit,omitempty"` // of a revert: the suspect
	Pull   int      `json:"pull,omitempty"`   // of a revert: the suspect's pull request; where people are asked: its number
	Issue  int      `json:"issue,omitempty"`  // that a run works on; where people are asked
}

// Choice is what a person chose to have done.
type Choice struct {
	Answer Answer `json:"answer"`
	By     string `json:"by"`
	Issue  int64  `json:"issue,omitempty"` // or pull request where it was said
}

// Decline is a choice that could not be followed.
type Decline struct {
	Answer Answer `json:"answer"`
	By     string `json:"by"`
	Why    string `json:"why"`
	Seq    int64  `json:"seq"`             // of its event
	Issue  int64  `json:"issue,omitempty"` // or pull request where it was chosen
}

// Act returns the incident's act of an answer, nil when there is none.
func (i *Incident) Act(a Answer) *Act {
	if n := slices.IndexFunc(i.Acts, func(x Act) bool { return x.Answer == a }); n >= 0 {
		return &i.Acts[n]
	}
	return nil
}

// Answered reports whether a person has said what is to be done, as far as that is known:
// in the time since, the incident is theirs.
func (i *Incident) Answered() bool {
	return i.Chosen != nil || i.Declined != nil || !i.Muted.IsZero() || slices.ContainsFunc(i.Acts, func(a Act) bool { return a.By != "" })
}

// Begun reports whether an answer is under way.
func (i *Incident) Begun() bool {
	return slices.ContainsFunc(i.Acts, func(a Act) bool { return a.State == ActBegun })
}

// act folds the events of answers.
func (i *Incident) act(e Event) {
	d := e.Data
	said := int64(0)
	if c := i.Chosen; c != nil && c.Answer == d.Answer {
		said = c.Issue
	}
	switch e.Type {
	case EventChosen:
		i.Chosen = &Choice{d.Answer, d.By, d.Number}
	case EventDeclined:
		i.Declined = &Decline{Answer: d.Answer, By: d.By, Why: d.Why, Seq: e.Seq, Issue: said}
	case EventBegun:
		i.Acts = slices.DeleteFunc(slices.Clone(i.Acts), func(x Act) bool { return x.Answer == d.Answer })
		i.Acts = append(i.Acts, Act{Answer: d.Answer, State: ActBegun, By: d.By, Said: said, At: e.At, Aim: orZero(d.Aim)})
	case EventFailed:
		i.Acts = slices.Clone(i.Acts)
		if x := i.Act(d.Answer); x != nil {
			x.Tries, x.Next, x.Why = x.Tries+1, d.Until, d.Why
		}
	case EventDone, EventRefused:
		acts := slices.Clone(i.Acts)
		if i.Act(d.Answer) == nil {
			acts = append(acts, Act{Answer: d.Answer, At: e.At})
		}
		for n := range acts {
			if x := &acts[n]; x.Answer == d.Answer {
				x.State, x.Number, x.URL, x.Why = ActDone, d.Number, d.URL, d.Why
				if e.Type == EventRefused {
					x.State = ActRefused
				}
			}
		}
		i.Acts = acts
	}
	if i.Chosen != nil && i.Chosen.Answer == d.Answer && e.Type != EventChosen {
		i.Chosen = nil
	}
}

// The limits that no setting lifts.
const (
	rollBackApart = time.Hour          // between two roll-backs of an environment
	rollBackOnce  = 24 * time.Hour     // in which an environment is rolled back by itself once
	rollBackOver  = 7 * 24 * time.Hour // deployments that are older are not taken back
	runsPerDay    = 2                  // of a repository, for incidents, by themselves
	revertsPerDay = 2
	issuesPerDay  = 10
	maxAim        = 500 // files that a roll-back may change, to be looked through
)

// irreversible are files whose changes do something that the code before does not
// know of, such as to a database. Letter case does not count.
var irreversible = []string{
	"**/*.sql", "**/*.ddl", // Flyway, goose, golang-migrate, Prisma; structure.sql of Rails
	"**/migrations/**", "**/migration/**", "**/migrate/**", "**/*_migrate/**", // Django, Entity Framework, Flyway, golang-migrate, Rails
	"**/db/*schema.rb",    // Rails
	"**/*.prisma",         // Prisma
	"**/alembic/**/*.py",  // Alembic
	"**/v[0-9]*__*.*",     // Flyway, in any folder
	"**/flyway/**",        //
	"**/goose/**",         // goose
	"**/liquibase/**",     // Liquibase
	"**/db/changelog*/**", //
	"**/db/changelog.*", "**/db.changelog*", "**/databasechangelog*", "**/changelog*.xml",
}

// Scene is what answers to an incident depend on besides the incident.
type Scene struct {
	Settings    config.Production
	Deployments []Deployment // of the repository
	Incidents   []*Incident  // of the repository, of the last month
	Now         time.Time
}

// Verdict says whether an answer is allowed, and if not, why.
type Verdict struct {
	Answer Answer
	Aim    Aim
	Why    string // it is not; "": it is
}

// no is an answer that is not allowed.
func no(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Judge says of every answer whether a person may choose it now.
func (s Scene) Judge(i *Incident) (out []Verdict) {
	for _, a := range Answers[:len(Answers)-1] {
		out = append(out, s.judge(i, a, true))
	}
	return out
}

// Next returns what is to be done about an incident now: what a person chose, then
// what the settings let happen by itself. ok is false when there is nothing. A choice
// that is not allowed comes with the reason.
func (s Scene) Next(i *Incident) (v Verdict, by string, ok bool) {
	if c := i.Chosen; c != nil {
		return s.judge(i, c.Answer, true), c.By, true
	}
	if !s.Settings.Answers(i.Environment) || !i.State.Active() || s.Now.Before(i.Muted) || i.Correlated.IsZero() && !i.Storm {
		return v, "", false
	}
	for _, a := range Answers {
		if a == AnswerAsk && i.Begun() { // what comes of it is part of the question
			break
		}
		if s.on(a) && i.Act(a) == nil {
			if v = s.judge(i, a, false); v.Why == "" {
				return v, "", true
			}
		}
	}
	return Verdict{}, "", false
}

// on reports whether an answer is given by itself.
func (s Scene) on(a Answer) bool {
	p := s.Settings
	return map[Answer]bool{AnswerIssue: p.Issue, AnswerRun: p.Run, AnswerRollBack: p.RollBack, AnswerRevert: p.Revert, AnswerAsk: p.Ask}[a]
}

// judge decides about one answer. What is chosen by a person needs no certainty about
// the cause, as the person has that; all that would do harm by itself holds for both.
func (s Scene) judge(i *Incident, a Answer, chosen bool) Verdict {
	v := Verdict{Answer: a}
	switch act := i.Act(a); {
	case !chosen && !s.Settings.Answers(i.Environment):
		v.Why = no("production: in .github/forge.yml switches on no answers in %s", i.Environment)
	case !i.State.Active():
		v.Why = no("the incident is %s", i.State)
	case act != nil && act.State == ActRefused && chosen && a != AnswerRollBack: // what stood in the way may be gone
	case act != nil && act.State == ActRefused:
		v.Why = "it was tried: " + act.Why
	case act != nil && act.State == ActBegun:
		v.Why = "it is under way"
	case act != nil:
		v.Why = "it was done before"
	}
	if v.Why == "" && !chosen && a != AnswerIssue && a != AnswerAsk {
		v.Why = s.certain(i)
	}
	if v.Why != "" {
		return v
	}
	switch a {
	case AnswerIssue:
		v.Why = s.mayOpen(i, chosen)
	case AnswerRun:
		v.Aim, v.Why = s.mayRun(i, chosen)
	case AnswerRevert:
		v.Aim, v.Why = s.mayRevert(i, chosen)
	case AnswerRollBack:
		v.Aim, v.Why = s.mayRollBack(i, chosen)
	case AnswerAsk:
		v.Aim, v.Why = s.mayAsk(i)
	default:
		v.Why = "there is no such answer"
	}
	return v
}

// certain says why nothing may be done by itself: it is when something critical goes
// on, and is attributed, and not to what mended another incident.
func (s Scene) certain(i *Incident) string {
	switch {
	case i.Storm:
		return "many alerts came at once: it is not clear what this is"
	case i.Severity != SeverityCritical:
		return "it is not critical"
	case len(i.Suspects) > 0 && i.Suspects[0].Against != "":
		return "it is not certain what it comes from: " + i.Suspects[0].Against
	case len(i.Suspects) == 0 || i.Suspects[0].Score < Attributed:
		return "it is not certain what it comes from"
	case i.State != StateOpen:
		return "it recovers already"
	case i.Flapping(s.Now):
		return "it comes and goes"
	}
	if d := s.deployment(i.Suspects[0].Deployment); d != nil && s.returns(*d) {
		return broughtBack(*d)
	}
	return s.Loop(i)
}

// deployment finds a deployment, nil when it is not known.
func (s Scene) deployment(id int64) *Deployment {
	n := slices.IndexFunc(s.Deployments, func(d Deployment) bool { return d.ID == id })
	if n < 0 {
		return nil
	}
	return &s.Deployments[n]
}

// earlier are the deployments to the environment of one that succeeded before it, newest
// first.
func (s Scene) earlier(d Deployment) (out []Deployment) {
	for _, o := range s.Deployments {
		before := o.At.Before(d.At) || o.At.Equal(d.At) && o.ID < d.ID // GitHub's times are in seconds
		if o.Environment == d.Environment && o.ID != d.ID && !o.At.IsZero() && before {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Deployment) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) })
	return out
}

// returns reports whether a deployment brought back what ran there before something else
// did: people roll back so, whatever task they name.
func (s Scene) returns(d Deployment) bool {
	other := false
	for _, o := range s.earlier(d) {
		if o.Commit == d.Commit && other {
			return true
		}
		other = other || o.Commit != d.Commit
	}
	return false
}

func broughtBack(d Deployment) string {
	return no("deployment %d brought back %s, which ran there before", d.ID, text.Head(d.Commit, 10))
}

// Replace puts a newer reading of an incident in the place of the one before.
func (s Scene) Replace(i *Incident) {
	for n := range s.Incidents {
		if s.Incidents[n].ID == i.ID {
			s.Incidents[n] = i
		}
	}
}

// Loop says which incident's answer the suspect is, "" for none: a fix that breaks
// something is not answered by another one.
func (s Scene) Loop(i *Incident) string {
	if len(i.Suspects) == 0 {
		return ""
	}
	top := i.Suspects[0]
	for _, o := range s.Incidents {
		if o.ID == i.ID {
			continue
		}
		for _, a := range o.Acts {
			issue := a.Answer == AnswerIssue && top.Issue != 0 && int64(top.Issue) == a.Number
			run := a.Answer == AnswerRun && top.Run != 0 && top.Run == a.Number
			revert := a.Answer == AnswerRevert && top.Pull != 0 && int64(top.Pull) == a.Number
			back := a.Answer == AnswerRollBack && top.Deployment != 0 && top.Deployment == a.Number
			if a.State == ActDone && (issue || run || revert || back) {
				return no("what it comes from was an answer to incident %d", o.ID)
			}
		}
	}
	return ""
}

// done counts acts of the repository within a time that nobody chose.
func (s Scene) done(a Answer, within time.Duration) (n int) {
	for _, o := range s.Incidents {
		if x := o.Act(a); x != nil && x.State != ActRefused && x.By == "" && s.Now.Sub(x.At) < within {
			n++
		}
	}
	return n
}

func (s Scene) mayOpen(i *Incident, chosen bool) string {
	switch {
	case chosen:
	case i.Severity != SeverityCritical:
		return "it is not critical"
	case s.done(AnswerIssue, rollBackOnce) >= issuesPerDay:
		return no("%d issues were opened for incidents within a day", issuesPerDay)
	}
	return ""
}

func (s Scene) mayRun(i *Incident, chosen bool) (Aim, string) {
	issue := i.Act(AnswerIssue)
	switch {
	case issue == nil || issue.State != ActDone:
		return Aim{}, "it has no issue that a run could work on"
	case !chosen && s.done(AnswerRun, rollBackOnce) >= runsPerDay:
		return Aim{}, no("%d runs were started for incidents within a day", runsPerDay)
	}
	return Aim{Issue: int(issue.Number)}, ""
}

func (s Scene) mayRevert(i *Incident, chosen bool) (Aim, string) {
	switch {
	case len(i.Suspects) == 0 || i.Suspects[0].Score < Suspected:
		return Aim{}, "nothing is suspected that could be reverted"
	case i.Suspects[0].Commit == "":
		return Aim{}, "it is not clear which commit it comes from"
	case !chosen && i.Suspects[0].Undoes != "":
		return Aim{}, "it took something back, too: " + i.Suspects[0].Undoes
	case !chosen && s.done(AnswerRevert, rollBackOnce) >= revertsPerDay:
		return Aim{}, no("%d reverts were proposed within a day", revertsPerDay)
	}
	top := i.Suspects[0]
	return Aim{Deployment: top.Deployment, Commit: top.Commit, Pull: top.Pull}, ""
}

// mayAsk says where people are asked: at the incident's issue, or else at the pull
// request that is suspected.
func (s Scene) mayAsk(i *Incident) (Aim, string) {
	if x := i.Act(AnswerIssue); x != nil && x.State == ActDone {
		return Aim{Issue: int(x.Number)}, ""
	}
	if len(i.Suspects) > 0 && i.Suspects[0].Score >= Suspected && i.Suspects[0].Pull != 0 {
		return Aim{Pull: i.Suspects[0].Pull}, ""
	}
	return Aim{}, "there is neither an issue nor a pull request to ask at"
}

// mayRollBack says to what an environment may be rolled back.
func (s Scene) mayRollBack(i *Incident, chosen bool) (Aim, string) {
	if len(i.Suspects) == 0 || i.Suspects[0].Score < Suspected {
		return Aim{}, "no deployment is suspected that could be taken back"
	}
	known := s.deployment(i.Suspects[0].Deployment)
	if known == nil {
		return Aim{}, "the suspected deployment is not known any more"
	}
	d := *known
	for _, o := range s.Deployments {
		switch {
		case o.Environment != d.Environment || o.ID == d.ID:
		case o.Created.After(d.Created) || o.At.After(d.At) || o.ID > d.ID && o.Created.Equal(d.Created):
			return Aim{}, no("deployment %d was made after the suspected one: it may be the cure", o.ID)
		}
	}
	if why := s.rolledBack(i, d.Environment, chosen); why != "" {
		return Aim{}, why
	}
	if d.Task == TaskRollBack {
		return Aim{}, "the suspected deployment is a roll-back"
	}
	if s.returns(d) {
		return Aim{}, broughtBack(d)
	}
	switch top := i.Suspects[0]; {
	case top.Back != "":
		return Aim{}, "what it comes from is no news: " + top.Back
	case top.Undoes != "" && !chosen:
		return Aim{}, no("it took %s back, too, which would run there again", top.Undoes)
	}
	to, why := s.healthyBefore(d)
	if why != "" {
		return Aim{}, why
	}
	return Aim{Deployment: d.ID, From: d.Commit, To: to.Commit, Over: s.between(to, d), Commit: i.Suspects[0].Commit, Pull: i.Suspects[0].Pull}, ""
}

// between are the commits that were deployed, or begun to be, after one deployment and before
// another, oldest first.
func (s Scene) between(from, to Deployment) (out []string) {
	var list []Deployment
	for _, o := range s.Deployments {
		if o.Environment == to.Environment && o.Created.After(from.Created) && o.Created.Before(to.Created) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b Deployment) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	for _, o := range list {
		out = append(out, o.Commit)
	}
	return slices.Compact(out)
}

// TaskRollBack is the task of deployments by which Forge rolls back.
const TaskRollBack = "rollback"

// rolledBack says that an environment was rolled back not long ago.
func (s Scene) rolledBack(i *Incident, environment string, chosen bool) string {
	for _, o := range s.Incidents {
		x := o.Act(AnswerRollBack)
		if o.ID == i.ID || o.Environment != environment || x == nil || x.State == ActRefused {
			continue
		}
		switch age := s.Now.Sub(x.At); {
		case age < rollBackApart:
			return no("%s was rolled back for incident %d within the hour", environment, o.ID)
		case age < rollBackOnce && !chosen && x.By == "":
			return no("%s was rolled back by itself for incident %d within a day", environment, o.ID)
		}
	}
	for _, d := range s.Deployments {
		if d.Environment == environment && d.Task == TaskRollBack && s.Now.Sub(d.Created) < rollBackApart {
			return no("%s was rolled back by deployment %d within the hour", environment, d.ID)
		}
	}
	return ""
}

// healthyBefore finds the last deployment of another commit to the environment of one
// before it, of which no incident is known to come.
func (s Scene) healthyBefore(d Deployment) (Deployment, string) {
	over := d
	for _, o := range s.earlier(d) {
		if s.Now.Sub(over.At) > rollBackOver {
			return Deployment{}, "it would take back a deployment that is older than a week"
		}
		if o.Commit != d.Commit && !s.blamed(o) {
			return o, ""
		}
		over = o
	}
	return Deployment{}, "no deployment before it is known to have been healthy"
}

// blamed reports whether an incident that nobody dismissed comes from a deployment.
func (s Scene) blamed(d Deployment) bool {
	return slices.ContainsFunc(s.Incidents, func(i *Incident) bool {
		return i.State != StateDismissed && i.Environment == d.Environment && len(i.Suspects) > 0 && i.Suspects[0].Deployment == d.ID &&
			i.Suspects[0].Score >= Suspected && i.Suspects[0].Against == ""
	})
}

// Crosses says which of the files between two commits stand against a roll-back from
// one to the other, "" for none.
func (s Scene) Crosses(files []string) string {
	if len(files) >= maxAim {
		return no("it would change %d files or more, too many to know what it takes back", maxAim)
	}
	for _, f := range files {
		for _, g := range append(slices.Clone(irreversible), s.Settings.Irreversible...) {
			if glob.Match(strings.ToLower(g), strings.ToLower(f)) {
				return no("it would go back across %s, which cannot be undone by deploying what was before", text.Clip(f, 100))
			}
		}
	}
	return ""
}

// Line says of a verdict what people read.
func (v Verdict) Line() string {
	what := map[Answer]string{
		AnswerIssue: "open an issue for it", AnswerRun: "start a run that mends it", AnswerRevert: "propose a draft that reverts the suspect",
		AnswerRollBack: "deploy what ran before again",
	}[v.Answer]
	switch {
	case v.Why != "":
		return what + " — not now: " + v.Why
	case v.Aim.To != "":
		return what + ", " + text.Head(v.Aim.To, 10)
	case v.Answer == AnswerRevert && v.Aim.Pull != 0:
		return fmt.Sprintf("%s, #%d", what, v.Aim.Pull)
	}
	return strings.TrimSpace(what)
}

// Lesson is what an incident teaches about the run whose work it comes from.
type Lesson string

// The lessons.
const (
	LessonEscaped   Lesson = "escaped"    // review and tests of the run did not see it
	LessonTakenBack Lesson = "taken back" // somebody says that it was nothing
)

// Lesson says what an incident teaches now that it has not taught, "" for nothing. Only
// what is attributed teaches, and only once what was done about the cause has ended it.
func (i *Incident) Lesson() Lesson {
	cured := slices.ContainsFunc(i.Acts, func(a Act) bool {
		return a.State == ActDone && (a.Answer == AnswerRollBack || a.Answer == AnswerRevert || a.Answer == AnswerRun)
	})
	switch {
	case i.Taught && i.State == StateDismissed:
		return LessonTakenBack
	case !i.Taught && i.State == StateResolved && cured && !i.Storm && len(i.Suspects) > 0 && i.Suspects[0].Score >= Attributed && i.Suspects[0].Run != 0:
		return LessonEscaped
	}
	return ""
}
