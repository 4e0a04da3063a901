package agent

import (
	"strconv"
	"strings"
	"sync/atomic"
	"unicode"
)

// window is how much a model's context holds, as its server describes it, or says when it
// refuses a request: nobody has to know it before.
type window struct {
	params  atomic.Int64 // of the model, in millions; 0: not known
	tokens  atomic.Int64 // of prompt and answer together; 0: not known
	ceiling atomic.Int64 // the most output that a request may ask for; 0: not known
	heavier atomic.Int64 // percent by which prompts are larger than estimated
}

// leastLimit is the smallest number in a refusal that is taken for a limit, and leastRoom
// the smallest answer, in tokens, that is worth a request.
const (
	leastLimit  = 512
	leastRoom   = 512
	leastAnswer = 2048 // tokens; below that a tighter answer helps less than a shorter prompt
)

// learn reads a limit out of a refusal, and reports whether the request can be written so
// that it keeps to it.
func (w *window) learn(f *failure) bool {
	if f.kind != kindRequest && f.kind != kindTooLong {
		return false
	}
	if n := contextSaid(f.said); n > 0 {
		if w.tokens.Swap(n) != n {
			return true
		}
		// It was kept to, and the prompt is larger than it looks.
		if f.asked > 2*leastAnswer {
			w.ceiling.Store(int64(f.asked / 2))
			return true
		}
		return w.heavier.Add(15) <= 60
	}
	if n := outputSaid(f.said, int64(f.asked)); n > 0 {
		w.ceiling.Store(n)
		return true
	}
	return false
}

// prompt estimates the tokens of a request from its bytes.
func (w *window) prompt(bytes int) int64 { return tokens(bytes) * (100 + w.heavier.Load()) / 100 }

// size is how much the context holds: what the settings say, or what is known, whichever is
// less; 0: nobody knows.
func (w *window) size(req Request) int64 {
	all := w.tokens.Load()
	if set := int64(req.Context); set > 0 && (all == 0 || set < all) {
		return set
	}
	return all
}

// bound holds a request under the ceiling, and under what its prompt leaves of the window.
// ok is false where that is too little.
func (w *window) bound(req Request, bytes int) (out Request, ok bool) {
	most := w.ceiling.Load()
	if all := w.size(req); all > 0 {
		room := all - w.prompt(bytes) - all/64
		if room < leastRoom {
			return req, false
		}
		if most == 0 || room < most {
			most = room
		}
	}
	if most := int(most); most > 0 && req.MaxTokens+req.Reasoning > most {
		req.Reasoning = min(req.Reasoning, most/2)
		req.MaxTokens = min(req.MaxTokens, most-req.Reasoning)
	}
	return req, true
}

// contextSaid is the size of a model's context that a refusal names, 0 where it names none.
// The marks are those of OpenAI, vLLM, OpenRouter and DeepSeek (context length), of
// llama.cpp (n_ctx, context size), Gemini (tokens allowed) and Anthropic (N tokens > M
// maximum).
func contextSaid(said string) int64 {
	low := strings.ToLower(said)
	for _, mark := range []string{"n_ctx", "context length", "context window", "context size", "number of tokens allowed", "tokens >"} {
		_, after, ok := strings.Cut(low, mark)
		if !ok {
			continue
		}
		for _, n := range numbers(after[:min(len(after), 60)]) {
			if n >= leastLimit {
				return n
			}
		}
	}
	return 0
}

// outputSaid is the most output that may be asked for, as a refusal of more names it: the
// smallest number under what was asked for, in words about output.
func outputSaid(said string, asked int64) (least int64) {
	low := strings.ReplaceAll(strings.ToLower(said), "_", " ")
	about := false
	for _, words := range []string{"max tokens", "max output tokens", "max completion tokens", "maximum output tokens", "maximum tokens", "completion tokens", "output tokens", "maxtokens", "maxoutputtokens"} {
		about = about || strings.Contains(low, words)
	}
	if !about {
		return 0
	}
	for _, n := range numbers(said) {
		if n >= leastLimit && n < asked && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// numbers are the whole numbers in a text that stand alone: "32,768" is one, and "gpt-4"
// and "1.5" have none.
func numbers(s string) (out []int64) {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("()=:<>;\"'{}[]", r)
	}) {
		word = strings.TrimRight(word, ",.")
		if n, err := strconv.ParseInt(strings.ReplaceAll(word, ",", ""), 10, 64); err == nil && word != "" && unicode.IsDigit(rune(word[0])) {
			out = append(out, n)
		}
	}
	return out
}
