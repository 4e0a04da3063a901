package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// Alone is the rule about words that come with a command which settles something, for the help.
const Alone = "What ends something or lets it pass (accept, approve, cancel, later, without, raise, reset) is done only when nothing else stands on its line. " +
	"Notes go below; those that ask, negate, set a condition, name the command or hold another one are asked about."

// Below is where a note goes in a comment.
const Below = "on the lines below"

// Doubt says why a command that settles something is not carried out with the words
// that came with it; "" when nothing speaks against it. Words on its line may turn it
// around in any language, so that none are taken there but its argument. A note below is
// taken unless it seems to take the command back: asking once more costs little. notes
// says where a note goes.
func (l Line) Doubt(slug, notes string) string {
	known := Find(l.Name)
	if !known.Settles {
		return ""
	}
	form, words := l.Name, strings.TrimSpace(l.Args)
	if first, rest := cutWord(words); known.Takes == TakesArgument || known.Takes == TakesAll && strings.EqualFold(first, "all") {
		form, words = l.Name+" "+first, rest
	}
	form = "`" + Write(slug, form) + "`"
	if strings.Trim(words, ".!") != "" {
		return fmt.Sprintf("Nothing was done: the line goes on after %s with %.100q, which may turn it around. If you mean it, write it alone; notes go %s.",
			form, words, notes)
	}
	if seen := TurnsAround(l.Name, slug, l.Text); seen != "" {
		return fmt.Sprintf("Nothing was done: the words that came with %s may take it back, because they %s. If you mean it, give it without them.", form, seen)
	}
	return ""
}

// cutWord splits a text behind its first word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// TurnsAround says by what a note seems to take the command back, to ask something, or
// to make it depend on something; "" for a plain one. What is quoted is not its writer's.
func TurnsAround(name, slug, note string) string {
	low := strings.ToLower(unquoted(note))
	first, _ := cutWord(slug)
	slash := "/" + cmp.Or(strings.ToLower(first), Slug)
	another := func(w string) bool { return strings.Trim(w, "`*_\"'(),.:;!") == slash }
	stem := strings.TrimSuffix(name, "e") // approving, raised
	switch {
	case strings.ContainsAny(low, "?？؟"):
		return "ask something"
	case slices.ContainsFunc(strings.Fields(low), another):
		return "hold another command"
	case strings.Contains(low, stem):
		return fmt.Sprintf("name it: %q", stem)
	}
	for _, w := range strings.FieldsFunc(low, func(r rune) bool { return r != '\'' && !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		if slices.Contains(against, w) || strings.HasSuffix(w, "n't") || slices.ContainsFunc(againstAs, func(p string) bool { return strings.HasPrefix(w, p) }) {
			return fmt.Sprintf("say %q", w)
		}
	}
	for _, w := range againstWithin {
		if strings.Contains(low, w) {
			return fmt.Sprintf("say %q", w)
		}
	}
	for _, r := range low {
		if unicode.IsLetter(r) && !unicode.In(r, read...) {
			return "are in a script whose words Forge does not know"
		}
	}
	return ""
}

// unquoted is a note without the lines that it quotes, with plain apostrophes.
func unquoted(note string) string {
	var own []string
	for l := range strings.Lines(note) {
		if t := strings.TrimSpace(l); !strings.HasPrefix(t, ">") {
			own = append(own, t)
		}
	}
	return strings.ReplaceAll(strings.Join(own, "\n"), "’", "'")
}

// Keeps says by what the reason for which something is to be forgotten, or a note below,
// seems to say that it is not; "" for plain ones. Reasons negate ("it does not hold any
// more"), so that a negation counts at their beginning alone, and there not when it says what
// is no more. A note is taken as that of another command is, except for what it says to be no more.
func Keeps(name, slug, reason, note string) string {
	low := strings.ReplaceAll(strings.ToLower(reason), "’", "'")
	first, _ := cutWord(slug)
	slash := "/" + cmp.Or(strings.ToLower(first), Slug)
	words := strings.FieldsFunc(low, func(r rune) bool { return r != '\'' && !unicode.IsLetter(r) && !unicode.IsMark(r) })
	switch {
	case strings.ContainsAny(low, "?？؟"):
		return "ask something"
	case strings.Contains(low, slash+" "):
		return "hold another command"
	case strings.Contains(low, name):
		return fmt.Sprintf("name it: %q", name)
	}
	for i, w := range words {
		denies := i == 0 && (slices.Contains(against, w) || strings.HasSuffix(w, "n't")) && (len(words) < 2 || !slices.Contains(anyMore, words[1]))
		if denies || slices.Contains(keeping, w) {
			return fmt.Sprintf("say %q", w)
		}
	}
	note = strings.ToLower(unquoted(note))
	if seen := TurnsAround(name, slug, noMore.ReplaceAllString(note, " ")); seen != "" {
		return seen
	}
	if m := retracting.FindString(note); m != "" {
		return fmt.Sprintf("say %q", strings.TrimSpace(m))
	}
	return ""
}

// noMore finds what a note says to hold no longer, which is a reason; retracting what takes
// something back, or is about another number.
var (
	noMore = lazyregexp.New(`\b(?:is|are|was|were|does|do|has|have)?\s?(?:not|n't|no) (?:longer|true|valid|used|needed|relevant|correct|right|wanted|any ?more|so|how)\b` +
		`|\b(?:not|\w+n't)\b[^.!;\n]{0,60}\bany ?more\b|\b(?:nicht|kein\w*)\b[^.!;\n]{0,40}\bmehr\b|\b(?:stimmt|gilt) nicht\b|\bn(?:e |')[^.!;\n]{0,40}\bplus\b` +
		`|\bya no\b|\bjá não\b|\bnão [^.!;\n]{0,40}\bmais\b|больше не|不再|已不|もう[^。\n]{0,30}(?:ない|ません)|더 ?이상[^.\n]{0,30}않`)
	retracting = lazyregexp.New(`\b(?:nope|nah|oops|sorry|unsure|mistyped|i mean\w*|meant|(?:wrong|other|different) (?:number|id|one|learning)s?` +
		`|keeps?|stays?|remains?|retain|behalten|bleibt|garde[rz]|conservar|mantener|manter)\b|保持|保留|留着|そのまま|残し|유지` +
		`|^\W*(?:(?:and|or|also|too|as well)\W+)*#?\d[\s\d,#&]*(?:(?:and|or|also|too|as well|instead)\W*)*$`)
)

// keeping are words by which something is to stay, anyMore those behind a negation which says
// that something holds no longer.
var (
	keeping = strings.Fields(`keep stay stays remain remains retain yet wait unless until behalten bleibt garder gardez conservar mantener manter`)
	anyMore = strings.Fields(`longer true valid used needed relevant correct right wanted any accurate so more mehr gültig wahr`)
)

// against are words that negate, make wait, or set a condition, in the languages whose
// script is among those that are read. A language with none here may slip through where
// it shares its script: that is why the line of the command takes no words at all.
var against = strings.Fields(`
	no not never nor none nobody nothing dont cannot cant wont shouldnt yet wait unless until till if when once only after before maybe perhaps hold stop undo
	soon long provided providing assuming supposing pending subject conditional condition conditions depends depending contingent case whenever later tomorrow first should must need needs
	nicht kein keine keinen keiner keinem nie niemals nein nichts niemand noch erst wenn falls sobald bevor bis nur sofern außer vielleicht halt stopp
	vorausgesetzt solange zuerst vorher soll sollte muss müsste braucht später morgen bedingung
	ne pas non jamais rien aucun aucune sauf si seulement quand avant après attends dès pourvu condition tant d'abord doit faut
	nunca jamás jamas nada nadie ninguno ninguna solo sólo cuando antes después todavía todavia aún tampoco quizás apenas pronto siempre condición primero debe falta
	não nao nem ninguém nenhum nenhuma se só somente quando depois ainda até talvez assim logo desde condição primeiro deve falta
	mai niente nessuno nessuna soltanto quando dopo ancora finché forse appena purché condizione prima deve
	niet geen nooit nee niets niemand indien tenzij voordat pas alleen totdat misschien zodra mits zolang eerst moet voorwaarde
	inte ej nej aldrig inget ingen endast innan kanske ikke nei aldri intet ingenting hvis når kun før måske kanskje
	ei eivät emme en älä älkää jos vasta ennen
	nie nigdy nic nikt jeśli jeżeli dopiero tylko ani bez není nikdy nic nikdo pokud jestli až
	nem nincs soha semmi ha csak amíg mielőtt nu niciodată niciodata dacă daca doar până
	nema nikad nikada ako samo dok
	değil yok hayır asla eğer etme etmeyin etmeyiniz önce sonra sadece
	tidak jangan bukan belum tunggu jika kalau
	không đừng chưa chờ nếu
	не нет ни никогда нельзя если пока только когда ні немає ніколи якщо поки лише няма ако само
	μη μην δεν δε όχι ποτέ αν εάν μόνο όταν
	لا لم لن ليس ما غير إذا لو قبل بعد فقط نه نیست هرگز اگر نکن نکنید
	לא אל אין בלי אם רק לפני אחרי עד
	नहीं मत न ना अगर यदि जब`)

// againstAs are beginnings of such words, where the languages inflect them.
var againstAs = strings.Fields(`n' jusqu wart abwart await attend attent esper aguard aspett wacht vänt vent odota czek poczek zaczek počk ček várj așteapt astept bekle
	подожд жд погод зачек чека почека περίμεν انتظر חכה`)

// againstWithin are such words of languages that write without spaces between words, or
// join them.
var againstWithin = strings.Fields(`不 没 沒 別 别 勿 未 无 無 等 如果 若 ない ません なく ずに まだ だめ ダメ 待 もし 않 안 못 말 아니 없 기다 만약 아직 ไม่ อย่า ยัง รอ ถ้า`)

// read are the scripts of these languages.
var read = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Devanagari,
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Common}
