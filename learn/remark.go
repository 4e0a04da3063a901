package learn

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Words of remarks that ask for nothing: thanks, praise, that all is well, that one has
// learnt something, that nothing is to be done. And words by which something is asked for
// or wrong all the same: with one of these a remark is heard.
var (
	contentWith = lazyregexp.New(`(?i)\b(?:thanks?(?: you)?|thx|ty|kudos|nice(?:ly)?|great|lovely|neat|clever|cool|awesome|excellent|elegant|beautiful|well done|good (?:job|work|catch|call|idea|point|to know)|love (?:it|this|that)|i like|like this|looks? (?:good|fine|right|correct|ok(?:ay)?)|lgtm|` +
		`(?:is|it's|its|are|that's|this is) (?:all )?(?:correct|fine|good|right|ok(?:ay)?|perfect)|correct as|fine as|good as|right as|as it is|as intended|works? (?:fine|well|as)|` +
		`never ?mind|nvm|forget (?:it|this|that|about it)|(?:please )?(?:ignore|disregard)|my (?:mistake|bad)|i (?:was wrong|misread|misunderstood|see now|get it)|` +
		`(?:i )?learn(?:ed|t)|today i|til\b|interesting|did(?:n't| not) know|no (?:action|changes?|need|comments?|problem|worries|issue)|nothing to (?:do|change|add|fix|see)|all good|(?:auto-?)?generated|` +
		`danke|schön|passt so|alles gut|schon gut|vergiss es|merci|c'est bon|laisse tomber|gracias|está bien|olvídalo|obrigad[oa]|tudo bem|deixa para lá|grazie|va bene|спасибо|всё верно|dziękuję)(?:\b|$)|` +
		`ありがとう|勉強になり|問題ありません|谢谢|学到了|没问题|감사`)
	asksStill = lazyregexp.New(`(?i)\b(?:but|however|although|though|except|should(?:n't)?|must(?:n't)?|needs?|please (?:add|do|use|make|check|fix|move|rename|remove|change|keep|put|write|handle|test)|could|can you|would|why|what|how|where|` +
		`add|adds|remove|rename|replace|use|instead|move|handle|check|test|fix|missing|misses|lacks?|wrong|bug|error|fails?|failing|crash(?:es)?|panics?|leaks?|races?|breaks?|broken|never (?:do|use|call|log)|always|don't|do not|avoid|rather|better|prefer|` +
		`let's|unless|still|only|also|not|aber|sollte|muss|fehlt|bitte|mais|il faut|manque|pero|falta|debería|mas|deveria|но|нужно)\b|[?？]|应该|不要|請|请|ください|べき`)
	wasWrong = lazyregexp.New(`(?i)\b(?:false (?:positives?|alarms?)|not (?:a|an) (?:real )?(?:bug|issue|problem|error)|(?:is|are|was|that's|it's) (?:wrong|incorrect|not (?:true|right|correct|the case|possible))|` +
		`(?:can(?:not|'t| not)|does(?:n't| not)|not ever) happens?|is not ever (?:nil|null|zero|empty|negative)|invalid|misread|hallucinat\w+|already (?:done|checked|handled|validated|guarded)|(?:checked|handled|validated|guarded) (?:above|below|before|by|in|elsewhere)|` +
		`fehlalarm|faux positif|fals[oa] positiv[oa]|ложное срабатывание|fałszywy alarm)(?:\b|$)|誤検知|误报|誤報|오탐|^\s*(?:wrong|incorrect|nope?)\b`)
	notWanted = lazyregexp.New(`(?i)\b(?:want|wanted|need|needed|require[ds]?|won't|wont|will not|by design|on purpose|intentional(?:ly)?|deliberate(?:ly)?|noise|stop|ask(?:ing)?|rules?|style|never|nicht nötig|absicht|exprès|adrede|de propósito)\b`)
	notAsking = strings.NewReplacer("did not", "didnt", "didn't", "didnt", "no need", "noneed", "don't worry", "", "no problem", "", "do not edit", "", "not sure", "")
)

// reviewerErred reports whether the reason of a dismissal says no more than that the finding is
// wrong where it was made: what it asks for may be wanted elsewhere.
func reviewerErred(reason string) bool {
	reason = strings.ReplaceAll(strings.ToLower(reason), "’", "'")
	for _, p := range []string{"never happen", "is never"} {
		reason = strings.ReplaceAll(reason, p, strings.ReplaceAll(p, "never", "not ever"))
	}
	return wasWrong.MatchString(reason) && !notWanted.MatchString(reason)
}

// AsksForNothing reports whether a person's remark on code says that all is well, or nothing
// about it: nobody should look for anything because of it.
func AsksForNothing(remark string) bool {
	remark = notAsking.Replace(strings.ReplaceAll(strings.ToLower(remark), "’", "'"))
	if strings.Contains(remark, "```") {
		return false
	}
	heard := slices.Collect(advices(remark))
	return contentWith.MatchString(remark) && !asksStill.MatchString(remark) && len(heard) <= 4 && len(strings.Fields(remark)) <= 25
}
