package production

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline/glob"
	"forge/pipeline/text"
)

// Suspect is what an incident may come from, with the reasons.
type Suspect struct {
	Deployment int64    `json:"deployment"`
	Commit     string   `json:"commit,omitempty"` // that the reasons point at; of a deployment of one commit, that
	Title      string   `json:"title,omitempty"`  // of the commit
	File       string   `json:"file,omitempty"`
	Pull       int      `json:"pull,omitempty"`
	Run        int64    `json:"run,omitempty"`
	Issue      int      `json:"issue,omitempty"`   // that the run worked on
	Finding    string   `json:"finding,omitempty"` // fingerprint of one that was dismissed, or is open, at that place
	Score      float64  `json:"score"`             // 0 to 1
	Why        []string `json:"why"`
	Against    string   `json:"against,omitempty"` // what the source names instead
	Back       string   `json:"back,omitempty"`    // it only takes back what was brought before, in words
	Undoes     string   `json:"undoes,omitempty"`  // what it takes back, besides what it brings

	byTimeAlone bool // nothing but when it was made points at it
}

// The scores from which a suspect is held for the cause, or is named at all. Only what
// is attributed may act or teach.
const (
	Attributed = 0.7
	Suspected  = 0.4
)

// Facts are what is known of a deployment.
type Facts struct {
	Deployment Deployment
	Commits    []Commit          // that it brought
	Nothing    bool              // it brought none: what ran before has all of it
	Back       string            // it only takes back what was brought before, in words
	Undoes     string            // what some of its commits take back
	Blamed     map[string]string // a stack's line, "file:12" as in the frame → the commit that changed it last
	Doubts     []Doubt           // about what it brought
}

// Commit is a commit of the branch that is deployed; a merge stands for all it merges.
type Commit struct {
	ID    string
	Title string
	Files []string
	Pull  int
	Run   int64     // of Forge, whose work it is
	Issue int       // that this run worked on
	Began time.Time // that run
}

// Doubt is a finding of a review that nobody mended.
type Doubt struct {
	Run         int64
	Fingerprint string
	File        string
	Line        int
	State       string // open, dismissed, …
}

// The weights of evidence; they are combined as independent: 1 − Π(1 − w).
const (
	weightTime     = 0.6 // right before, halved every half hour
	weightNamed    = 0.8 // the source names the deployment, or the commit as related
	weightRelease  = 0.4 // the source says what it runs: not that this is new
	weightFile     = 0.3
	weightLine     = 0.5
	weightService  = 0.2
	weightMetric   = 0.4
	weightDoubt    = 0.2
	weightBefore   = 0.6 // against: the same was seen before
	halfLife       = 30 * time.Minute
	maxCandidates  = 5
	candidateSince = 7 * 24 * time.Hour
	maxSuspects    = 3
	metricSince    = 2 * time.Hour    // after which a metric says nothing about a deployment
	sameTime       = 10 * time.Minute // deployments within it cannot be distinguished by time
	clockApart     = 2 * time.Minute  // a source's clock and GitHub's
)

// Candidates are the deployments that an incident may come from: those to its
// environment that succeeded before it was first seen, newest first. One that the
// source names may have succeeded a little later, by another clock; one that it names and
// that failed is what it comes from, and no other.
func Candidates(i *Incident, list []Deployment) (out []Deployment) {
	names := i.names()
	var failed []Deployment
	for _, d := range list {
		if back := i.Act(AnswerRollBack); back != nil && back.Number == d.ID { // its own cure
			continue
		}
		until := i.FirstSeen
		if slices.ContainsFunc(names, func(n Named) bool { return n.Deployment == d.ID }) {
			until = until.Add(clockApart)
			if d.Environment == i.Environment && d.At.IsZero() && (d.State == "failure" || d.State == "error") {
				if before := lastDeployment(list, d.Environment, i.FirstSeen); before != nil && d.Previous == "" {
					d.Previous = before.Commit
				}
				failed = append(failed, d)
			}
		}
		if d.Environment == i.Environment && !d.At.IsZero() && !d.At.After(until) && i.FirstSeen.Sub(d.At) <= candidateSince {
			out = append(out, d)
		}
	}
	if len(failed) > 0 {
		out = failed
	}
	slices.SortFunc(out, func(a, b Deployment) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) })
	return out[:min(len(out), maxCandidates)]
}

// Suspects weighs what an incident may come from, most likely first. before are
// incidents of the same group that were seen earlier; services name globs of files.
func Suspects(i *Incident, facts []Facts, before []*Incident, services map[string][]string) []Suspect {
	var out []Suspect
	for n, f := range facts {
		if s := suspect(i, f, n == 0, before, services); s.Score >= 0.05 {
			if s.Against = against(i, f, facts); s.Against != "" {
				s.Score = min(s.Score, Attributed-0.01)
				s.Why = append(s.Why, "but "+s.Against)
			}
			out = append(out, s)
		}
	}
	if len(out) > 0 && len(facts) > 1 && facts[0].Deployment.At.Sub(facts[1].Deployment.At) < sameTime && out[0].byTimeAlone {
		out[0].Score = min(out[0].Score, Attributed-0.01)
		out[0].Why = append(out[0].Why, "but another deployment was made shortly before, and nothing tells the two apart")
	}
	slices.SortStableFunc(out, func(a, b Suspect) int { return cmp.Compare(b.Score, a.Score) })
	return out[:min(len(out), maxSuspects)]
}

// evidence gathers weights and their reasons.
type evidence struct {
	left float64 // Π(1 − w)
	why  []string
}

func (e *evidence) add(w float64, format string, args ...any) {
	e.left *= 1 - w
	e.why = append(e.why, fmt.Sprintf(format, args...)+fmt.Sprintf(" (%.2f)", w))
}

func suspect(i *Incident, f Facts, last bool, before []*Incident, services map[string][]string) Suspect {
	d := f.Deployment
	s := Suspect{Deployment: d.ID, Back: f.Back, Undoes: f.Undoes}
	e := evidence{left: 1}
	s.byTimeAlone = last
	if last && !d.At.IsZero() {
		age := max(0, i.FirstSeen.Sub(d.At))
		e.add(weightTime*math.Exp2(-age.Minutes()/halfLife.Minutes()), "it was the last deployment to %s, %s before", i.Environment, short(age))
		if words := departed(i); words != "" && age <= metricSince {
			e.add(weightMetric, "%s", words)
		}
	}
	names := i.names()
	switch {
	case slices.ContainsFunc(names, func(n Named) bool { return n.Deployment == d.ID }):
		e.add(weightNamed, "the source names it")
		s.byTimeAlone = false
	case slices.ContainsFunc(names, func(n Named) bool { return n.Commit != "" && n.runs(d) || n.Release != "" && n.released(d) }):
		e.add(weightRelease, "the source says that this version runs")
	}
	best, reasons := bestCommit(i, f, services)
	e.left *= reasons.left
	e.why = append(e.why, reasons.why...)
	s.File = reasons.file
	s.byTimeAlone = s.byTimeAlone && reasons.left == 1
	switch {
	case best != nil:
		s.Commit, s.Title, s.Pull, s.Run, s.Issue = best.ID, best.Title, best.Pull, best.Run, best.Issue
		s.Finding = reasons.finding
	case len(f.Commits) > 1:
		e.why = append(e.why, fmt.Sprintf("which of its %d commits it is, nothing says", len(f.Commits)))
	}
	s.Score = 1 - e.left
	for _, b := range before {
		if b.ID != i.ID && b.Group == i.Group && b.FirstSeen.Before(d.At) && d.At.Sub(b.FirstSeen) < candidateSince && b.State != StateDismissed {
			s.Score *= 1 - weightBefore
			e.why = append(e.why, fmt.Sprintf("but the same was seen before it: incident %d (−%.2f)", b.ID, weightBefore))
			break
		}
	}
	s.Score, s.Why = math.Round(100*s.Score)/100, e.why
	return s
}

// against says what keeps a deployment from being held for the cause, such as that the
// source names something else; "" for nothing.
func against(i *Incident, f Facts, all []Facts) string {
	d := f.Deployment
	if f.Nothing {
		return "it brought nothing that did not run there before"
	}
	if f.Back != "" {
		return f.Back
	}
	for _, n := range i.names() {
		if n.Deployment != 0 && n.Deployment != d.ID {
			what := fmt.Sprintf("the source names deployment %d", n.Deployment)
			if !slices.ContainsFunc(all, func(o Facts) bool { return o.Deployment.ID == n.Deployment }) {
				what += fmt.Sprintf(", which is not known to have run in %s", i.Environment)
			}
			return what
		}
		other := func(o Facts) bool { return o.Deployment.ID != d.ID && n.released(o.Deployment) }
		switch {
		case n.Commit != "" && !n.runs(d):
			return fmt.Sprintf("the source says that %s runs", text.Head(n.Commit, 10))
		case n.Release != "" && !n.released(d) && (n.commit() || slices.ContainsFunc(all, other)):
			return fmt.Sprintf("the source says that %s runs", text.Head(n.version(), 10))
		case n.Related != "" && !strings.HasPrefix(d.Commit, n.Related) &&
			!slices.ContainsFunc(f.Commits, func(c Commit) bool { return strings.HasPrefix(c.ID, n.Related) }):
			return fmt.Sprintf("the source holds commit %s for the cause, which it did not bring", text.Head(n.Related, 10))
		}
	}
	return ""
}

// runs reports whether the commit that is named is the one deployed.
func (n Named) runs(d Deployment) bool { return strings.HasPrefix(d.Commit, n.Commit) }

// version is the release without what stands before it, as in "shop@1.2".
func (n Named) version() string { return n.Release[strings.LastIndexByte(n.Release, '@')+1:] }

// released reports whether the release that is named is the one deployed: its tag, with or
// without the v before a number, or its commit, also as what stands behind a version.
func (n Named) released(d Deployment) bool {
	v := n.version()
	plain, build, _ := strings.Cut(v, "+")
	ofCommit := func(s string) bool { return len(s) >= 7 && strings.HasPrefix(d.Commit, strings.ToLower(s)) }
	ref := tag(d.Ref)
	return v != "" && (tag(v) == ref || plain != "" && tag(plain) == ref || ofCommit(v) || ofCommit(build))
}

// tag is a version or a ref without what people leave out.
func tag(s string) string {
	s = strings.TrimPrefix(s, "refs/tags/")
	if len(s) > 1 && (s[0] == 'v' || s[0] == 'V') && s[1] >= '0' && s[1] <= '9' {
		return s[1:]
	}
	return s
}

// commit reports whether the release is a commit's SHA, or how one begins. Digits alone
// may be a date.
func (n Named) commit() bool {
	v := strings.ToLower(n.version())
	return len(v) >= 7 && strings.Trim(v, "0123456789abcdef") == "" && (len(v) >= 40 || strings.ContainsAny(v, "abcdef"))
}

func short(d time.Duration) string {
	if d < time.Minute {
		return text.Plural(int(d.Seconds()), "second", "seconds")
	}
	if d < 2*time.Hour {
		return text.Plural(int(d.Minutes()), "minute", "minutes")
	}
	return text.Plural(int(d.Hours()), "hour", "hours")
}

// departed says that a metric is far from what it was before.
func departed(i *Incident) string {
	for _, o := range []Observation{i.First, i.Last} {
		a := orZero(o.Anomaly)
		if a.Baseline == nil || a.Current == nil {
			continue
		}
		base, now := *a.Baseline, *a.Current
		if math.Abs(now-base) >= math.Max(0.5*math.Abs(base), 1e-9) {
			return fmt.Sprintf("%s was %.4g before and is %.4g since", a.Metric, base, now)
		}
	}
	return ""
}

// commitEvidence is what points at one commit.
type commitEvidence struct {
	evidence
	file, finding string
}

// bestCommit finds the commit that most points at; nil when several are alike in that, unless
// all of them came with one pull request.
func bestCommit(i *Incident, f Facts, services map[string][]string) (best *Commit, reasons commitEvidence) {
	reasons.left = 1
	frames, tied := i.OwnFrames(), false
	for n := range f.Commits {
		c := &f.Commits[n]
		e := commitEvidence{evidence: evidence{left: 1}}
		e.weigh(i, c, f, frames, services)
		switch {
		case best == nil || e.left < reasons.left:
			best, reasons, tied = c, e, false
		case e.left == reasons.left && (c.Pull == 0 || c.Pull != best.Pull):
			tied = true
		}
	}
	if tied {
		return nil, reasons
	}
	return best, reasons
}

func (e *commitEvidence) weigh(i *Incident, c *Commit, f Facts, frames []Frame, services map[string][]string) {
	for _, n := range i.names() {
		if r := n.Related; r != "" && strings.HasPrefix(c.ID, r) {
			e.add(weightNamed, "the source holds commit %s for the cause", text.Head(c.ID, 10))
			break
		}
	}
	for _, fr := range frames {
		n := slices.IndexFunc(c.Files, func(file string) bool { return SameFile(fr.File, file) })
		if n < 0 {
			continue
		}
		e.file = c.Files[n]
		e.add(weightFile, "%s is in the stack and was changed by %s", e.file, text.Head(c.ID, 10))
		break
	}
	for _, fr := range frames {
		if f.Blamed[fr.Place()] == c.ID {
			e.add(weightLine, "line %d of %s is in the stack and was changed last by %s", fr.Line, fr.File, text.Head(c.ID, 10))
			break
		}
	}
	if globs := services[i.First.Service]; i.First.Service != "" && touches(c.Files, globs) {
		e.add(weightService, "it changes files of the service %s", i.First.Service)
	}
	for _, doubt := range f.Doubts {
		if doubt.Run != c.Run || c.Run == 0 || !slices.ContainsFunc(frames,
			func(fr Frame) bool { return SameFile(fr.File, doubt.File) && near(fr.Line, doubt.Line) }) {
			continue
		}
		e.finding = doubt.Fingerprint
		e.add(weightDoubt, "a finding at %s:%d is %s", doubt.File, doubt.Line, doubt.State)
		break
	}
}

func near(a, b int) bool { return a-b <= 3 && b-a <= 3 }

func touches(files, globs []string) bool {
	return slices.ContainsFunc(files, func(f string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return glob.Match(g, f) })
	})
}

// Place names a frame's line.
func (f Frame) Place() string { return fmt.Sprintf("%s:%d", f.File, f.Line) }

// SameFile reports whether a file of a stack, which stands where it was built, may be
// a file of the repository.
func SameFile(frame, file string) bool {
	frame, file = strings.TrimPrefix(strings.ReplaceAll(frame, `\`, "/"), "./"), strings.TrimPrefix(file, "./")
	return frame == file || strings.HasSuffix(frame, "/"+file) || strings.HasSuffix(file, "/"+frame) && frame != ""
}
