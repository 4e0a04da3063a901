package feedback

import (
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// Stance is what a person's words say about a finding.
type Stance int

// The stances. What nobody has read is None: it moves nothing.
const (
	None    Stance = iota
	Dismiss        // it is wrong, or not wanted
	Agree          // it is right, or was acted on
	Later          // it may be right, and is not for now
	Nothing        // of code at all: praise, thanks
)

// phrases are the messages that are read without a model: the whole message has to be one of
// them. What says more, or says it otherwise, is for the model.
var phrases = func() map[string]Stance {
	out := map[string]Stance{}
	for s, list := range map[Stance]string{
		Dismiss: `won't fix; wont fix; wontfix; will not fix; not a bug; this is not a bug; not an issue; false positive; this is a false positive;
			false alarm; by design; this is by design; intentional; this is intentional; works as designed; works as intended; not applicable;
			does not apply; not needed; out of scope; leave as is; leave it as is; i disagree; disagree`,
		Agree: `good catch; nice catch; great catch; good point; fair point; you are right; you're right; agreed; i agree; makes sense; fixed; done;
			will fix; will do; addressed`,
		Later:   `later; not now; in a follow-up; follow-up; next pr`,
		Nothing: `lgtm; looks good; looks good to me; nice; nice work; great; great work; thanks; thank you; thx; ok; okay; +1; 👍; :+1:; bump; same here`,
	} {
		for p := range strings.SplitSeq(list, ";") {
			out[strings.Join(strings.Fields(p), " ")] = s
		}
	}
	return out
}()

// toSpeaker are those that may be meant for whoever spoke before as well as for the finding.
var toSpeaker = map[string]bool{"disagree": true, "i disagree": true, "agreed": true, "i agree": true, "makes sense": true, "fair point": true, "good point": true,
	"you are right": true, "you're right": true}

// Read reads a whole message: case, spaces, marks around it and what is quoted in it do not
// matter.
func Read(body string) Stance { return phrases[plain(body)] }

// plain is a message as the phrases are written.
func plain(body string) string {
	s := strings.ToLower(strings.ReplaceAll(unquoted(body), "’", "'"))
	return strings.Join(strings.Fields(strings.Trim(strings.TrimSpace(s), "*_.!…。！")), " ")
}

// Idle reports whether a message asks for nothing: it is praise or thanks, or has no words.
func Idle(body string) bool { return Read(body) == Nothing || wordless(body) }

// wordless reports whether a message has no words but the names of people.
func wordless(body string) bool {
	for w := range strings.FieldsSeq(unquoted(body)) {
		if !strings.HasPrefix(w, "@") && strings.ContainsFunc(w, unicode.IsLetter) {
			return false
		}
	}
	return true
}

// asks reports whether a message is one question.
func asks(body string) bool {
	s := strings.TrimSpace(unquoted(body))
	head := strings.TrimRight(s, "?？")
	return head != s && head != "" && !strings.ContainsAny(head, ".!;。！；\n")
}

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

// machine are names of accounts that are of the type User, and of machines.
var machine = lazyregexp.New(`(?i)(?:^|[-_])(?:bot|robot|ci|automation|automerge|autobot|mergebot|buildbot|machine|svc|service-account|jenkins|dependabot|renovate|codecov|coveralls|sonarcloud|snyk|github-actions|semantic-release|copybara)(?:$|[-_])|\[bot\]$|(?:renovate|merge|codecov|release|lint|cla|stale)bot$`)

// Machine reports whether a login is that of a machine, as far as names tell: such
// accounts are users like others to GitHub.
func Machine(login string) bool { return machine.MatchString(login) }
