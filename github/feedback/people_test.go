package feedback

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forge/pipeline"
)

// Covers H1, H7, lessons 28, 37: what people write to a remark, as a conversation, without a model.
// Nothing is read as the opposite of what it means, in words or beside a click; most of it is not
// read. A line is "who: words"; who is alice, unless another is named; "|" begins the next line.
func TestPeople(t *testing.T) {
	t.Parallel()
	who := map[string]pipeline.Actor{"alice": alice, "boss": boss, "carol": carol, "guest": guest}
	talks, refused := map[string]int{}, map[string]int{}
	for want, list := range map[string][]string{
		"dismissed": {
			"**False positive**", "Not a bug, a feature 😉", "Great, another false positive. Love this bot.", "wontfix, obsolete branch",
			"LGTM, not a bug", "That can't happen: the parser rejects it.", "No need to fix this.", "Not a bug, it is by design.",
			"Intentional and not a bug", "No, this is intended.", "By design we do not check here.", "It's \"by design\", see the RFC: works as designed.",
			"Ist Absicht, steht so in der Spezifikation.", "Passt so, danke!", "Das ist hier kein Problem.",
			"C'est voulu, voir la RFC.", "Faux positif, merci.", "Es intencional, así lo pide el cliente.", "No hace falta, ya lo valida el servidor.",
			"É de propósito, veja o README.", "Não se aplica aqui.", "仕様ですから。", "誤検知です。型で保証されています。", "这是误报，上面已经判断过了。", "不用改，设计如此",
			"Так задумано, см. README.", "의도한 동작이라 그대로두겠습니다.",
			"boss: By design.|Makes sense.", "boss: By design.|👍",
			"boss: Won't fix.|guest: But it crashes for me!", "Not an issue: it's a deliberate choice.",
			// what stands beside the refusal is another clause or sentence
			"Isso já é validado antes, não precisa.", "上面已经校验过了，不需要", "❌ false positive", "nah, YAGNI", "hard no: out of scope",
			"By design, documented in ADR 12.", "I'd leave it as is.", "False positive again.", "Ist so gewollt, steht im Kommentar.", "Voulu.",
			"Es a propósito.", "これは仕様です。", "误报，忽略", "Не баг, а фича", "boss: By design.|alice: Einverstanden.",
			"boss: 誤検知です。|alice: 承知しました。", "boss: Won't fix.|alice: D'accord, merci pour l'explication !",
			"boss: Falso positivo.|alice: vale, gracias", "boss: Faux positif.|alice: 👌", "boss: Won't fix.|alice: Understood.|guest: please reconsider",
			"boss: Not a bug.|@forge what do you think?",
		},
		"unsure": {
			"boss: Won't fix.|👎", "boss: Won't fix.|OK, but then document it.", "boss: By design.|Bei mir stürzt es ab.", "boss: 误报|线上已经崩了",
			"boss: False positive.|Wow, TIL. Is that written down somewhere?", "boss: By design.|Yeah, right.", "boss: By design.|Makes sense, said nobody ever.",
		},
		"": { // it agrees, asks, or says nothing
			"👍", "👎", "no.", "s/intentional/accidental/", "You call that good enough?", "won't fix? of course we will fix it.",
			"Wow, what a good catch, it only took three releases.", "I'd accept this PR only with this fixed.", "I wouldn't leave it as is.",
			"Never intended to be public, so yes, remove it.", "Passt so nicht.", "Bleibt so auf keinen Fall.", "問題ないとは言えません。", "Gewollt ist das nicht.", "Absicht war das jedenfalls keine.",
			"仕様ですか？", "boss: Can we drop this?|Yes.", "This is by no means intentional.",
		},
		"asked": {
			// Irony, and what is said to be the opposite.
			"Oh sure, 'by design'. The design is that it eats your data.", "“False positive”, my foot.", "This is fine. 🔥", "It's fine 🙃", "expected behavior, yeah right",
			"Can't happen in theory. Happened twice last week.", "Not a bug — a data loss.", "Not a bug, it's a catastrophe.", "Good enough for a demo, not for us.",
			"Ah bah bravo, « faux positif », et la prod est tombée.", "Sí, claro, \"intencional\"... seguro.", "Das ist kein Fehler, das ist eine Katastrophe.",
			"by design (bad design)", "Everyone says it can never be nil. It was nil yesterday.", "Not an issue until it is.",
			// What was so once, what it would lead to, and questions without a mark.
			"It was intended at first.", "Ignoring this will crash prod.", "忽略这个问题会导致崩溃。", "Why is this intentional", "Is it by design", "仕様ですかね", "谁说没问题的",
			"I don't think this is a bug, I know it is.", "This is non-intentional.", "+1 for the bot", "❤️ thx", "Не стоит это игнорировать.",
			// Struck, hidden, code, and other meanings of the same words.
			"~~false positive~~ hm, have a look", "Hm <!-- by design -->, hold on", "no bug report without a repro please", "Not a problem to change.",
			"没问题", "Kein Problem!", "Skip.", "NACK", "lol no", "I mean, technically yes, but who cares 🤷", "Duplicate of the one above.",
		},
		"no dismissal": { // a phrase of the table within another sentence; and refusals in words of no table
			"Hmm, works as expected on Linux. On Windows it hangs.", "We said won't fix in 2021, time to reconsider.", "Deliberate sabotage, or what 😂",
			"I deliberately broke it to see whether you notice. Well done.", "This is not how we do error handling, I will change it.",
			"That's not our style either, go ahead.", "I don't care who fixes it, but somebody must.", "Skipping this would hurt us later.",
			"Unnecessary here, removed the whole block.", "Irrelevant whether it's rare: data loss is data loss.",
			"The premise that the caller checks is wrong.", "I assumed that the caller checks it. It does not.",
			"It is handled upstream from v3 on, we are on v2.", "doesn't matter now, the PR gets rewritten",
			"No thanks to the intern who wrote this, you are right", "Wieso soll das Absicht sein", "Das war mal Absicht.", "Nicht nötig? Sehe ich anders.",
			"Unnötig kompliziert, ja.", "Da bleibt so einiges zu tun.", "Ce n'est plus voulu depuis la v2.", "Pas d'accord avec Bob, le bot voit juste.",
			"Volontaire ou pas, ça casse.", "A propósito, gracias por encontrarlo.", "No está bien así.", "Não está certo deixar assim.",
			"De propósito não foi.", "Вы правы, специально проверил: падает.", "不是误报吧",
			"保持现状的话会丢数据", "このままではまずいです。", "このままで大丈夫ですか",
			"仕様ですと言いたいところですが直します", "의도된 게 아닙니다", "TIL this was intentional?! wow",
			"intentional typo? lol", "boss: By design.|Then the design is wrong.", "boss: By design.|who designed this",
			"boss: Not needed.|Needed by the exporter, see #12.", "We're OK with the risk here, it runs once a year.", "That lock is held by the caller.",
			"Not going to touch this in a hotfix.", "The bot misread the regex.", "Brauchen wir nicht, der Aufrufer prüft das.", "Ce cas n'arrive jamais.",
			"Esto ya se valida antes.", "呼び出し側でチェック済みなので不要です",
			"нет смысла, вызывается один раз",
			"Oh nice, this explains the flaky test from Tuesday.", "boss: False positive.|Hmm, did you run it with -race? I get a report.",
			"Not a real problem yet, but let me add the check anyway.", "Will not change the signature, but I added the nil check you asked for.",
			"Fixed, although I think it was unnecessary.", "Out of scope — I filed PROJ-81 for it.", "Same bug bit us in v1, please don't ignore this.",
			"it's fine to change, go for it", "Works as designed is what they told the customer. Sigh.", "Stimmt, war nicht beabsichtigt.",
			"Kein Fehler im Code, aber die Doku lügt. Passe ich an.", "Absichtlich? Nee, Tippfehler.", "Bien vu, c'était pas voulu.",
			"Je laisse comme ça pour l'instant et j'ouvre un ticket.", "No es intencional, gracias.", "Não é de propósito, vou mudar.",
			"仕様ではありません、修正します。", "意図的ではないです", "不是故意的，我改一下", "这个不能忽略",
			"의도한 게 아니라 실수예요. 고칠게요.", "Это не специально, сейчас поправлю",
			"> This may leak the handle\n\nBy design? No way.", "```suggestion\nreturn nil // by design\n```", "👀", "🎉🎉",
			"boss: 不需要|好的，那我改一下测试", "alice: Not needed.|boss: It is, the importer panics.|alice: Oh right, good catch.",
			"alice: By design.|boss: Are you sure? See line 80.|alice: hm, you're right.",
		},
		"agreed": { // a click beside it is no dismissal
			"Nope, still broken on my machine.", "I'll own this one: false alarm on my side, the bug is real.", "~~by design~~ ok it's a bug",
			"Pas besoin de débattre, c'est un bug.", "Ce n'est pas la peine d'en parler plus, il faut corriger.", "No hace falta que te disculpes, es un error mío.",
			"Não precisa agradecer, já corrigi.", "Не надо было так делать, исправлю.", "没问题，马上改", "No need to thank me, fixed.", "Muss behoben werden, unnötig kompliziert ist es auch.",
			"False positive.|Wait, no. I was wrong.", "By design.|boss: It loses the order, see the log.|Scratch that.", "误报|看错了，抱歉", "Kein Bug.|Ich nehme das zurück.",
		},
	} {
		for _, talk := range list {
			replies := conversation(who, talk)
			got := made(t, replies, false)
			if talks[want]++; got == "dismissed" {
				refused[want]++
			}
			if got == "dismissed" && want != "dismissed" || want == "agreed" && made(t, replies, true) == "dismissed" {
				t.Errorf("%q: a dismissal, or one when it is resolved; it is %q", talk, want)
			}
		}
	}
	if refused["dismissed"] == 0 {
		t.Error("no refusal is read")
	}
	for label, n := range talks {
		t.Logf("%q: %d of %d read as refused", label, refused[label], n)
	}
}

func conversation(who map[string]pipeline.Actor, talk string) (out []Comment) {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for i, line := range strings.Split(talk, "|") {
		c := Comment{ID: int64(600 + i), Author: alice, Body: line, Created: at.Add(time.Duration(i) * time.Minute), Updated: at.Add(time.Duration(i) * time.Minute)}
		if name, words, ok := strings.Cut(line, ": "); ok && who[name].ID != 0 {
			c.Author, c.Body = who[name], words
		}
		out = append(out, c)
	}
	return out
}

// made says what is made of a conversation about a remark.
func made(t *testing.T, replies []Comment, resolved bool) string {
	th := forgeTalk("aaaa", replies...)
	th.Resolved, th.Resolver = resolved, alice
	g := tester(&Pull{State: "OPEN", Number: 8, Threads: []Thread{th}}, pipeline.Notice{})
	g.history.steps = []step{{sha: "c0", forge: true}}
	g.history.files["c0:retry.go"] = []string{"one", "two", "three", "	load(userTable)"}
	signals, err := g.finish(context.Background(), g.all)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, s := range signals {
		switch {
		case s.Kind == pipeline.SignalDismissed && s.Unsure:
			return "unsure"
		case s.Kind == pipeline.SignalDismissed:
			return "dismissed"
		case s.Kind == pipeline.SignalAnswered:
			out = "asked"
		default:
			out = fmt.Sprint(s.Kind)
		}
	}
	return out
}
