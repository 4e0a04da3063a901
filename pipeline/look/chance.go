package look

import (
	"regexp"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// What is drawn by chance, by language: numbers and kinds of generators, and bytes, whose
// length is none of chance's.
var (
	pyChance = newChance(`\b(?:random|secrets)\.(?:random|rand\w*|Random|SystemRandom|default_rng|uniform|choices?|sample|gauss|triangular|\w+variate|getrandbits|normal|integers)\(`+
		`|\b(?:random|randint|randrange|randbelow|randbits|getrandbits|uuid4)\(`,
		`\b(?:urandom|token_bytes|randbytes)\(`)
	jsChance = newChance(`\bMath\.random\(|\brandomInt\(|\b_\.random\(`, `\b(?:randomBytes|getRandomValues|randomFillSync)\(`)
	rsChance = newChance(`\b(?:random|random_bool|random_range|gen_bool|gen_range|random_ratio|gen_ratio)\b(?:::<[^>]*>)?\(`, `\b(?:getrandom|fill_bytes)\(`)
	goChance = newChance(`\b\w*rand\.(?:Int\w*|Uint\w*|Float\w+|N|NormFloat64|ExpFloat64|New)\(`, `\b\w*rand\.Read\(`)
)

// chance tells what a language draws by chance, and where that decides.
type chance struct{ drawn, bytes, decides *lazyregexp.Regexp }

func newChance(drawn, bytes string) *chance {
	return &chance{lazyregexp.New(drawn), lazyregexp.New(bytes), lazyregexp.New(deciding(`(?:` + drawn + `|` + bytes + `)` + inBrackets))}
}

// The rest of what an expression does with a value, and what comes before it. A call's
// brackets hold others, two deep.
const (
	inBrackets = `(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)`
	afterValue = `(?:\)|\[[^\]]*\]|\.\w+(?:\(` + inBrackets + `)?|\s*[%&*/+|-]\s*[\w.]+)*`
	toValue    = `(?:[\w.]+\s*[%*/+-]\s*|[\w.]*\()*(?:\w+\.)*`
)

// deciding is an expression for where a value decides: compared with something, or a condition by itself.
func deciding(value string) string {
	return value + afterValue + `\s*(?:[<>]=?(?:[^<>=-]|$)|[!=]==?|\bin\b|\?[^.?])` +
		`|[^=<>-](?:[<>]=?|[!=]==?)\s*` + toValue + value +
		`|(?:\b(?:if|elif|while|switch|match|case|and|not)\b|&&|!)[\s(!]*` + toValue + value
}

var (
	assigns = lazyregexp.New(`(\w+)(?:\s*,\s*\w+)?(?:\s*:\s*\w+)?\s*:?=\s*(?:await\s+)?` + toValue + `$`) // up to what is drawn
	filled  = lazyregexp.New(`^\s*(\w+)`)                                                                 // the bytes that a call fills
)

// maxApart is how many lines what is drawn may be away from what it decides.
const maxApart = 20

// decidesAt reports whether a branch or a comparison of a line is settled by a value that is drawn in it,
// or shortly before. Times to wait and names that are drawn decide nothing.
func (c *chance) decidesAt(lines []point.Line, at int) bool {
	if c == nil { // of this language it is not known
		return false
	}
	line := withoutProse(strings.TrimSpace(lines[at].Text))
	if c.decides.MatchString(line) {
		return true
	}
	for i := at; i >= 0 && i > at-maxApart && lines[at].Number-lines[i].Number < maxApart; i-- {
		before := lines[i].Text
		if m := c.drawn.FindStringIndex(before); m != nil {
			if name := assigns.FindStringSubmatch(before[:m[0]]); name != nil && decidedBy(line, name[1], "") {
				return true
			}
		}
		if m := c.bytes.FindStringIndex(before); m != nil {
			for _, name := range [][]string{assigns.FindStringSubmatch(before[:m[0]]), filled.FindStringSubmatch(before[m[1]:])} {
				if name != nil && decidedBy(line, name[1], `\[[^\]]*\]`) {
					return true
				}
			}
		}
	}
	return false
}

// decidedBy reports whether a variable decides in a line, or what is taken of it.
func decidedBy(line, name, of string) bool {
	return mentions(line, name) && regexp.MustCompile(deciding(`\b`+name+`\b`+of)).MatchString(line)
}
