package feedback

import (
	"strings"
	"testing"
)

// What an answer says about a finding: the stated phrases, plain negation, and
// nothing where it is not plain. Covers H1, lessons 3.
func TestStanceOf(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Stance{
		"Won't fix.": Dismiss,
		"won’t fix":  Dismiss,
		"wontfix":    Dismiss,
		"This is not a bug, the caller checks it.":       Dismiss,
		"This isn't a bug":                               Dismiss,
		"False positive: n is never negative here.":      Dismiss,
		"It's by design.":                                Dismiss,
		"That is intentional":                            Dismiss,
		"No, this is intended.":                          Dismiss,
		"I don't think this is a bug.":                   Dismiss,
		"Does not apply here":                            Dismiss,
		"doesn't apply":                                  Dismiss,
		"I disagree.":                                    Dismiss,
		"I don't agree.":                                 Dismiss,
		"Please ignore":                                  Dismiss,
		"Out of scope for this change.\n\nThanks!":       Dismiss,
		"> is this a bug?\n\nNot a bug.":                 Dismiss,
		"Leave it as is!":                                Dismiss,
		"This is not a false positive.":                  Agree,
		"this isn't by design":                           Agree,
		"That was never intended.":                       Agree,
		"I doubt that this is a false positive":          Agree,
		"Good catch, thanks.":                            Agree,
		"You're right":                                   Agree,
		"Will fix.":                                      Agree,
		"Fixed in abc123":                                Agree,
		"This is a bug.":                                 Agree,
		"Is this a false positive?":                      None,
		"Isn't it by design?":                            None,
		"Maybe a false positive.":                        None,
		"Not sure this is a false positive":              None,
		"If it is by design, say so in a comment.":       None,
		"By design, but you are right: we should fix it": None,
		"It might be intentional":                        None,
		"This could be a false positive":                 None,
		"Why?":                                           None,
		"Let me think about it.":                         None,
		"> won't fix\n\nWho says so?":                    None,
		"```\n// by design\n```":                         None,
		"See `not a bug`":                                None,
		"The design is nice":                             None,
		"":                                               None,
		"Not wontfix.":                                   Agree,
	} {
		if got := Read(body); got != want {
			t.Errorf("Read(%q) = %d, want %d", body, got, want)
		}
	}
}

// What people really write, in the languages that they write it in.
func TestReadMore(t *testing.T) {
	t.Parallel()
	for want, list := range map[Stance][]string{
		Dismiss: {
			"We don't do that here.", "we do not do that here", "Not worth it.", "This is handled by the caller.",
			"The caller already checks for nil.", "it's fine as is", "Overkill for a script.",
			"I'd rather not: it makes no difference.", "This can never be nil here.", "No need, thanks", "Nope.", "I prefer to keep it short",
			"Pre-existing, unrelated to this change.",
			"No es un bug, es a propósito.", "Não é necessário aqui.", "C’est voulu.", "Das ist Absicht.", "Ist so gewollt", "Так задумано",
			"не нужно", "这是误报", "不需要修改，设计如此。", "仕様です。", "意図的なものです。", "의도한 동작입니다.",
		},
		Agree: {
			"Done in the other file, thanks!", "I opened #99 for it", "Filed #12", "Fixed in abc1234.", "Good catch! Updated.", "Addressed",
			"Far from intentional.", "This is anything but a false positive", "这不是误报",
			"I've added a guard above.", "Moved this to a helper", "Makes sense", "I've added a check that it holds if n is 0.",
			"Tienes razón, corregido.", "Bien vu, c'est corrigé", "Behoben in abc", "Исправил, спасибо", "已修复", "修正しました！", "수정했습니다", "Boa observação, corrigido",
		},
		Later: {"Let's do that in a follow-up PR", "In the next PR.", "Another day: separate issue", "I'd rather keep this as is, and do it in a follow-up.",
			"后续处理"},
		None: {"@carol can you look?", "Why not use a map?", "¿Es a propósito?", "Quizás es intencional", "可能是误报？", "Hm",
			"I would like to see a test first.",
			// What was thought before, what others say, and a "but" behind it.
			"I used to think that this is intentional.", "He says it is by design.", "It was a false positive in the old code, but it is real now.",
			"Ich dachte, das ist Absicht.", "Creía que era un falso positivo", "Je croyais que c'était voulu.", "Achei que era falso positivo",
			"Я думал, что так задумано", "我以为是误报", "誤検知だと思った", "Either a false positive or a bug."},
	} {
		for _, body := range list {
			if got := Read(body); got != want {
				t.Errorf("Read(%q) = %d, want %d", body, got, want)
			}
		}
	}
}

// Covers H5: what says nothing about code teaches nothing about it.
func TestChatter(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"LGTM!": true, "Nice.": true, "": true, "Looks good to me :)": true, "> quoted": true, "thanks": true,
		"+1": true, ":+1:": true, "👍": true, "Done": true, "done, thanks!": true, "@carol can you look?": true,
		"@carol could you please take a look at this?": true, "bump": true, "ditto": true, "Same here": true,
		"PTAL @octo/team": true, "Will do": true,
		"This leaks the file handle.": false, "Nice, but this leaks the file handle when open fails": false, "Close it": false,
		"nit: rename this": false, "Same leak as above": false,
		"can you check for nil?": false, "please use a const": false, "this is slow": false, "no doc comment": false,
	} {
		if got := Chatter(body); got != want {
			t.Errorf("Chatter(%q) = %v, want %v", body, got, want)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	for login, want := range map[string]bool{
		"dependabot": true, "renovate-bot": true, "k8s-ci-robot": true, "acme-ci": true, "bot-acme": true, "mergebot": true, "x[bot]": true, "jenkins": true,
		"alice": false, "talbot": false, "abbot": false, "robotham": false, "cicero": false, "boss": false,
	} {
		if got := Machine(login); got != want {
			t.Errorf("Machine(%q) = %v, want %v", login, got, want)
		}
	}
}

// No phrase is both a refusal and a consent, and each is found by itself.
func TestPhrases(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]Stance{"dismiss": Dismiss, "agree": Agree, "deed": Agree, "later": Later} {
		for _, p := range table()[kind] {
			text := p.inside + strings.Join(p.words, " ")
			if got := Read(text); got != want {
				t.Errorf("Read(%q) = %d, want %d: %s", text, got, want, kind)
			}
		}
	}
}

func FuzzStanceOf(f *testing.F) {
	f.Add("Won't fix: by design, isn't it?")
	f.Add("> a\n```\nb\n")
	f.Add("n't BY design")
	f.Add("isn't it by design")
	f.Fuzz(func(t *testing.T, body string) {
		if s := Read(body); s != None && s == Read(body+" ?\nMaybe.\nWon't fix.\nGood catch.") {
			t.Errorf("Read(%q) with yes and no behind it is still %d", body, s)
		}
		Chatter(body)
	})
}
