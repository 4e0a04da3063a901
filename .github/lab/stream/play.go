package stream

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"forge/learn"
	"forge/learn/nearest"
	"forge/pipeline"
)

// Policy is what is made of what people did.
type Policy struct {
	Name    string `json:"name"`
	What    string `json:"what"`    // for people
	Memory  bool   `json:"memory"`  // dismissals are remembered for the same code
	Predict bool   `json:"predict"` // and what is near to refusals is held back
	Tastes  bool   `json:"tastes"`  // what the team does not want is known beforehand, and held back
	Truth   bool   `json:"truth"`   // and what is wrong, but for what blocks a merge
	Nearest bool   `json:"nearest"` // what is most like what was dismissed is held back
	Base    bool   `json:"base"`    // as many as Forge would like to hold back, drawn at random
}

// The policies that verdicts are about.
const (
	Product = "product"
	Nearest = "nearest texts"
	Floor   = "all known"
)

// Policies go from no memory to what nobody could do. The first is what the others
// are compared with.
func Policies() []Policy {
	return []Policy{
		{Name: "memory off", What: "everything is posted"},
		{Name: "dismissals", What: "what was dismissed is not posted again for the same code", Memory: true},
		{Name: Product, What: "and what is nearer to refusals than to anything that people acted on is held back", Memory: true, Predict: true},
		{Name: Nearest, What: "dismissals; and what is held back says the same as what was mostly dismissed: the five nearest texts", Memory: true, Nearest: true},
		{Name: "base rate", What: "dismissals; and of the rest as many are held back by chance as were dismissed before", Memory: true, Base: true},
		{Name: "tastes known", What: "dismissals; and what the team does not want is known beforehand", Memory: true, Tastes: true},
		{Name: Floor, What: "and what is wrong, too: left are mistakes, single persons' tastes and false alarms", Memory: true, Tastes: true, Truth: true},
	}
}

// Cause is why a posted finding was dismissed.
type Cause int

// The causes.
const (
	CauseTaste    Cause = iota // the team does not want to hear it
	CauseChange                // the team does not want to hear it any more
	CauseWrong                 // it was wrong, and blocked nothing
	CauseAlarm                 // it was wrong, and blocked the merge
	CausePersonal              // the person who answered does not want to hear it, the team does
	CauseMistake               // it was right and wanted
	causes
)

// CauseCount is how many there are.
const CauseCount = int(causes)

func (c Cause) String() string {
	return [...]string{"taste", "change of taste", "wrong", "false alarm", "personal taste", "mistake"}[c]
}

// blockSize is how many pull requests a figure sums up.
const blockSize = 50

// Block sums up some pull requests.
type Block struct {
	From      int         `json:"from"` // pull requests, from 1
	To        int         `json:"to"`
	Found     int         `json:"found"`     // by the reviewer
	Posted    int         `json:"posted"`    //
	Dismissed int         `json:"dismissed"` // of those posted
	Causes    [causes]int `json:"causes"`    // of those dismissed, by [Cause]
	// of those posted: the same fingerprint, path and code had been dismissed before; critical security aside,
	// which comes back by rule
	Repeated         int `json:"repeated"`
	Useful           int `json:"useful"`      // found, right and wanted, blocking nothing
	UsefulSuppressed int `json:"useful_held"` // of them, held back
}

// Rate is the share of posted findings that was dismissed.
func (b Block) Rate() float64 {
	if b.Posted == 0 {
		return 0
	}
	return float64(b.Dismissed) / float64(b.Posted)
}

func (b *Block) add(o Block) {
	b.Found, b.Posted, b.Dismissed, b.Repeated = b.Found+o.Found, b.Posted+o.Posted, b.Dismissed+o.Dismissed, b.Repeated+o.Repeated
	for i, n := range o.Causes {
		b.Causes[i] += n
	}
	b.Useful, b.UsefulSuppressed = b.Useful+o.Useful, b.UsefulSuppressed+o.UsefulSuppressed
}

// Play is what became of a stream under one policy.
type Play struct {
	Policy    string  `json:"policy"`
	Blocks    []Block `json:"blocks"`    // of 50 pull requests
	Second    Block   `json:"second"`    // pull requests 26 to 50
	Planted   int     `json:"planted"`   // true errors and criticals
	Lost      int     `json:"lost"`      // of them: held back, and nobody had ever been shown this one
	Again     int     `json:"again"`     // held back after a person had dismissed this very one
	Secure    int     `json:"secure"`    // critical findings about security that were held back
	Learnings int     `json:"learnings"` // at the end
}

// All sums the blocks up.
func (p *Play) All() Block {
	sum := Block{From: 1}
	for _, b := range p.Blocks {
		sum.To = b.To
		sum.add(b)
	}
	return sum
}

// event is something that people do, after which memory is another.
type event struct {
	number int
	signal pipeline.Signal
	shown  *identity // dismissed
}

type identity struct{ fingerprint, file, code string }

func identify(f *pipeline.Finding) identity {
	return identity{f.Fingerprint, f.File, learn.CodeDigest(f.Code)}
}

// player plays one stream under one policy.
type player struct {
	policy    Policy
	memory    *learn.Memory
	waiting   []event
	dismissed map[identity]bool
	posted    map[int]bool // planted errors that were shown
	lost      map[int]bool
	comment   int64
	ended     int               // days for which rates were computed
	refusals  *nearest.Refusals // of this day
	texts     *neighbours
	p         Play
}

// play plays a stream. It changes nothing of it.
func play(s *stream, policy Policy) Play {
	g := &player{policy: policy, memory: learn.NewMemory(), dismissed: map[identity]bool{}, posted: map[int]bool{}, lost: map[int]bool{}}
	g.p = Play{Policy: policy.Name, Planted: s.planted, Second: Block{From: blockSize/2 + 1, To: blockSize}}
	for i := range s.pulls {
		pull := &s.pulls[i]
		g.until(pull.at)
		b := g.review(pull)
		if i%blockSize == 0 {
			g.p.Blocks = append(g.p.Blocks, Block{From: pull.number})
		}
		last := &g.p.Blocks[len(g.p.Blocks)-1]
		last.To = pull.number
		last.add(b)
		if pull.number > blockSize/2 && pull.number <= blockSize {
			g.p.Second.add(b)
		}
	}
	g.p.Lost, g.p.Learnings = len(g.lost), len(g.memory.Learnings())
	return g.p
}

// until lets everything happen that happens before a moment.
func (g *player) until(now time.Time) {
	slices.SortStableFunc(g.waiting, func(a, b event) int { return cmp.Or(a.signal.At.Compare(b.signal.At), cmp.Compare(a.number, b.number)) })
	n := 0
	for ; n < len(g.waiting) && !g.waiting[n].signal.At.After(now); n++ {
		e := g.waiting[n]
		if e.shown != nil {
			g.dismissed[*e.shown] = true
		}
		if g.policy.Memory {
			g.memory.Take(e.signal)
		}
	}
	g.waiting = g.waiting[n:]
	if day := int(now.Sub(began).Hours() / 24); g.policy.Memory && day > g.ended {
		g.ended = day
		for _, r := range learn.Rates(g.memory.Signals(), now) {
			g.memory.Apply(r.Scope, r.Evidence(g.memory.Learnings(), now))
		}
		if g.policy.Nearest || g.policy.Base {
			g.texts = newNeighbours(nearest.Decisions(g.memory.Signals()))
		}
		if g.policy.Predict {
			g.refusals = nearest.New(nearest.Decisions(g.memory.Signals()), now)
		}
	}
}

// review posts what the filter leaves of a pull request's findings.
func (g *player) review(p *pull) Block {
	var b Block
	byID := map[string]*found{}
	var findings []pipeline.Finding
	for i := range p.found {
		f := &p.found[i]
		byID[f.ID] = f
		if !(g.policy.Tastes && f.unliked || g.policy.Truth && !f.useful) || f.Severity.Blocks() {
			findings = append(findings, f.Finding)
		}
		b.Found++
		if f.useful && f.planted == 0 {
			b.Useful++
		}
	}
	kept, held := learn.Filter(findings, g.memory.Learnings(), g.refusals)
	kept, held = g.baselines(kept, held)
	for _, h := range held {
		g.hold(byID[h.Finding.ID], &b)
	}
	for i := range kept {
		f := byID[kept[i].ID]
		b.Posted++
		g.posted[f.planted] = true
		if g.dismissed[identify(&kept[i])] && !secure(f) {
			b.Repeated++
		}
		if f.does == pipeline.SignalDismissed {
			b.Dismissed++
			b.Causes[f.cause]++
		}
		g.comment++
		g.answer(p, f, kept[i])
	}
	for _, r := range p.remarks {
		g.comment++
		g.later(event{signal: pipeline.Signal{Key: fmt.Sprintf("gap/%d", g.comment), Kind: pipeline.SignalGap, At: p.at.Add(r.after), Actor: r.by.Actor,
			Weight: r.by.weight, Pull: p.number, File: r.file, Text: r.text, Comment: g.comment, Scope: scope}})
	}
	return b
}

// secure reports whether a finding is one that memory never touches.
func secure(f *found) bool {
	return f.Severity == pipeline.SeverityCritical && f.Category == pipeline.CategorySecurity
}

// hold counts what was held back.
func (g *player) hold(f *found, b *Block) {
	if secure(f) {
		g.p.Secure++
	}
	switch {
	case f.planted > 0 && g.dismissed[identify(&f.Finding)]:
		g.p.Again++
	case f.planted > 0 && !g.posted[f.planted]:
		g.lost[f.planted] = true
	case f.planted == 0 && f.useful:
		b.UsefulSuppressed++
	}
}

// answer has people do what they do with a posted finding.
func (g *player) answer(p *pull, f *found, about pipeline.Finding) {
	at := p.at.Add(f.after)
	s := pipeline.Signal{Kind: f.does, At: at, Actor: f.by.Actor, Weight: f.by.weight, Pull: p.number, Finding: f.Fingerprint, File: f.File, Line: f.Line,
		Before: f.Code, Text: f.text, Waited: f.after.Milliseconds(), Comment: g.comment, Scope: scope, About: &about}
	switch f.does {
	case silentMisread:
		s.Kind, s.Text, s.Key = pipeline.SignalDismissed, "", fmt.Sprintf("dismissed/%d", g.comment)
		g.later(event{signal: s})
	case pipeline.SignalDismissed:
		s.Key = fmt.Sprintf("dismissed/%d", g.comment)
		id := identify(&f.Finding)
		g.later(event{signal: s, shown: &id})
	case pipeline.SignalApplied, pipeline.SignalRewritten, pipeline.SignalIgnored:
		s.Key, s.Before = fmt.Sprintf("suggestion/%d", g.comment), *f.Fix.Replacement
		switch f.does {
		case pipeline.SignalApplied:
			s.After = s.Before
		case pipeline.SignalRewritten:
			s.After = f.instead
		default:
			s.After, s.Implied = f.Code, true
		}
		g.later(event{signal: s})
	case pipeline.SignalFixedByHuman:
		s.Key, s.After = fmt.Sprintf("mended/%d", g.comment), f.Code+" // as the team writes it"
		g.later(event{signal: s})
	}
}

func (g *player) later(e event) {
	e.number = int(g.comment)
	g.waiting = append(g.waiting, e)
}
