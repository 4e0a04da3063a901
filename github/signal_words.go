package github

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"forge/github/delivery"
	"forge/github/render"
	"forge/pipeline"
	"forge/pipeline/text"
)

// stance is what a person's answer to a finding says about it.
type stance int

// The stances. What is not plain is stanceNone: silence is better than a guess.
const (
	stanceNone    stance = iota
	stanceDismiss        // the finding is wrong, or not wanted
	stanceAgree          // it is right
)

// dismissals are the phrases that refuse a finding. Contractions are spelt out
// before they are looked for ("won't" is "will not").
var dismissals = phrases(
	"will not fix", "wontfix", "wont fix", "not going to fix", "not fixing this",
	"not a bug", "no bug", "not an issue", "not an error", "not a problem", "non issue", "not a real issue", "not a real problem", "not wrong",
	"false positive", "false alarm",
	"by design", "on purpose", "intentional", "intentionally", "intended", "deliberate", "deliberately", "works as designed",
	"not applicable", "does not apply", "not relevant", "irrelevant", "out of scope",
	"not needed", "not necessary", "leave it as is", "leave as is", "leave this as is", "keep it as is", "keep as is", "keep this as is",
	"accepted risk", "acceptable risk", "i disagree", "ignore this", "please ignore", "ignoring this",
	"not think this is a bug", "not think it is a bug", "not think that is a bug", "not think this is a problem", "not think it is a problem",
	"not think this is an issue", "not think it is an issue", "not agree",
)

// agreements are the phrases that take a finding for right.
var agreements = phrases(
	"good catch", "nice catch", "great catch", "good find", "good point", "fair point", "you are right", "that is right", "agreed", "i agree",
	"will fix", "fixed", "fixing", "should fix", "need to fix", "needs fixing", "let us fix", "is a bug", "real bug", "valid", "done",
)

// hedges make a sentence no statement.
var hedges = phrases("if", "unless", "maybe", "perhaps", "might", "could be", "may be", "not sure", "unsure", "whether", "i wonder", "seems", "looks like", "would be")

// negations turn a phrase round when they stand shortly before it.
var negations = []string{"not", "never", "no", "hardly", "neither", "nor", "without", "isnt", "aint", "doubt"}

// reach is how many words before a phrase a negation counts.
const reach = 5

// praises are comments that point at nothing.
var praises = phrases("lgtm", "looks good", "looks good to me", "nice", "nice work", "great", "great work", "good", "good work", "thanks", "thank you", "cool", "awesome", "well done", "love it", "like it", "i like this")

func phrases(list ...string) [][]string {
	out := make([][]string, len(list))
	for i, p := range list {
		out[i] = strings.Fields(p)
	}
	return out
}

var (
	inline    = regexp.MustCompile("`[^`\n]*`")
	spelt     = strings.NewReplacer("’", "'", "won't", "will not", "can't", "can not", "cannot", "can not", "shan't", "shall not", "n't", " not", "'re", " are", "'s", " is", "'ll", " will", "'m", " am", "let's", "let us", "n/a", "not applicable")
	sentences = regexp.MustCompile(`[^.!?;\n]+[.!?;\n]*`)
)

// words are the words of a text in lower case.
func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) && c != '\'' })
}

// ownWords drops from a comment what is quoted, code, or hidden.
func ownWords(body string) string {
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
	return inline.ReplaceAllString(strings.Join(out, "\n"), " ")
}

// stanceOf reads what an answer says about the finding that it answers. A question,
// an "if", a double negation and a "yes and no" say nothing.
func stanceOf(body string) stance {
	text := spelt.Replace(strings.ToLower(strings.ReplaceAll(ownWords(body), "’", "'")))
	no, yes := false, false
	for _, sentence := range sentences.FindAllString(text, -1) {
		if strings.Contains(sentence, "?") || has(words(sentence), hedges) {
			continue
		}
		for clause := range strings.FieldsFuncSeq(sentence, func(c rune) bool { return c == ',' || c == ':' || c == '(' || c == ')' || c == '—' || c == '–' }) {
			w := words(clause)
			refused, turned := said(w, dismissals)
			no, yes = no || refused, yes || turned
			if agreed, _ := said(without(w, dismissals), agreements); agreed {
				yes = true
			}
		}
	}
	switch {
	case no && !yes:
		return stanceDismiss
	case yes && !no:
		return stanceAgree
	}
	return stanceNone
}

// said reports whether one of the phrases stands in the words, plainly, and
// whether one stands there negated.
func said(w []string, list [][]string) (plain, negated bool) {
	for _, p := range list {
		for i := 0; i+len(p) <= len(w); i++ {
			if !slices.Equal(w[i:i+len(p)], p) {
				continue
			}
			before := w[max(0, i-reach):i]
			if slices.ContainsFunc(before, func(x string) bool { return slices.Contains(negations, x) }) {
				negated = true
			} else {
				plain = true
			}
		}
	}
	return plain, negated
}

// without cuts the phrases out of the words, so that "not a bug" holds no "a bug".
func without(w []string, list [][]string) []string {
	out := slices.Clone(w)
	for _, p := range list {
		for i := 0; i+len(p) <= len(out); i++ {
			if slices.Equal(out[i:i+len(p)], p) {
				out = slices.Delete(out, i, i+len(p))
			}
		}
	}
	return out
}

func has(w []string, list [][]string) bool {
	plain, negated := said(w, list)
	return plain || negated
}

// praise reports whether a comment is nothing but praise.
func praise(body string) bool {
	w := words(ownWords(body))
	return len(w) == 0 || len(w) <= 6 && slices.ContainsFunc(praises, func(p []string) bool { return len(p) <= len(w) && slices.Equal(w[:len(p)], p) })
}

// answerOf reads a person's answer in a finding's conversation: a command, or
// words. reason is what to remember of it.
func answerOf(body, slug string) (s stance, reason string) {
	if c, ok := delivery.ParseCommand(body, slug); ok {
		if c.Name == "dismiss" {
			return stanceDismiss, c.Text
		}
		return stanceNone, ""
	}
	return stanceOf(body), strings.TrimSpace(body)
}

// maxReason limits what is kept of a person's words and code, in bytes.
const maxReason = 4000

func kept(words string) string {
	return render.Shorten(strings.TrimSpace(text.Scrub(words)), maxReason)
}

// asCode keeps the indentation.
func asCode(lines []string) string { return render.Shorten(strings.Join(lines, "\n"), maxReason) }

// weights is how much a person's word counts by their role (lessons 20). Everybody
// else's counts nothing.
var weights = map[string]float64{"admin": 1, "maintain": 1, "write": 0.8}

// weightHidden is the weight of a comment's being hidden: GitHub does not say by
// whom, only that it takes the role triage or more.
const weightHidden = 0.4

// silent are the reasons for hiding a comment that do not refuse what it says.
var silent = map[string]bool{"outdated": true, "resolved": true}

func nobody(a pipeline.Actor) bool { return a.ID == 0 }
