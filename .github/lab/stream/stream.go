// Package stream measures what learning from people's reactions is worth: the same
// stream of pull requests is reviewed with memory off and with memory on.
//
// The repository is real: its files, its lines. What happens to it is made up, from a
// seed: pull requests change places that are changed often more than others; a
// reviewer remarks on what lines of these sorts give cause for, some of it wrong, some
// of it again in other words; true errors are planted by breaking lines; people with
// different roles, who have preferences in common and some of their own, dismiss,
// apply, rewrite, mend or overlook what they are shown, hours later, and make
// mistakes. What they do goes through Forge's own learning: [learn.Memory],
// [learn.Judge], [learn.Filter], [learn.Predictor].
//
// What a stream holds, and how people would react to each finding, does not depend
// on what is posted, so that policies are compared on the same work. For the same
// reason a finding that is mended when it is shown does not come back where it was
// held: what is held back is counted ([Block.UsefulSuppressed]), not piled up.
package stream

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/lazyregexp"
)

// scope is the repository that a stream happens in.
const scope = "repo:acme/stream"

// began is when the first pull request is opened: nothing depends on the date.
var began = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

const between = 9 * time.Hour // from one pull request to the next, the mean

// silentClick is a conversation that was resolved without a word, for another reason than
// that the finding is not wanted. What Forge makes of GitHub's state says nothing of it
// (github.Signals), so that nothing reaches the memory; a reader of clicks alone takes it
// for a dismissal.
const silentClick = pipeline.SignalKind("resolved in silence")

// silentMisread is one that is taken for a dismissal all the same: it was the only one.
const (
	silentMisread = pipeline.SignalKind("resolved in silence, and misread")
	misread       = 0.15 // of those
)

// found is a finding that the reviewer has for a pull request, and what people do
// when they see it. Both are the same whatever was posted before.
type found struct {
	pipeline.Finding
	rule    string // what it is about, also where the reviewer names no rule
	planted int    // number of the true error that it is, from 1; 0: none
	useful  bool   // right, and the team wants to hear it
	unliked bool   // the team does not want to hear it, right or wrong
	turned  bool   // and wanted to, once
	cause   Cause  // why a person dismisses it, if one does
	by      person
	after   time.Duration       // from the review to the reaction
	does    pipeline.SignalKind // dismissed, applied, rewritten, mended, ignored; empty: nothing
	text    string              // of a dismissal
	instead string              // of a rewriting
}

type person struct {
	pipeline.Actor
	weight float64
}

type remark struct {
	by         person
	file, text string
	after      time.Duration
}

type pull struct {
	number  int
	at      time.Time
	author  pipeline.Actor
	found   []found
	remarks []remark
}

// stream is what happens to a repository, and what its reviewer finds.
type stream struct {
	pulls   []pull
	planted int
}

// generator makes a stream.
type generator struct {
	m      Model
	seed   uint64
	rng    *rand.Rand
	files  []File // as they are now, the most changed first
	team   []person
	folder string
	share  float64 // of the stream that is over
	at     time.Time
	number int // of the pull request
	gone   map[string]bool
	broken []defective // not mended yet
	s      stream
}

type defective struct {
	id, file, line int
	before         string
	finding        found
}

// generate makes a stream of n pull requests. The same arguments give the same one.
func generate(c *Code, m Model, n int, seed uint64) *stream {
	g := &generator{m: m, seed: seed, rng: rand.New(rand.NewPCG(seed, 0x5eed)), files: c.clone(), gone: map[string]bool{}}
	g.rng.Shuffle(len(g.files), func(i, k int) { g.files[i], g.files[k] = g.files[k], g.files[i] })
	g.folder = path.Dir(g.files[0].Path) // much happens there
	for i := range m.People {
		weight := 0.8
		switch {
		case i == 0:
			weight = 1
		case i%3 == 2:
			weight = 0.4
		}
		g.team = append(g.team, person{pipeline.Actor{ID: int64(i + 1), Login: fmt.Sprintf("person%d", i+1)}, weight})
	}
	at := began
	for i := range n {
		g.share, g.number = float64(i)/float64(n), i+1
		at = at.Add(time.Duration(g.rng.ExpFloat64()*float64(between)) + time.Minute)
		g.pull(at)
	}
	return &g.s
}

// draw gives a number from 0 to 1 that belongs to these words: what is looked at
// again gives the same.
func (g *generator) draw(words ...string) float64 {
	h := sha256.Sum256(fmt.Append(nil, g.seed, "\x00", strings.Join(words, "\x00")))
	return float64(binary.BigEndian.Uint64(h[:])>>11) / (1 << 53)
}

type hunk struct{ file, from, to int }

func (g *generator) pull(at time.Time) {
	p := pull{number: g.number, at: at}
	g.at = at
	author := g.rng.IntN(len(g.team))
	p.author = g.team[author].Actor
	hunks := g.hunks()
	p.found = g.lingering(hunks, author)
	if g.rng.Float64() < g.m.Planted {
		if f, ok := g.plant(hunks[0], author); ok {
			p.found = append(p.found, f)
		}
	}
	p.found = append(p.found, g.review(hunks, author)...)
	if g.rng.Float64() < g.m.Remarks {
		h := hunks[g.rng.IntN(len(hunks))]
		p.remarks = append(p.remarks, remark{g.answers(author), g.files[h.file].Path, remarks[g.rng.IntN(len(remarks))], g.wait()})
	}
	for i := range p.found {
		f := &p.found[i]
		f.ID, f.Fingerprint = fmt.Sprintf("F%d", i+1), f.Finding.Digest()
	}
	g.s.pulls = append(g.s.pulls, p)
}

// hunks are the lines that a pull request changes: one to three places in each of
// one to three files. What was changed often is changed again.
func (g *generator) hunks() []hunk {
	var out []hunk
	zipf := rand.NewZipf(g.rng, 1.1, 4, uint64(len(g.files)-1))
	for range 1 + g.rng.IntN(3) {
		i := int(zipf.Uint64())
		f := &g.files[i]
		at := starts(f.Lines)
		for range 1 + g.rng.IntN(3) {
			from := at[int(rand.NewZipf(g.rng, 1.1, 3, uint64(len(at)-1)).Uint64())]
			h := hunk{i, from, min(len(f.Lines), from+10+g.rng.IntN(30))}
			if !slices.ContainsFunc(out, func(o hunk) bool { return o.file == h.file && o.from < h.to && h.from < o.to }) {
				out = append(out, h)
				if g.rng.Float64() < 0.5 {
					g.edit(h)
				}
			}
		}
	}
	return out
}

var name = lazyregexp.New(`\b[a-z]\w{3,}\b`)

// edit changes a line: a name in it gets another ending.
func (g *generator) edit(h hunk) {
	lines := g.files[h.file].Lines
	i := h.from + g.rng.IntN(h.to-h.from)
	if at := name.FindStringIndex(lines[i]); at != nil && !declaration.MatchString(lines[i]) && !g.isBroken(h.file, i) {
		lines[i] = lines[i][:at[1]] + []string{"New", "Next", "All", "Raw"}[g.rng.IntN(4)] + lines[i][at[1]:]
	}
}

func (g *generator) isBroken(file, line int) bool {
	return slices.ContainsFunc(g.broken, func(d defective) bool { return d.file == file && d.line == line })
}

// plant breaks a line, and has the reviewer find it.
func (g *generator) plant(h hunk, author int) (found, bool) {
	lines := g.files[h.file].Lines
	for _, k := range g.rng.Perm(len(defects)) {
		d := &defects[k]
		for i := range lines { // in the hunk first, else elsewhere in the file
			i = (h.from + i) % len(lines)
			broken := d.found.ReplaceAllString(lines[i], d.broken)
			if broken == lines[i] || strings.HasPrefix(strings.TrimSpace(lines[i]), "//") || g.isBroken(h.file, i) {
				continue
			}
			g.s.planted++
			b := defective{id: g.s.planted, file: h.file, line: i, before: lines[i]}
			lines[i] = broken
			f := found{Finding: pipeline.Finding{Severity: d.severity, Category: d.category, Message: d.message, File: g.files[h.file].Path,
				Line: i + 1, Code: broken, Confidence: g.confidence(true)}, rule: d.rule, planted: b.id, useful: true}
			f.Rule = g.named(&f)
			g.react(&f, author, true)
			if f.does == pipeline.SignalDismissed { // by mistake: it stays
				b.finding = f
				g.broken = append(g.broken, b)
			} else {
				lines[i] = b.before
			}
			return f, true
		}
	}
	return found{}, false
}

// lingering are true errors in files that are changed again, which a person had
// dismissed by mistake: the reviewer finds half of them again.
func (g *generator) lingering(hunks []hunk, author int) []found {
	var out []found
	for _, b := range g.broken {
		if slices.ContainsFunc(hunks, func(h hunk) bool { return h.file == b.file }) && g.rng.Float64() < 0.5 {
			f := b.finding
			g.react(&f, author, true)
			out = append(out, f)
		}
	}
	return out
}

// review finds what there is to say about the lines: most of what it said of the
// same lines before, it says again.
func (g *generator) review(hunks []hunk, author int) []found {
	type site struct {
		found
		score float64
	}
	var sites []site
	for k := range topics {
		t := &topics[k]
		var mine []site
		for _, h := range hunks {
			file := &g.files[h.file]
			if t.tests > 0 && !isTest(file.Path) || t.tests < 0 && isTest(file.Path) {
				continue
			}
			for i := h.from; i < h.to; i++ {
				m := t.match.FindStringSubmatch(file.Lines[i])
				if m == nil || g.isBroken(h.file, i) || t.without != nil && i > 0 && t.without.MatchString(file.Lines[i-1]) {
					continue
				}
				key := t.rule + "\x00" + file.Path + "\x00" + learn.CodeDigest(file.Lines[i])
				if g.gone[key] {
					continue
				}
				f := found{rule: t.rule, Finding: pipeline.Finding{Severity: t.severity, Category: t.category, File: file.Path, Line: i + 1, Code: file.Lines[i]}}
				f.Message = g.words(t, m[len(m)-1], key)
				if t.fix != "" {
					replacement := t.match.ReplaceAllString(file.Lines[i], t.fix)
					f.Fixable, f.Fix = true, &pipeline.Fix{Description: f.Message, Replacement: &replacement}
				}
				mine = append(mine, site{f, g.draw("score", key)})
			}
		}
		slices.SortStableFunc(mine, func(a, b site) int { return cmp.Compare(a.score, b.score) })
		sites = append(sites, mine[:min(2, len(mine))]...)
	}
	slices.SortStableFunc(sites, func(a, b site) int { return cmp.Compare(a.score, b.score) })
	var out []found
	for i := range min(len(sites), g.poisson(g.m.Findings)) {
		f := sites[i].found
		key := f.rule + "\x00" + f.File + "\x00" + learn.CodeDigest(f.Code)
		right := g.draw("false", key) >= g.m.False
		f.Confidence = g.confidence(right)
		f.Rule = g.named(&f)
		f.unliked, f.turned = g.disliked(&f)
		f.useful = right && !f.unliked
		g.react(&f, author, f.useful)
		if f.does == pipeline.SignalFixedByHuman || f.does == pipeline.SignalApplied || f.does == pipeline.SignalRewritten {
			g.gone[key] = true
		}
		out = append(out, f)
	}
	for range g.poisson(g.m.Alarms) {
		if f, ok := g.alarm(hunks); ok {
			g.react(&f, author, false)
			out = append(out, f)
		}
	}
	return out
}

// alarm is an error that is none.
func (g *generator) alarm(hunks []hunk) (found, bool) {
	for _, h := range hunks {
		file := &g.files[h.file]
		for _, k := range g.rng.Perm(len(defects)) {
			d := &defects[k]
			for i := h.from; i < h.to; i++ {
				if !d.found.MatchString(file.Lines[i]) || g.isBroken(h.file, i) {
					continue
				}
				f := found{rule: d.rule, Finding: pipeline.Finding{Severity: d.severity, Category: d.category, Message: d.message, File: file.Path,
					Line: i + 1, Code: file.Lines[i], Confidence: g.confidence(false)}}
				f.Rule = g.named(&f)
				return f, true
			}
		}
	}
	return found{}, false
}

// words are the message for a site: mostly those of the last time.
func (g *generator) words(t *topic, what, key string) string {
	k := int(g.draw("words", key) * float64(len(t.messages)))
	if g.rng.Float64() < g.m.Reworded {
		k = g.rng.IntN(len(t.messages))
	}
	if strings.Contains(t.messages[k], "%s") {
		return fmt.Sprintf(t.messages[k], what)
	}
	return t.messages[k]
}

func (g *generator) named(f *found) string {
	if g.draw("named", f.rule, f.File, f.Code) < g.m.Ruled {
		return f.rule
	}
	return ""
}

// confidence is normal around 0.65, half the distance over it when right, under it
// when wrong.
func (g *generator) confidence(right bool) float64 {
	const deviation = 0.12
	middle := 0.65 - g.m.Telling*deviation/2
	if right {
		middle = 0.65 + g.m.Telling*deviation/2
	}
	return math.Round(1000*max(0.05, min(0.99, middle+deviation*g.rng.NormFloat64()))) / 1000
}

// disliked reports whether the team does not want to hear it now, and whether it
// once did.
func (g *generator) disliked(f *found) (now, turned bool) {
	if g.m.Wordings > 0 && slices.Contains(unwantedWords[:g.m.Wordings], g.wording(f)) {
		return true, false
	}
	if g.m.Names > 0 && slices.ContainsFunc(name.FindAllString(f.Code, -1), func(w string) bool { return g.draw("name", w) < float64(g.m.Names)/40 }) {
		return true, false
	}
	if g.m.Weekly && int(g.at.Sub(began).Hours()/24/7)%2 == 1 {
		return false, false
	}
	turned = g.m.Change > 0 && g.share >= g.m.Change
	for i, t := range tastes[:g.m.Tastes] {
		if !(turned && i%2 == 1) && t.of(&f.Finding, f.rule, g.folder) {
			return true, false
		}
	}
	turned = turned && f.rule == "complexity"
	return turned, turned
}

// wording is the first word that a message begins with, of those that tell its ways apart.
func (g *generator) wording(f *found) string {
	w, _, _ := strings.Cut(f.Message, " ")
	return strings.ToLower(strings.Trim(w, ":,"))
}

// unwantedWords are how messages begin that teams do not want to hear.
var unwantedWords = []string{"add", "name", "this", "consider", "an", "wrap", "magic"}

// dislikedBy reports whether a person alone does not want to hear of a rule.
func (g *generator) dislikedBy(p person, rule string) bool {
	return g.m.Persons && g.draw("person", p.Login, rule) < 0.3
}

func (g *generator) answers(author int) person {
	if len(g.team) > 1 && g.rng.Float64() < g.m.OtherEyes {
		return g.team[(author+1+g.rng.IntN(len(g.team)-1))%len(g.team)]
	}
	return g.team[author]
}

func (g *generator) wait() time.Duration {
	if g.rng.Float64() < 0.03 {
		return 3 * time.Second // plainly wrong
	}
	return time.Minute + time.Duration(g.rng.ExpFloat64()*float64(4*time.Hour))
}

// react says what people do when they see a finding.
func (g *generator) react(f *found, author int, want bool) {
	f.by, f.after, f.does, f.text = g.answers(author), g.wait(), "", ""
	switch {
	case f.turned:
		f.cause = CauseChange
	case f.unliked:
		f.cause = CauseTaste
	case !want && f.Severity.Blocks():
		f.cause = CauseAlarm
	case !want:
		f.cause = CauseWrong
	default:
		f.cause = CauseMistake
	}
	if k := slices.Index(personal[:g.m.Personal], f.rule); k >= 0 && f.planted == 0 && f.by.ID == int64(k+2) {
		if want {
			f.cause = CausePersonal
		}
		want = false
	}
	if f.planted == 0 && !f.Severity.Blocks() && g.dislikedBy(f.by, f.rule) {
		if want {
			f.cause = CausePersonal
		}
		want, f.useful = false, false // to nobody else does it matter
	}
	if g.rng.Float64() < g.m.Mistakes {
		want = !want
	}
	if !f.Severity.Blocks() && g.m.Tidy > 0 && g.rng.Float64() < g.m.Tidy {
		f.by, f.does = g.team[0], silentClick // nobody looked: one person resolves all that is left, and merges
		if g.rng.Float64() < misread {
			f.does = silentMisread
		}
		return
	}
	quiet := !f.Severity.Blocks() && g.rng.Float64() < g.m.Quiet
	if want && !f.Severity.Blocks() && g.rng.Float64() < g.m.Elsewhere {
		f.does = silentClick
		return
	}
	switch {
	case !want:
		f.does = pipeline.SignalDismissed
		if g.rng.Float64() < g.m.Reasons {
			f.text = reasons[g.rng.IntN(len(reasons))]
		}
	case quiet && f.Fix != nil:
		f.does = pipeline.SignalIgnored
	case quiet:
	case f.Fix != nil && g.rng.Float64() < 0.6:
		f.does = pipeline.SignalApplied
	case f.Fix != nil:
		f.does, f.instead = pipeline.SignalRewritten, strings.Replace(*f.Fix.Replacement, "…", "as the team writes it", 1)
	default:
		f.does = pipeline.SignalFixedByHuman
	}
}

// poisson draws a count with this mean.
func (g *generator) poisson(mean float64) (n int) {
	limit := math.Exp(-mean)
	for p := g.rng.Float64(); p > limit; p *= g.rng.Float64() {
		n++
	}
	return n
}
