package agent

import (
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// assents are words that agree, or carry a sentence, and say nothing of the code.
var assents = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`
a an and are as at be been but by can do does for from had has have i in is it its me my no not of on or our so that the their there they
this to was we were will with you your all any am if then now here just very really well too also already still yet than these those
ok okay okey oke k kk fine fixed fix fixes done agreed agree agrees agreeing accept accepted accepting good great nice right correct true
sure yes yep yeah ack acknowledged resolved resolve addressed handled closed close withdrawn withdraw withdrawing dismissed lgtm looks look
looking seems seem all clear cleared gone solved works working works valid invalid mistaken mistake wrong false positive problem problems
issue issues finding findings longer more anymore fair enough point dispute disputed implementer author reviewer reviewed change changed
changes code see above below reason reasons matter mind never nothing something everything thing things think believe convinced satisfied
after careful consideration considered considering whole context acceptable reasonable appropriate intended intentional deliberate design designed expected
expectation needs need needed required necessary elsewhere somewhere anywhere base codebase place places part parts other another way ways case cases case
overall general generally practice simply actually indeed because since both such same usual normal standard harmless irrelevant unimportant minor
ja gut erledigt behoben passt stimmt einverstanden oui bon d'accord fait regle si bueno vale listo hecho bien acuerdo sim feito certo da
`) {
		out[drawn(w)] = true
	}
	return out
}()

var reasonWord = lazyregexp.New(`[\p{L}\p{N}_]+`)

// givesReason reports whether the why of a withdrawal says something of the code: two
// words beyond those that only agree. Scripts that set no spaces are counted in letters.
func givesReason(why string) bool {
	words, letters := map[string]bool{}, map[rune]bool{}
	for _, w := range reasonWord.FindAllString(strings.ToLower(why), -1) {
		for _, r := range w {
			if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
				letters[r] = true
			}
		}
		spelled := drawn(w) // "okaaay", "fiiine"
		if !assents[spelled] && len(w) > 1 && strings.ContainsFunc(w, unicode.IsLetter) {
			words[spelled] = true
		}
	}
	if len(letters) > 0 {
		return len(letters) >= 6
	}
	return len(words) >= 2
}

// drawn is a word with each run of one letter as that letter once.
func drawn(w string) string {
	var b strings.Builder
	last := rune(-1)
	for _, r := range w {
		if r != last {
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}
