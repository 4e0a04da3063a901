package feedback

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// Stance is what a person's words say about a finding.
type Stance int

// The stances. What is not plain is None: silence is better than a guess.
const (
	None    Stance = iota
	Dismiss        // it is wrong, or not wanted
	Agree          // it is right, or was acted on
	Later          // it may be right, and is not for now
)

//go:embed words.txt
var wordsFile string

// table has the phrases of words.txt by what they say.
var table = sync.OnceValue(func() map[string][]phrase { return readTable(wordsFile) })

// phrase is a phrase as its words, or as a text that is looked for inside others.
type phrase struct {
	words  []string
	inside string
}

func readTable(file string) map[string][]phrase {
	out := map[string][]phrase{}
	kind := ""
	for line := range strings.Lines(file) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "["):
			kind, _, _ = strings.Cut(line[1:], " ")
		default:
			out[kind] = append(out[kind], newPhrase(line))
		}
	}
	for _, kind := range []string{"assent", "thanks", "beside"} {
		slices.SortStableFunc(out[kind], func(a, b phrase) int { return cmp.Compare(len(b.words)+len(b.inside), len(a.words)+len(a.inside)) })
	}
	return out
}

func newPhrase(s string) phrase {
	s = spell(s)
	if strings.ContainsFunc(s, unspaced) {
		return phrase{inside: squeeze(s)}
	}
	return phrase{words: words(s)}
}

// unspaced reports whether a letter is of a script that puts no spaces between words, or
// sets endings to them.
func unspaced(c rune) bool {
	return unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// reach is how many words before a phrase a negation counts.
const reach = 5

var (
	inline = lazyregexp.New("`[^`\n]*`|~~[^~\n]+~~|<!--.*?-->|\\bs/[^/\\s]+/[^/\\s]*/\\w*") // code, what is struck, hidden, or replaced
	theirs = lazyregexp.New(`"[^"\n]+"|“[^”\n]+”|„[^“”\n]+[“”]|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』` +
		`|(?:^|[\s(])'[^'\n]+'(?:[\s.,;:!?)]|$)`)
	spelt = strings.NewReplacer("’", "'", "won't", "will not", "can't", "can not", "cannot", "can not", "shan't", "shall not", "n't",
		" not", "'re", " are", "'s", " is", "'ll", " will", "'ve", " have", "'m", " am", "let's", "let us", "n/a", "not applicable")
	sentences = lazyregexp.New(`[^.!?;。！？；\n]+[.!?;。！？；\n]*`)
	mention   = lazyregexp.New(`@[\w-]+(?:/[\w-]+)?`)
	shortcode = lazyregexp.New(`:\+1:|👍|\+1`)
)

// spell writes contractions out, in lower case.
func spell(s string) string {
	return spelt.Replace(strings.ToLower(strings.ReplaceAll(s, "’", "'")))
}

// words are the words of a text in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) })
}

// own drops from a comment what is quoted, code, or hidden.
func own(body string) string { return inline.ReplaceAllString(unquoted(body), " ") }

// unquoted is a comment without what is quoted or hidden, and without blocks of code.
func unquoted(body string) string {
	var out []string
	fence := ""
	for l := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		t := strings.TrimSpace(l)
		switch {
		case fence != "":
			if strings.HasPrefix(t, fence) {
				fence = ""
			}
		case strings.HasPrefix(t, "```"), strings.HasPrefix(t, "~~~"):
			fence = t[:3]
		case strings.HasPrefix(t, ">"), strings.HasPrefix(t, "<!--"):
		default:
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// Read reads what an answer says about the finding that it answers. A question, an
// "if", a double negation, a "yes and no" and irony say nothing.
func Read(body string) Stance {
	switch no, yes, later := signs(body); {
	case no && !yes && !later && !ironic(body):
		return Dismiss
	case yes && !no:
		return Agree
	case later && !yes && !no:
		return Later
	case later && !yes && !ironic(body): // "rather not, in a follow-up"
		return Later
	}
	return None
}

// signs are what the sentences of an answer say: that the finding is wrong, right, or for later.
func signs(body string) (no, yes, later bool) {
	asked := false
	for _, sentence := range sentences.FindAllString(spell(theirs.ReplaceAllString(own(body), " ")), -1) {
		if strings.ContainsAny(sentence, "?？") || unmarked.MatchString(sentence) {
			asked = asked || has(sentence, "dismiss") // "Not needed? I see it otherwise."
			continue
		}
		turned := turns(sentence)
		hedged := turned || has(sentence, "hedge") || another(sentence)
		refused, denied := false, false
		for clause := range strings.FieldsFuncSeq(sentence, func(c rune) bool { return strings.ContainsRune(",:()—–，、：（）", c) }) {
			if hedged { // what was done is done, whatever may be
				yes = yes || deed(clause)
				if agreed, _ := said(without(clause, "dismiss"), "agree"); agreed && turned {
					no, yes = true, true // "by design, but you are right"
				}
				continue
			}
			plain, turned := said(clause, "dismiss")
			rest := without(clause, "dismiss")
			denied = denied || refused && !plain && strings.HasPrefix(strings.TrimSpace(clause), "not ") // "fine for a demo, not for us"
			refused, yes = refused || plain && whole(clause), yes || turned
			if agreed, _ := said(rest, "agree"); agreed || deed(rest) {
				yes = true
			}
			later = later || has(clause, "later")
		}
		no = no || refused && !denied
	}
	if no && asked { // "By design? Won't fix. Good catch."
		return false, false, later
	}
	return no, yes, later
}

// unmarked matches questions without a question mark.
var unmarked = lazyregexp.New(`^\W*(?:(?:but |and )?(?:why|how come|since when|warum|wieso|weshalb|pourquoi|por qu[eé]|почему)\b|` +
	`(?:is|was|are|were|does|did|should|could|would|can) (?:not )?(?:it|this|that|the|there|we|you|they|i)\b|do (?:not )?(?:we|you|they|i)\b)` +
	`|^\s*почему|なぜ|どうして|为什么|왜 |(?:です|ます|でしょう|ません)か[ねなぁ]?[。.…\s]*$`)

// contrasted is a refusal that says which other thing it is: "not a bug, it is a catastrophe".
// What it is instead is only harmless when it is one of these.
var (
	contrasted = lazyregexp.New(`(?:not an? (?:\w+ )?(?:bug|issue|error|problem)|kein(?:en?)? (?:bug|fehler|problem)|pas une? (?:bug|erreur|problème)` +
		`|no es un (?:bug|error|problema)|não é um (?:bug|erro|problema))\s*[,:;—–-]+\s*(?:but |sondern |mais |sino |mas )?` +
		`(?:it is |this is |that is |das ist |es ist |c'est |es |é )?(?:an?|eine?|une?|una|um|uma) (?:\pL+ )?(\pL+)`)
	harmless = strings.Fields(`feature choice decision tradeoff off convention requirement limitation simplification shortcut style preference matter question nit
		funktion entscheidung fonctionnalité choix característica decisión funcionalidade decisão`)
)

func another(sentence string) bool {
	m := contrasted.FindStringIndex(sentence)
	if m == nil {
		return false
	}
	if slices.ContainsFunc(words(sentence[m[0]:m[1]]), func(w string) bool { return slices.Contains(harmless, w) }) {
		return false
	}
	i := strings.IndexAny(sentence[m[0]:], ",:;—–-")
	again, _ := said(sentence[m[0]+i:], "dismiss")
	return !again
}

// ironic reports whether a comment is marked as meaning the opposite.
func ironic(body string) bool {
	said := own(body)
	return strings.ContainsAny(said, "🔥🙃🤡🙄🤦😏🤨😒💀") || has(spell(said), "irony")
}

// denying are signs that say no.
var denying = lazyregexp.New(`👎|:-1:|:thumbsdown:|❌|🚫`)

// retracts reports whether somebody takes back what they said.
func retracts(body string) bool { return has(spell(own(body)), "retract") }

// said reports whether one of the phrases of a kind stands in a clause, plainly, and
// whether one stands there negated.
func said(clause, kind string) (plain, negated bool) {
	w, whole := words(clause), squeeze(clause)
	for _, p := range table()[kind] {
		if p.inside != "" {
			turned := turnedInside(whole, p.inside)
			plain, negated = plain || !turned && strings.Contains(whole, p.inside), negated || turned
			continue
		}
		for i := 0; i+len(p.words) <= len(w); i++ {
			if !slices.Equal(w[i:i+len(p.words)], p.words) {
				continue
			}
			if negates(w[max(0, i-reach):i]) || behind(kind, w[i+len(p.words):]) {
				negated = true
			} else {
				plain = true
			}
		}
	}
	return plain, negated
}

// negates reports whether one of the words before a phrase turns it round.
func negates(before []string) bool {
	return slices.ContainsFunc(table()["negation"], func(p phrase) bool { return at(before, p.words) >= 0 })
}

// whole reports whether a clause says nothing but a refusal. What stands beside it may turn it
// round in more ways than a table can know: "works as expected on Linux", "das war mal Absicht".
func whole(clause string) bool {
	return cut(strings.Fields(without(clause, "dismiss")), "beside") == ""
}

// behind reports whether what follows a refusal turns it round: "Absicht ist das nicht".
func behind(kind string, after []string) bool {
	if kind != "dismiss" || len(after) == 0 {
		return false
	}
	rest := strings.Fields(cut(after, "dismiss"))
	return slices.ContainsFunc(rest, func(w string) bool { return slices.Contains(turning, w) }) ||
		len(rest) > 0 && slices.Contains([]string{"not", "never", "pas", "non"}, rest[len(rest)-1])
}

// turning are words that do so wherever they stand behind it.
var turning = strings.Fields("nicht keine keinen keines keinesfalls keineswegs niemals")

// turnedInside is negates for languages that put no spaces between words: a negation stands
// directly before a phrase, or behind it.
func turnedInside(whole, phrase string) bool {
	if !strings.Contains(whole, phrase) {
		return false
	}
	for _, n := range table()["negation"] {
		if n.inside != "" && (strings.Contains(whole, n.inside+phrase) || strings.Contains(whole, phrase+n.inside)) {
			return true
		}
	}
	return false
}

// at is where a phrase begins among words, -1: nowhere.
func at(w, p []string) int {
	for i := 0; len(p) > 0 && i+len(p) <= len(w); i++ {
		if slices.Equal(w[i:i+len(p)], p) {
			return i
		}
	}
	return -1
}

// turns reports whether a sentence goes on with a "but" after what it refuses: what it
// means in the end is in neither.
func turns(sentence string) bool {
	w, whole := words(sentence), squeeze(sentence)
	for _, p := range table()["contrast"] {
		before := ""
		if i := at(w, p.words); i > 0 {
			before = strings.Join(w[:i], " ")
		} else if head, _, ok := strings.Cut(whole, p.inside); ok && p.inside != "" {
			before = head
		}
		if before == "" {
			continue
		}
		if plain, _ := said(before, "dismiss"); plain {
			return true
		}
	}
	return false
}

func has(s, kind string) bool {
	plain, negated := said(s, kind)
	return plain || negated
}

// without cuts the phrases of a kind out of a clause, so that "not a bug" holds no "a
// bug". What separates words is lost.
func without(clause, kind string) string { return cut(words(clause), kind) }

func cut(w []string, kind string) string {
	for _, p := range table()[kind] {
		if p.inside != "" {
			w = words(strings.ReplaceAll(strings.Join(w, " "), p.inside, " "))
			continue
		}
		for i := at(w, p.words); i >= 0; i = at(w, p.words) {
			w = slices.Delete(slices.Clone(w), i, i+len(p.words))
		}
	}
	return strings.Join(w, " ")
}

// fillers may stand before what was done.
var fillers = []string{"i", "we", "have", "just", "now", "already", "also", "ok", "okay", "thanks", "thank", "you", "and", "yes", "yep",
	"has", "been", "it", "this", "is", "was"}

// deed reports whether a clause begins with what was done.
func deed(clause string) bool {
	w := words(clause)
	for len(w) > 0 && slices.Contains(fillers, w[0]) {
		w = w[1:]
	}
	return slices.ContainsFunc(table()["deed"], func(p phrase) bool {
		return len(p.words) > 0 && len(p.words) <= len(w) && slices.Equal(w[:len(p.words)], p.words)
	})
}

// Assents reports whether all that a comment says is that whoever it answers is right.
func Assents(body string) bool {
	plain := spell(shortcode.ReplaceAllString(mention.ReplaceAllString(own(body), " "), " yes "))
	if strings.ContainsAny(plain, "?？") || ironic(body) {
		return false
	}
	w, found := words(plain), false
	for _, kind := range []string{"assent", "thanks"} {
		for _, p := range table()[kind] { // the longer ones stand first
			if p.inside != "" {
				rest := squeeze(strings.Join(w, " "))
				if strings.Contains(rest, p.inside) {
					w, found = words(strings.ReplaceAll(rest, p.inside, " ")), found || kind == "assent"
				}
				continue
			}
			for i := at(w, p.words); i >= 0; i = at(w, p.words) {
				w, found = slices.Delete(slices.Clone(w), i, i+len(p.words)), found || kind == "assent"
			}
		}
	}
	return found && len(w) == 0
}

// praises are comments that point at nothing.
var praises = []string{"lgtm", "looks good", "looks good to me", "nice", "nice work", "great", "great work", "good", "good work", "thanks",
	"thank you", "cool", "awesome", "well done", "love it", "like it", "i like this"}

// Chatter reports whether a comment says nothing about code: praise, a "+1", a "done", a
// word to somebody.
func Chatter(body string) bool {
	plain := shortcode.ReplaceAllString(mention.ReplaceAllString(own(body), " "), " ")
	w := slices.DeleteFunc(words(spell(plain)), func(x string) bool { return x == "please" || x == "pls" })
	if len(w) == 0 {
		return true
	}
	if len(w) <= 6 && slices.ContainsFunc(praises, func(p string) bool { f := strings.Fields(p); return len(f) <= len(w) && slices.Equal(w[:len(f)], f) }) {
		return true
	}
	return len(squash(w)) == 0
}

// squash takes chatter off the words, and what is polite.
func squash(w []string) []string {
	polite := []string{"thanks", "thank", "you", "hey", "hi", "also", "and", "too", "here", "at", "it", "this", "that", "to", "done"}
	for changed := true; changed && len(w) > 0; {
		changed = false
		for _, p := range table()["chatter"] {
			for i := 0; len(p.words) > 0 && i+len(p.words) <= len(w); i++ {
				if slices.Equal(w[i:i+len(p.words)], p.words) && (len(p.words) > 1 || len(w) <= 3) {
					w, changed = slices.Delete(slices.Clone(w), i, i+len(p.words)), true
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(w), func(x string) bool { return slices.Contains(polite, x) })
}

// machine are names of accounts that are of the type User, and of machines.
var machine = lazyregexp.New(`(?i)(?:^|[-_])(?:bot|robot|ci|automation|automerge|autobot|mergebot|buildbot|machine|svc|service-account|jenkins|dependabot|renovate|codecov|coveralls|sonarcloud|snyk|github-actions|semantic-release|copybara)(?:$|[-_])|\[bot\]$|(?:renovate|merge|codecov|release|lint|cla|stale)bot$`)

// Machine reports whether a login is that of a machine, as far as names tell: such
// accounts are users like others to GitHub.
func Machine(login string) bool { return machine.MatchString(login) }
