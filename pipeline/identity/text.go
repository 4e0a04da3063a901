package identity

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// view is one way to look at a message.
type view int

const (
	vStem   view = iota // words, without their endings
	vSense              // the same; words for one thing are one (senses.txt)
	vPlain              // senses of what is not code
	vGram               // four letters in a row
	vIdent              // identifiers as they are written
	vPart               // the words within identifiers
	vNumber             // numbers
	vOrder              // numbers with the one before
	vFile               // names of files
	views
)

// text is a message, made ready to be compared: what each view sees of it, sorted.
type text [views][]item

// item is something that a view sees: a hash of it, and how much it counts.
type item struct {
	id uint32
	u  float64
}

// maxMessage is where a message is cut, in bytes: what it is about has been said.
const maxMessage = 4000

// lexicon remembers what became of tokens: messages have many in common.
type lexicon map[string]*token

// token is a run of letters, digits and what identifiers have besides.
type token struct {
	name   string // as an identifier; "" when it says nothing as one
	number bool
	words  []lexeme
}

// lexeme is a word that says something.
type lexeme struct {
	stem, sense string
	grams       []item
}

// read reads a message.
func (l lexicon) read(s string) *text {
	if len(s) > maxMessage {
		s = s[:maxMessage]
	}
	r := &textReader{lexicon: l}
	for v := range r.t {
		r.t[v] = make([]item, 0, len(s)/8)
	}
	r.scan([]rune(s))
	for v := range r.t {
		r.t[v] = unique(r.t[v])
	}
	return &r.t
}

func (l lexicon) of(s []rune) *token {
	t := l[string(s)]
	if t == nil {
		t = look(string(s))
		l[string(s)] = t
	}
	return t
}

func look(s string) *token {
	t := &token{number: strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' }) < 0}
	if name := strings.ToLower(strings.Trim(s, "_$@")); len(name) > 1 && !stop[name] {
		t.name = name
	}
	for _, w := range parts(s) {
		if negation[w] {
			w = "not"
		}
		if stop[w] {
			continue
		}
		x := lexeme{stem: stem(w)}
		x.sense = cmp.Or(senses()[w], senses()[x.stem], x.stem)
		g := []rune("^" + w + "$")
		if len(g) > maxGrams { // digests and encoded data
			g = g[:maxGrams]
		}
		for i := 0; i+4 <= len(g); i++ {
			x.grams = append(x.grams, item{hash(vGram, string(g[i:i+4])), 1 / math.Sqrt(float64(len(g)-3))})
		}
		t.words = append(t.words, x)
	}
	return t
}

// unique sorts items and drops those that are there twice.
func unique(list []item) []item {
	slices.SortFunc(list, func(a, b item) int {
		switch {
		case a.id < b.id || a.id == b.id && a.u > b.u:
			return -1
		case a.id > b.id || a.u < b.u:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(list, func(a, b item) bool { return a.id == b.id })
}

type textReader struct {
	lexicon lexicon
	t       text
	number  string // the last one
}

func (r *textReader) add(v view, s string) { r.t[v] = append(r.t[v], item{hash(v, s), 1}) }

// hash is FNV-1a, so that a view's items differ from another's.
func hash(v view, s string) uint32 {
	const offset, prime = 2166136261, 16777619
	h := (uint32(offset) ^ uint32(v)) * prime
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * prime
	}
	return h
}

// scan reads a message's tokens: runs of letters, digits and what identifiers have
// besides.
func (r *textReader) scan(s []rune) {
	quoted := false // within backticks: code
	for i := 0; i < len(s); {
		if s[i] == '`' {
			quoted = !quoted
		}
		if !inToken(s[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(s) && (inToken(s[end]) || apostrophe(s, end)) {
			end++
		}
		r.token(s[i:end], quoted || isIdentifier(s, i, end))
		r.file(s, i, end)
		i = end
	}
}

func inToken(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_' || c == '$' || c == '@'
}

// apostrophe reports whether s[i] joins, as in "doesn't".
func apostrophe(s []rune, i int) bool {
	return (s[i] == '\'' || s[i] == '’') && i+1 < len(s) && (s[i+1] == 't' || s[i+1] == 's') && (i+2 == len(s) || !inToken(s[i+2]))
}

// isIdentifier reports whether a token is code by its looks: mixedCase, with an
// underscore, called, or with a dot to its left or right.
func isIdentifier(s []rune, from, to int) bool {
	lower := false
	for _, c := range s[from:to] {
		if c == '_' || c == '$' || c == '@' || lower && unicode.IsUpper(c) {
			return true
		}
		lower = lower || unicode.IsLower(c)
	}
	at := func(i int) rune {
		if i < 0 || i >= len(s) {
			return ' '
		}
		return s[i]
	}
	plural := at(to+1) == 's' && at(to+2) == ')' || at(to+1) == 'e' && at(to+2) == 's' && at(to+3) == ')' // "index(es)"
	called := at(to) == '(' && !unicode.IsSpace(at(to+1)) && to-from > 2 && !plural
	return called || at(to) == '.' && inToken(at(to+1)) && inToken(at(to+2)) || at(from-1) == '.' && inToken(at(from-2))
}

// token takes in one token.
func (r *textReader) token(s []rune, ident bool) {
	t := r.lexicon.of(s)
	if t.number {
		number := string(s)
		r.add(vNumber, number)
		if r.number != "" && r.number != number {
			r.add(vOrder, r.number+">"+number)
		}
		r.number = number
	}
	if ident && t.name != "" {
		r.add(vIdent, t.name)
	}
	for i := range t.words {
		x := &t.words[i]
		r.add(vStem, x.stem)
		r.add(vSense, x.sense)
		if ident {
			r.add(vPart, x.stem)
		} else {
			r.add(vPlain, x.sense)
		}
		r.t[vGram] = append(r.t[vGram], x.grams...)
	}
}

const maxGrams = 40

// file takes in the name of a file that ends with this token.
func (r *textReader) file(s []rune, from, to int) {
	if from == 0 || s[from-1] != '.' || !fileEndings[strings.ToLower(string(s[from:to]))] {
		return
	}
	start := from - 1
	for start > 0 && (inToken(s[start-1]) || s[start-1] == '.' || s[start-1] == '-') {
		start--
	}
	if start < from-1 {
		r.add(vFile, strings.ToLower(string(s[start:to])))
	}
}

// parts splits a token where its case changes, at digits and at underscores.
func parts(s string) []string {
	var out []string
	var b []rune
	flush := func() {
		if len(b) > 0 {
			out = append(out, strings.ToLower(string(b)))
			b = b[:0]
		}
	}
	runes := []rune(s)
	for i, c := range runes {
		switch {
		case c == '\'' || c == '’':
			continue
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			continue
		case i > 0 && unicode.IsUpper(c) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsUpper(runes[i-1])):
			flush()
		case len(b) > 0 && unicode.IsDigit(c) != unicode.IsDigit(b[len(b)-1]):
			flush()
		}
		b = append(b, c)
	}
	flush()
	return out
}

// endings of English words, longest first.
var endings = strings.Fields(`ationally izations iveness ization ational fulness ousness ibility ability ations ators ingly ation ities ments
	edly ator ness ment ings ions ical ally able ible ance ence ants ents ized izes ates ated ity ies ied ive ant ent ing ion ize ise ate ful ers ors
	er or ed es al ly s e y`)

// stem takes the ending off a word.
func stem(w string) string {
	if len(w) <= 3 || w[0] < 'a' || w[0] > 'z' {
		return w
	}
	for _, end := range endings {
		rest, ok := strings.CutSuffix(w, end)
		if !ok {
			continue
		}
		n := len(rest)
		switch {
		case end == "s" && rest[n-1] == 's':
			return w
		case n < 3 || n < 4 && len(end) > 3:
			continue
		case end == "s" && n > 4:
			return stem(rest)
		case n > 3 && rest[n-1] == rest[n-2] && !strings.ContainsRune("aeiouls", rune(rest[n-1])):
			return rest[:n-1] // "stopped"
		}
		return rest
	}
	return w
}

// stop are words that say nothing about a subject.
var stop = set(`a about after all also an and any are as at be because been before being but by can could did do does each else for from
	had has have here how i if in into is it its just like made make may might more most of off on one only or other our out over
	so some such than that the their them then there these they this those to too up us was we were what when where which
	while who why will with would you your s e g ie eg`)

var negation = set(`no not never cannot cant dont doesnt didnt isnt arent wasnt werent hasnt havent wont wouldnt shouldnt couldnt`)

var fileEndings = set(`c cc cpp cs css ejs erb es6 ex exs ftl go h hbs hpp html java js json jsx kt less md php prisma properties proto py rb rs
	scala scss sh sql svelte swift tf toml ts tsx vue xml yaml yml`)

func set(words string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}

//go:embed senses.txt
var sensesFile string

// senses are groups of words that reviewers use for one thing: of each word and
// its stem, the group's first word.
var senses = sync.OnceValue(func() map[string]string { return readSenses(sensesFile) })

func readSenses(file string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(file) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		for _, w := range words {
			for _, key := range []string{w, stem(w)} {
				if out[key] == "" {
					out[key] = "=" + words[0]
				}
			}
		}
	}
	return out
}
