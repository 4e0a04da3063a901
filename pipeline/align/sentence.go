package align

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// sentence is what facts are read from.
type sentence struct {
	text    string // as it is quoted
	low     string // in small letters
	heading string // that it stands under, in small letters
	scope
}

// scope says what a sentence is about, where it is not about all.
type scope struct {
	part  []string // parts of the product: "admin", "public"
	aside []string // what rules for the product do not hold for: "tests", "docs"
}

var (
	bullet = lazyregexp.New(`^\s*(?:[-*+]|\d{1,2}[.)]|>)\s+(?:\[[ xX]\]\s+)?`)
	ends   = lazyregexp.New(`[.!?;]["')]?\s+|[?!;.]["')]?$`)
	// weak is said of what is not there: examples, wishes, the past, doubts.
	weak = lazyregexp.New(`\b(?:for example|e\.g\.|for instance|one day|some day|could|might|maybe|perhaps|would|` +
		`in the future|used to|formerly|` +
		`previously|years ago|was dropped|were dropped|consider(?:ed)?|looked at|zum beispiel|z\. ?b\.|par exemple|` +
		`por ejemplo|könnte|eventuell|` +
		`pourrait|podría|not yet decided|to be decided|tbd|unlike|whether|today|nowadays|currently|right now|at the moment|so far|` +
		`before (?:the|this|that) change|complain\w*|too (?:slow|large|big|long|small)|once (?:we|it|they|all|the|every)|as soon as|` +
		`until \S+ (?:is|are) (?:gone|dropped)|out of scope|derzeit|heute|zurzeit|actuellement|actualmente)\b|^if |\bif we\b|^without `)
	plain   = strings.NewReplacer("*", " ", "`", " ") // emphasis, with all places kept
	noSplit = strings.NewReplacer("e.g. ", "e.g.\u00a0", "i.e. ", "i.e.\u00a0", "z. B. ", "z. B.\u00a0", "vs. ", "vs.\u00a0", "min. ", "min.\u00a0")

	partWords = lazyregexp.New(`\b(?:admin|internal|public|partner|mobile|legacy|webhooks?|cli|v1|v2|reports?|reporting|` +
		`nightly|background|batch|cron)\b`)
	asideWords = lazyregexp.New(`\b(?:(unit tests?|tests?|test suite|fixtures?|benchmarks?)|(docs|documentation|website)|` +
		`(ci|workflows?|pipeline)|` +
		`(examples?|demos?|samples?|prototypes?)|(scripts?|tools?|tooling)|(github|gitlab|stripe|slack|shopify|google|` +
		`vendors?|third[- ]party|their)(?:'s)?|` +
		`(cached?|caches|logs?|logging)|(nightly|background|batch|cron|cold start)|(dev|development|locally|staging))\b`)
	asides = []string{"", "tests", "docs", "ci", "examples", "tools", "others", "cache", "background", "development"}
)

// sentences cuts a text, with what the headings above say of them. Code blocks, questions
// and what is only thought of are left out.
func sentences(text string) []sentence {
	var out []sentence
	var para, heading string
	flush := func() {
		out = append(out, cut(para, heading)...)
		para = ""
	}
	code := false
	for line := range strings.Lines(text) {
		trim := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trim, "```") || strings.HasPrefix(trim, "~~~"):
			flush()
			code = !code
		case code:
		case trim == "":
			flush()
		case strings.HasPrefix(trim, "#"):
			flush()
			heading = strings.TrimSpace(strings.TrimLeft(trim, "#"))
		case strings.HasPrefix(trim, "|"): // a row of a table is a sentence
			flush()
			para = strings.Trim(trim, "| ")
			flush()
		case bullet.MatchString(line):
			flush()
			para = strings.TrimSpace(line[len(bullet.FindString(line)):])
		default:
			para = strings.TrimSpace(para + " " + trim)
		}
	}
	flush()
	return out
}

func cut(para, heading string) []sentence {
	para = noSplit.Replace(para)
	var out []sentence
	for para != "" {
		piece, question := para, false
		if at := ends.FindStringIndex(para); at != nil {
			piece, question = para[:at[0]], strings.HasPrefix(para[at[0]:], "?")
			para = para[at[1]:]
		} else {
			para = ""
		}
		piece = strings.TrimSpace(strings.ReplaceAll(piece, "\u00a0", " "))
		low := plain.Replace(strings.ToLower(piece))
		if piece == "" || question || weak.MatchString(low) || len(piece) > 600 {
			continue
		}
		out = append(out, sentence{text: piece, low: low, heading: strings.ToLower(heading), scope: scopeOf(low + " " + strings.ToLower(heading))})
	}
	return out
}

func scopeOf(low string) (s scope) {
	s.part = uniq(partWords.FindAllString(low, -1))
	for _, m := range asideWords.FindAllStringSubmatch(low, -1) {
		for i, word := range m[1:] {
			if word != "" {
				s.aside = append(s.aside, asides[i+1])
			}
		}
	}
	s.aside = uniq(s.aside)
	return s
}

func uniq(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// aligned reports whether two facts can be about the same: neither stands aside of what
// the other is about, and they are of no different parts.
func aligned(x, y *Fact) bool {
	return slices.Equal(x.aside, y.aside) && (len(x.part) == 0 || len(y.part) == 0 || meet(x.part, y.part))
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

var (
	denied = lazyregexp.New(`(?:\bno|\bnot|\bnever|n't|\bcannot|\bneither|\bnor|\bforbid\w*|\bavoid|\bno longer|` +
		`\bkein\w*|\bnicht|\bnie|\bjamais|\bpas de|\baucun\w*|\bnunca|\bsin)\b[^,;:()]{0,40}$`)
	gone = lazyregexp.New(`(?:\bwithout|\binstead of|\bin place of|\brather than|\bdrop(?:s|ped|ping)?|\bremov\w+|` +
		`\breplac\w+|\baway from|\b(?:migrate|move|port|switch|upgrade)\w* from|\bformer|\bold|\bohne|\bstatt|` +
		`\banstelle)\b[^,;:()]{0,40}$`)
	after = lazyregexp.New(`^[^,;]{0,25}\b(?:is|are|was|were|be)?\s*(?:not|never|no longer|n't|` +
		`nicht)\b[^,;]{0,12}(?:supported|allowed|used|option|permitted|wanted|needed|unterstützt|erlaubt)|` +
		`^[^,;]{0,20}\b(?:is|are) (?:out|forbidden|banned|gone|dropped|unsupported)\b|` +
		`^[^,;]{0,30}\b(?:cannot|can't|can not|must not|may not|shall not|will not|won't) be\b|^[^,;]{0,30}\bwould break\b|` +
		`^[^,;]{0,30}\b(?:is|are|gets?|was|were) (?:refused|rejected|avoided|replaced|removed|ruled out|deleted)\b|` +
		`^[^,;]{0,20}\b(?:wird|werden) (?:nicht|nie|kein\w*)\b|^[^,;]{0,20}\b(?:n'est|ne sont|n'es|no se)\b`)
	notOnly = lazyregexp.New(`\bnot (?:only|just)\b[^,;]*$`)
)

// said is what may follow a word and a dash without making another name of it.
var said = lazyregexp.New(`^-(?:based|backed|only|style|licensed|formatted|encoded|like|first|compatible|auth\w*|protected|cookies?|sessions?|tokens?)\b`)

// glued reports whether the word at [from, to) is part of a longer name: a package such as
// "eslint-plugin-node", an image such as "ghcr.io/acme/node", a file such as "yarn.lock".
func glued(low string, from, to int) bool {
	const glue = "/@-.:#"
	if from > 0 && strings.IndexByte(glue, low[from-1]) >= 0 {
		return true
	}
	return to+1 < len(low) && strings.IndexByte(glue, low[to]) >= 0 && low[to+1] >= 'a' && low[to+1] <= 'z' && !said.MatchString(low[to:])
}

// Stances to a word.
const (
	wanted = iota
	refused
	passing // it is named because it goes, or goes away
)

// stance says how a sentence stands to the word at [from, to).
func stance(low string, from, to int) int {
	before := low[:from]
	switch {
	case notOnly.MatchString(before):
		return wanted
	case gone.MatchString(before):
		return passing
	case denied.MatchString(before), after.MatchString(low[to:]):
		return refused
	}
	return wanted
}

var (
	word    = lazyregexp.New(`[\p{L}][\p{L}\d_]{2,}`)
	general = map[string]bool{}
	noWords = map[string]bool{}
)

func init() {
	for _, w := range strings.Fields(`request response page call endpoint api server service app application interface user query file latency duration budget`) {
		general[w] = true
	}
	for _, w := range strings.Fields(`p50 p90 p95 p99 the and for are with that this from into its must may can shall will should has have been all any each every when
		where what which who our their they within under below less than more most least about over after before take taken need answer answered
		appear return returned listen listening start started run running wait until limit limited maximum max minimum bound second minute hour
		millisecond port add use used grow grows reach exceed finish complete load render respond open
		using new get gets show shown keep stay allow allowed accept accepted module promise large big small size time
		fast quick slow the but not also then still only at least way work first want wants expected served serve it is in as by of on to up be so or an no`) {
		noWords[w] = true
	}
}

// subject returns the words of a sentence that say what it is about, without endings, and
// for each the one that follows at once.
func subject(low string) (words []string, next map[string]string) {
	next = map[string]string{}
	last, end := "", -2
	for _, at := range word.FindAllStringIndex(low, -1) {
		w := stem(low[at[0]:at[1]])
		if noWords[w] {
			continue
		}
		if at[0] == end+1 && !general[w] {
			next[last] = w
		}
		words = append(words, w)
		last, end = w, at[1]
	}
	return uniq(words), next
}

func stem(w string) string {
	if len(w) > 4 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
		return w[:len(w)-1]
	}
	return w
}

// sameSubject wants a word in common that says something; words such as "page" only count
// where one side has no better.
func sameSubject(x, y *Fact) bool {
	if !aligned(x, y) {
		return false
	}
	a, b := special(x.about), special(y.about)
	for _, w := range a {
		if slices.Contains(b, w) && !(x.next[w] != y.next[w] && (x.next[w] != "" || y.next[w] != "")) {
			return true // "search" is not "search suggestions"
		}
	}
	return (len(a) == 0 || len(b) == 0) && meet(x.about, y.about)
}

func special(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(w string) bool { return general[w] })
}
