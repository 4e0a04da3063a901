package identity

import "math"

// subject is what a run's messages have in common. A word that many of them have
// says what the pull request is about, and little about one finding.
type subject struct {
	messages int
	in       map[uint32]int // how many messages have an item
	rarities []float64      // by that number
}

func newSubject() *subject { return &subject{in: map[uint32]int{}} }

func (s *subject) add(t *text) {
	s.messages, s.rarities = s.messages+1, nil
	for _, items := range t {
		for _, it := range items {
			s.in[it.id]++
		}
	}
}

// half is how many messages it takes for half of what they can say to be known.
const half = 16

// rarity is how much an item counts that so many messages have: 1 when there are
// no others.
func (s *subject) rarity(in int) float64 {
	return math.Log2((float64(s.messages) + 2*half) / (float64(in) + half))
}

// size is how much the run's messages say, 0 to 1.
func (s *subject) size() float64 { return float64(s.messages) / float64(s.messages+half) }

// weighed is a message with its items' weights in a run.
type weighed struct {
	views [views][]weight
	plain [views]float64 // sums
	rare  [views]float64
}

type weight struct {
	id          uint32
	plain, rare float64
}

func (s *subject) weigh(t *text) *weighed {
	for len(s.rarities) <= s.messages {
		s.rarities = append(s.rarities, s.rarity(len(s.rarities)))
	}
	w := &weighed{}
	for v, items := range t {
		list := make([]weight, len(items))
		for i, it := range items {
			list[i] = weight{it.id, it.u, it.u * s.rarities[s.in[it.id]]}
			w.plain[v] += list[i].plain
			w.rare[v] += list[i].rare
		}
		w.views[v] = list
	}
	return w
}

// shared sums what two messages have in common.
func shared(a, b []weight) (plain, rare float64) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i].id < b[k].id:
			i++
		case a[i].id > b[k].id:
			k++
		default:
			plain += a[i].plain
			rare += a[i].rare
			i, k = i+1, k+1
		}
	}
	return plain, rare
}

// The features by which two messages are compared.
const (
	fSense = iota
	fSenseRare
	fPlain
	fPlainRare
	fStemRare
	fGramRare
	fIdentApart
	fPartApart
	fNumberApart
	fOrderApart
	fFileApart
	fSize
)

// Features are what two messages are compared by: the names in model.json, and which way
// each may speak, whatever the pairs say that a model is fitted on; 0 is either.
var Features = [...]struct {
	Name string
	Sign int
}{
	{"sense", 1}, {"sense-rare", 1}, {"plain", 1}, {"plain-rare", 1}, {"stem-rare", 1}, {"gram-rare", 1},
	{"ident-apart", -1}, {"part-apart", -1}, {"number-apart", -1}, {"order-apart", -1}, {"file-apart", -1}, {"size", 0},
}

// few is added to how much two messages say before what they share is taken as a
// share of it: that of a few words is often chance.
const few = 3

// compare returns the features of two messages. Grams, the only ones that take long,
// are left out: see gram.
func (s *subject) compare(a, b *weighed) (f [len(Features)]float64) {
	share := func(v view) (plain, rare float64) {
		plain, rare = shared(a.views[v], b.views[v])
		return ratio(plain, math.Sqrt(a.plain[v]*b.plain[v])+few), ratio(rare, math.Sqrt(a.rare[v]*b.rare[v])+few)
	}
	f[fSense], f[fSenseRare] = share(vSense)
	f[fPlain], f[fPlainRare] = share(vPlain)
	_, f[fStemRare] = share(vStem)
	f[fIdentApart] = min(least(a, b, vIdent), 4)
	_, rare := shared(a.views[vPart], b.views[vPart])
	f[fPartApart] = against(a.rare[vPart]-rare, b.rare[vPart]-rare)
	for _, at := range []struct {
		v view
		f int
	}{{vNumber, fNumberApart}, {vOrder, fOrderApart}} {
		both, _ := shared(a.views[at.v], b.views[at.v])
		f[at.f] = against(a.plain[at.v]-both, b.plain[at.v]-both)
	}
	f[fFileApart] = min(least(a, b, vFile), 4)
	f[fSize] = s.size()
	return f
}

func gram(a, b *weighed) float64 {
	_, rare := shared(a.views[vGram], b.views[vGram])
	return ratio(rare, math.Sqrt(a.rare[vGram]*b.rare[vGram])+few)
}

// least is how much each of two messages has at least that the other has not.
func least(a, b *weighed, v view) float64 {
	both, _ := shared(a.views[v], b.views[v])
	return min(a.plain[v]-both, b.plain[v]-both)
}

// against is how much of what only one of two messages has stands against something
// that only the other has, 0 to 1.
func against(a, b float64) float64 { return 2 * max(min(a, b), 0) / (1 + max(a+b, 0)) }

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
