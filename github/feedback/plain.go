package feedback

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// questions are words with which a question begins that has lost its mark.
var questions = []string{"is", "are", "was", "were", "do", "does", "did", "can", "could", "should", "would", "ist", "sind", "est"}

// follows is where a reason begins without a word for it.
var follows = lazyregexp.New(`[:(—–：（]| - `)

// Plain reports whether an answer refuses a finding so that nothing else can be meant: each
// of its sentences is a refusal as a whole, a reason behind it aside, or chatter. What blocks
// passes by no other words: one may name a refusal and mean the opposite.
func Plain(body string) bool {
	plain := false
	for _, sentence := range sentences.FindAllString(spell(own(body)), -1) {
		switch {
		case len(words(sentence)) == 0:
		case strings.ContainsAny(sentence, "?？") || has(sentence, "hedge") || has(sentence, "contrast"):
			return false
		case refuses(sentence):
			plain = true
		case !Chatter(sentence) && !opens(words(sentence)):
			return false
		}
	}
	return plain
}

// refuses reports whether a sentence is a refusal, with or without a reason.
func refuses(sentence string) bool {
	head, why := sentence, ""
	if i := follows.FindStringIndex(sentence); i != nil {
		head, why = sentence[:i[0]], sentence[i[1]:]
	}
	found := false
	for clause := range strings.FieldsFuncSeq(head, func(c rune) bool { return strings.ContainsRune(",，、)）", c) }) {
		w, reason := beforeReason(words(clause))
		switch {
		case exact(w, clause):
			found = true
		case found && len(w) == 0: // no more than a reason
		case !opens(w) && !among(w, "trailer"):
			return false
		}
		why += " " + strings.Join(reason, " ")
	}
	agreed, _ := said(without(why, "dismiss"), "agree")
	_, turned := said(why, "dismiss")
	return found && !agreed && !turned && !has(why, "later")
}

// beforeReason cuts a clause where its reason begins.
func beforeReason(w []string) (head, reason []string) {
	cut := len(w)
	for _, p := range table()["reason"] {
		if i := at(w, p.words); i >= 0 {
			cut = min(cut, i)
		}
	}
	return w[:cut], w[cut:]
}

// endings is by how many letters more a clause may be longer than a refusal, in languages
// that put no spaces between words: what makes it polite, and a sentence.
const endings = 4

// exact reports whether words are one refusal, and else nothing that says something.
func exact(w []string, clause string) bool {
	if len(w) > 1 && slices.Contains(questions, w[0]) {
		return false
	}
	whole := strings.Join(words(clause), "")
	return slices.ContainsFunc(table()["dismiss"], func(p phrase) bool {
		if p.inside != "" {
			return strings.Contains(whole, p.inside) && !turnedInside(whole, p.inside) && len([]rune(whole)) <= len([]rune(p.inside))+endings
		}
		i := at(w, p.words)
		return i >= 0 && opens(w[:i]) && among(w[i+len(p.words):], "trailer")
	})
}

// opens reports whether words say nothing that a refusal could not follow.
func opens(w []string) bool { return among(w, "opener") }

func among(w []string, kind string) bool {
	return !slices.ContainsFunc(w, func(word string) bool {
		return !slices.ContainsFunc(table()[kind], func(p phrase) bool { return len(p.words) == 1 && p.words[0] == word })
	})
}
