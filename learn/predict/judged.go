package predict

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Comment is a review comment that people judged, on any repository.
type Comment struct {
	Valid    bool   `json:"valid"`
	Text     string `json:"text"`
	Path     string `json:"path"`
	Line     int    `json:"line"`
	End      int    `json:"end"`
	Category string `json:"category"`
	Context  string `json:"context"` // what a reader must know: the diff, the file, the repository
	By       string `json:"by"`      // who wrote it: a model, or "person"
	Language string `json:"language"`
	Pull     string `json:"pull"` // "owner/name/pull/number"
}

// Repo is the repository of the comment's pull request, without its owner: forks are the
// same.
func (c *Comment) Repo() string {
	parts := strings.Split(c.Pull, "/")
	return strings.ToLower(parts[min(1, len(parts)-1)])
}

// Figures are how well a model predicts the judgement on comments that it has not seen.
type Figures struct {
	AUC         float64 `json:"auc"`          // probability that a valid one is ranked over an invalid one
	Brier       float64 `json:"brier"`        //
	BaseBrier   float64 `json:"base_brier"`   // of saying the base rate of what the model was fitted on
	InvalidLess float64 `json:"invalid_less"` // share of the invalid ones that is held back
	ValidLost   float64 `json:"valid_lost"`   // share of the valid ones that is held back
}

// MeasureJudged predicts comments by what is learnt from train, with nothing of their own
// repository in it; without train, from the comments on the other repositories. Comments
// are held back where that was shown to be worth it on the training data, taken apart by
// repository (see shown); else none is.
func MeasureJudged(list, train []Comment) Figures {
	known, seen := examplesOf(list), []example(nil)
	if seen = examplesOf(train); len(train) == 0 {
		seen = known
	}
	byRepo := map[string][]int{}
	for i := range known {
		byRepo[known[i].repo] = append(byRepo[known[i].repo], i)
	}
	inTrain := map[string]bool{}
	for i := range seen {
		inTrain[seen[i].repo] = true
	}
	whole := judged{}
	p, base, held := make([]float64, len(list)), make([]float64, len(list)), make([]bool, len(list))
	for repo, rows := range byRepo {
		m := whole
		switch {
		case inTrain[repo]:
			m = newJudged(without(seen, repo))
		case m.g == nil:
			whole = newJudged(seen)
			m = whole
		}
		for _, i := range rows {
			p[i], base[i] = m.valid(&known[i]), m.base
			held[i] = p[i] < m.cut
		}
	}
	return figuresOf(list, p, base, held)
}

// example is a comment as the regression sees it.
type example struct {
	repo    string
	valid   bool
	effects []doubt // without the base rate
}

func examplesOf(list []Comment) []example {
	beside := map[string]int{}
	for i := range list {
		beside[list[i].Pull+"\x00"+list[i].Path]++
	}
	out := make([]example, len(list))
	for i := range list {
		c := &list[i]
		out[i] = example{c.Repo(), c.Valid, c.effects(beside[c.Pull+"\x00"+c.Path] - 1)}
	}
	return out
}

func without(list []example, repo string) []example {
	return slices.DeleteFunc(slices.Clone(list), func(c example) bool { return c.repo == repo })
}

func figuresOf(list []Comment, p, base []float64, held []bool) (f Figures) {
	var valid, invalid, lost, less float64
	for i := range list {
		y := 0.0
		if list[i].Valid {
			y = 1
			valid++
		} else {
			invalid++
		}
		f.Brier += (p[i] - y) * (p[i] - y) / float64(len(list))
		f.BaseBrier += (base[i] - y) * (base[i] - y) / float64(len(list))
		if held[i] {
			lost, less = lost+y, less+1-y
		}
	}
	f.AUC = ranked(list, p)
	if valid > 0 {
		f.ValidLost = lost / valid
	}
	if invalid > 0 {
		f.InvalidLess = less / invalid
	}
	return f
}

// ranked is the area under the curve of hits against false alarms; 0.5 when there is
// nothing to tell apart.
func ranked(list []Comment, p []float64) float64 {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	var ranks, valid float64
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && p[order[j]] == p[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			if list[k].Valid {
				ranks, valid = ranks+float64(i+j+1)/2, valid+1
			}
		}
		i = j
	}
	invalid := float64(len(list)) - valid
	if valid == 0 || invalid == 0 {
		return 0.5
	}
	return (ranks - valid*(valid+1)/2) / (valid * invalid)
}

// judged is a logistic regression of whether a comment is valid.
type judged struct {
	g    *logistic
	base float64
	cut  float64 // under it a comment is held back
}

// What is assumed of effects beforehand, chosen on the repositories that are not held out
// (figures.md).
const (
	judgedBaseSD   = 1.0
	judgedWriterSD = 0.4  // of who wrote it, its category, what it takes to see it, its language
	judgedFormSD   = 0.05 // of its form
	judgedWordSD   = 0.12 // of a word
	judgedPairSD   = 0.3  // of two words after each other
	judgedBothSD   = 0.3  // of a category in a language
	judgedRounds   = 60
	judgedFolds    = 5
	judgedLost     = 0.04 // share of the valid ones that may be held back: under what is wanted, because others differ
	judgedSure     = 1.64 // standard errors by which the gain must be over zero
)

func newJudged(train []example) judged {
	m := fitJudged(train)
	m.cut = shown(train)
	return m
}

func (m *judged) intercept() effect {
	return effect{name: "comments", mean: logit(m.base), sd: judgedBaseSD}
}

func fitJudged(train []example) judged {
	m := judged{g: &logistic{}}
	valid := 0.0
	for i := range train {
		if train[i].valid {
			valid++
		}
	}
	m.base = (valid + 1) / (float64(len(train)) + 2)
	weight, yes := make([]float64, len(train)), make([]float64, len(train))
	for i := range train {
		row := m.g.row()
		if weight[row] = 1; train[i].valid {
			yes[row] = 1
		}
		m.g.add(row, m.intercept(), 1)
		for _, e := range train[i].effects {
			m.g.add(row, e.effect, e.x)
		}
	}
	for range judgedRounds {
		if m.g.step(weight, yes) < fitEnough {
			break
		}
	}
	return m
}

func (m *judged) valid(c *example) float64 {
	eta, _ := m.g.of(m.intercept())
	for _, e := range c.effects {
		value, _ := m.g.of(e.effect)
		eta += value * e.x
	}
	return sigmoid(eta)
}

// shown returns the probability under which comments are held back, chosen on training
// data of which each repository is predicted by the others: the highest that loses at most
// judgedLost of the valid ones, and 0 where the predictions are not plainly better than
// the base rate.
func shown(train []example) float64 {
	var gain, valid []float64
	for k := range judgedFolds {
		var rest, rows []example
		for _, c := range train {
			if int(judgedFolds*draw(c.repo)) == k {
				rows = append(rows, c)
			} else {
				rest = append(rest, c)
			}
		}
		if len(rest) == 0 || len(rows) == 0 {
			continue
		}
		m := fitJudged(rest)
		for i := range rows {
			y, p := 0.0, m.valid(&rows[i])
			if rows[i].valid {
				y = 1
				valid = append(valid, p)
			}
			gain = append(gain, (m.base-y)*(m.base-y)-(p-y)*(p-y))
		}
	}
	if !surely(gain) || len(valid) == 0 {
		return 0
	}
	slices.Sort(valid)
	return valid[int(judgedLost*float64(len(valid)))]
}

// surely reports whether gains are over zero by more than chance.
func surely(gain []float64) bool {
	if len(gain) < 50 {
		return false
	}
	var mean, square float64
	for _, x := range gain {
		mean += x / float64(len(gain))
	}
	for _, x := range gain {
		square += (x - mean) * (x - mean)
	}
	return mean > judgedSure*math.Sqrt(square)/float64(len(gain))
}

var (
	hedging  = lazyregexp.New(`(?i)\b(?:may|might|could|possibly|potentially|perhaps|seems?|appears?|if)\b`)
	ordering = lazyregexp.New(`(?i)^\W*(?:add|use|remove|consider|avoid|replace|rename|check|move|extract)\b`)
	checking = lazyregexp.New(`(?i)\b(?:ensure|verify|make sure|double[- ]check|confirm)\b`)
	shownIn  = lazyregexp.New("(?s)```.*?```")
)

// effects are what is known of a comment. beside are the others on its file.
func (c *Comment) effects(beside int) (out []doubt) {
	kind := func(name string) { out = append(out, doubt{effect{name: name, mean: 0, sd: judgedWriterSD}, 1}) }
	kind("by " + c.By)
	kind("category " + c.Category)
	kind("context " + c.Context)
	kind("language " + c.Language)
	out = append(out, doubt{effect{name: "category " + c.Category + ", language " + c.Language, sd: judgedBothSD}, 1})
	form := func(name string, x float64) {
		if x != 0 {
			out = append(out, doubt{effect{name: name, mean: 0, sd: judgedFormSD}, x})
		}
	}
	is := func(ok bool) float64 {
		if ok {
			return 1
		}
		return 0
	}
	form("lines", math.Log1p(math.Abs(float64(c.End-c.Line)))-1)
	form("length", math.Log1p(float64(len(c.Text)))-5.5)
	form("hedges", min(3, float64(len(hedging.FindAllString(c.Text, -1)))))
	form("an order", is(ordering.MatchString(c.Text)))
	form("to be checked", is(checking.MatchString(c.Text)))
	form("a question", is(strings.Contains(c.Text, "?")))
	form("code is shown", is(strings.Contains(c.Text, "```")))
	form("code is named", is(strings.Contains(c.Text, "`")))
	form("in tests", is(testFile.MatchString(c.Path)))
	form("others on the file", math.Log1p(float64(beside)))
	plain := shownIn.ReplaceAllString(c.Text, " ")
	said := func(name string, list []string, sd float64) {
		scale := 1 / math.Sqrt(float64(max(4, len(list))))
		for _, w := range list {
			out = append(out, doubt{effect{name: name + w, mean: 0, sd: sd}, 4 * scale})
		}
	}
	said("word ", text.KeyWords(plain), judgedWordSD)
	said("words ", pairs(text.Words(plain)), judgedPairSD)
	return out
}

// pairs are the words of a text by two, each pair once.
func pairs(w []string) (out []string) {
	for i := range max(0, len(w)-1) {
		out = append(out, w[i]+" "+w[i+1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
