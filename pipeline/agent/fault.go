package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// kind says what went wrong with a call of a provider.
type kind string

const (
	kindUnreachable kind = "unreachable" // no connection
	kindSilent      kind = "silent"      // no answer within the time, or none that goes on
	kindBroken      kind = "broken"      // the answer broke off
	kindLimited     kind = "limited"     // the rate is limited
	kindOverloaded  kind = "overloaded"  // overloaded or down: 502, 503, 504, 529
	kindFailed      kind = "failed"      // an error of the provider's own: 500, 408, 409
	kindKey         kind = "key"         // the key is wrong
	kindPermission  kind = "permission"  // the key may not use the model
	kindModel       kind = "model"       // the model is not known
	kindCredit      kind = "credit"      // nothing is left to pay with
	kindURL         kind = "url"         // something else than a provider answers at the address
	kindTooLong     kind = "too_long"    // the request does not fit into the model's context
	kindRequest     kind = "request"     // the request was refused for another reason
	kindTools       kind = "tools"       // the server, or the model, cannot be given tools
	kindAnswer      kind = "answer"      // the answer cannot be read
)

// passes reports whether trying again later can help.
func (k kind) passes() bool {
	switch k {
	case kindUnreachable, kindSilent, kindBroken, kindLimited, kindOverloaded, kindFailed, kindAnswer:
		return true
	}
	return false
}

// away reports whether it says that the provider is away for everybody, and not
// only for this call.
func (k kind) away() bool {
	return k == kindUnreachable || k == kindLimited || k == kindOverloaded || k.servers()
}

// late reports whether it can happen after an answer has begun.
func (k kind) late() bool { return k == kindBroken || k == kindSilent || k == kindAnswer }

// servers reports whether it is the server's operator who has to act, for every run
// and every model of the provider: nobody at a run can, so that runs wait for it.
func (k kind) servers() bool { return k == kindKey || k == kindCredit || k == kindURL }

// operators reports whether it is the server's operator who has to act.
func (k kind) operators() bool {
	switch k {
	case kindKey, kindPermission, kindModel, kindCredit, kindURL, kindTools:
		return true
	}
	return false
}

// failure is a call that brought no answer that can be used.
type failure struct {
	kind    kind
	status  int           // of HTTP; 0: there was none
	said    string        // by the provider or the connection, without the key
	wait    time.Duration // that the provider asked for; 0: it did not say
	refused bool          // the provider says that the same request will not succeed
	asked   int           // tokens of output that the request let it have
	fault   *pipeline.Fault
}

// Error implements error.
func (f *failure) Error() string { return firstOf(faultText(f.fault), string(f.kind)+": "+f.said) }

func faultText(f *pipeline.Fault) string {
	if f == nil {
		return ""
	}
	return f.Error()
}

// Unwrap gives callers the *pipeline.Fault.
func (f *failure) Unwrap() error {
	if f.fault == nil {
		return nil
	}
	return f.fault
}

// ErrTooLong is in the chain of a model's error when the request does not fit into
// its context.
var ErrTooLong = errors.New("the request does not fit into the model's context")

// Is implements errors.Is for ErrTooLong.
func (f *failure) Is(target error) bool { return target == ErrTooLong && f.kind == kindTooLong }

// statusKind is what an HTTP status means; said is the provider's message with its
// codes.
func statusKind(status int, said string) kind {
	low := strings.ToLower(said)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == http.StatusUnauthorized:
		return kindKey
	case has("--jinja", "--enable-auto-tool-choice", "not support tools", "not support tool use", "not support function calling", "support tool use"):
		return kindTools
	case status == http.StatusTooManyRequests && has("retry in", "retrydelay"): // Gemini says that its quota is exceeded for a minute, too
		return kindLimited
	case status == http.StatusPaymentRequired, has("insufficient_quota", "credit balance", "billing_error", "exceeded your current quota"):
		return kindCredit
	case status == http.StatusForbidden:
		return kindPermission
	case status == http.StatusNotFound:
		return kindModel
	case status == http.StatusTooManyRequests:
		return kindLimited
	case status == http.StatusRequestEntityTooLarge,
		status == http.StatusBadRequest && has("context_length_exceeded", "prompt is too long", "maximum context length", "context window", "exceed_context_size", "input is too long"):
		return kindTooLong
	case status == http.StatusBadRequest && has("invalid_api_key", "api key not valid", "incorrect api key"):
		return kindKey
	case status == http.StatusBadRequest && has("model_not_found", "unknown model"):
		return kindModel
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusInternalServerError:
		return kindFailed
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented, status >= 300 && status < 400:
		return kindURL
	case status >= 500:
		return kindOverloaded
	}
	return kindRequest
}

// refusal reads an answer that is an error, or no answer of a provider at all.
func (e *endpoint) refusal(path string, a answer, now time.Time) *failure {
	f := &failure{status: a.status, refused: a.header.Get("X-Should-Retry") == "false", wait: retryAfter(a.header, now)}
	said, ok := errorMessage(a.body)
	f.kind, f.said = statusKind(a.status, said), said
	if f.kind == kindCredit && f.wait > 0 {
		f.kind = kindLimited
	}
	if f.kind == kindLimited && f.wait == 0 {
		f.wait = retryDelay(a.body)
	}
	html := strings.HasPrefix(strings.TrimSpace(strings.ToLower(string(a.body[:min(len(a.body), 100)]))), "<")
	switch {
	case html && !f.kind.passes(), !ok && f.kind == kindModel, f.kind == kindURL:
		f.kind, f.said = kindURL, e.elsewhere(path, a, html)
	case html:
		f.said = "" // a gateway's page
	}
	return f
}

// elsewhere says what answers at an address that is not a provider's.
func (e *endpoint) elsewhere(path string, a answer, html bool) string {
	what := fmt.Sprintf("answered %d, and not as a provider does", a.status)
	switch to := a.header.Get("Location"); {
	case a.status >= 300 && a.status < 400 && to != "":
		what = fmt.Sprintf("answered %d and sends elsewhere", a.status)
	case html:
		what = fmt.Sprintf("answered with a web page (%d)", a.status)
	}
	return fmt.Sprintf("%s %s", e.at(path), what)
}

// errorMessage is what an error's body says, its codes included. ok is false for
// what no provider would write.
func errorMessage(body []byte) (said string, ok bool) {
	var in struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(unlisted(body), &in) != nil {
		return "", false
	}
	var one struct {
		Type    string `json:"type"`
		Code    any    `json:"code"`
		Message string `json:"message"`
		Context int    `json:"n_ctx"` // of llama.cpp
	}
	var text string
	switch {
	case json.Unmarshal(in.Error, &one) == nil:
		code := ""
		if one.Code != nil {
			code = fmt.Sprint(one.Code)
		}
		if one.Context > 0 {
			one.Message += fmt.Sprintf(" n_ctx: %d", one.Context)
		}
		return join3(one.Message, one.Type, code), true
	case json.Unmarshal(in.Error, &text) == nil, json.Unmarshal(in.Detail, &text) == nil:
		return text, true
	}
	return in.Message, in.Message != ""
}

// join3 is a message with the codes that say more than it does.
func join3(message, kind, code string) string {
	extra := ""
	for _, c := range []string{kind, code} {
		if c != "" && !strings.Contains(extra+message, c) {
			extra = strings.TrimPrefix(extra+", "+c, ", ")
		}
	}
	switch {
	case message == "":
		return extra
	case extra == "":
		return message
	}
	return message + " (" + extra + ")"
}

// maxRetryAfter caps what a provider may ask for: so long runs wait until a human is asked.
const maxRetryAfter = 2 * time.Hour

// retryAfter is how long the provider asks to wait: a number of seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	wait := time.Duration(0)
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 {
		wait = time.Duration(min(ms*float64(time.Millisecond), float64(maxRetryAfter)))
	} else if v := h.Get("Retry-After"); v != "" {
		if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 {
			wait = time.Duration(min(s*float64(time.Second), float64(maxRetryAfter)))
		} else if at, err := http.ParseTime(v); err == nil {
			wait = at.Sub(now)
		}
	}
	return max(0, min(wait, maxRetryAfter))
}

// retryDelay is how long Gemini asks to wait, which it says in the body.
func retryDelay(body []byte) time.Duration {
	var in struct {
		Error struct {
			Details []struct {
				Delay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	_ = json.Unmarshal(unlisted(body), &in) // another form names none
	for _, d := range in.Error.Details {
		if wait, err := time.ParseDuration(d.Delay); err == nil {
			return max(0, min(wait, maxRetryAfter))
		}
	}
	return 0
}

// unlisted is an error's body, which Gemini writes as a list of one.
func unlisted(body []byte) []byte {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		return list[0]
	}
	return body
}

// describe makes a failure a fault for people: what, where, how to mend it.
func (f *failure) describe(e *endpoint, model string) *failure {
	told := *f // how the request is to be written is read from the whole text
	told.said = redact(f.said, e.key)
	f.fault = &pipeline.Fault{Class: pipeline.FaultProvider, Message: e.message(&told, model), Public: told.public(), Final: !f.kind.passes(), Service: e.service(f.kind, model)}
	return f
}

// service is what a wait for a failure is for, as Providers.Answered takes it.
func (e *endpoint) service(k kind, model string) string {
	name := strings.ToLower(e.provider)
	if k == kindModel || k == kindPermission {
		return name + "/" + model
	}
	return name
}

func (e *endpoint) message(f *failure, model string) string {
	p, said := e.provider, ": "+f.said
	if f.said == "" {
		said = ""
	}
	if f.wait >= maxRetryAfter {
		said += fmt.Sprintf(" (it names a time of %s or more: it is asked again after that)", maxRetryAfter)
	}
	switch f.kind {
	case kindKey: // what the provider says may hold the key
		return fmt.Sprintf("%s refused the API key (%d, %s); check the key in the server's settings", p, f.status, e.at(""))
	case kindPermission:
		return fmt.Sprintf("%s does not let this API key use %s (%d); choose another model or key", p, model, f.status)
	case kindModel:
		return fmt.Sprintf("%s does not know the model %s (%d, %s); correct models in the settings%s", p, model, f.status, e.at(""), said)
	case kindCredit:
		if strings.Contains(strings.ToLower(f.said), "quota") {
			return fmt.Sprintf("%s says that the quota is used up (%d); raise the account's limit, or check its credit%s", p, f.status, said)
		}
		return fmt.Sprintf("%s wants to be paid (%d); check the account's credit%s", p, f.status, said)
	case kindURL:
		return fmt.Sprintf("%s; set %s to the address of %s's API (of a compatible server it usually ends in /v1)", f.said, e.setting, p)
	case kindLimited:
		return fmt.Sprintf("%s limits the rate (%d, %s); it is tried again later%s", p, f.status, model, said)
	case kindOverloaded, kindFailed:
		return fmt.Sprintf("%s is overloaded or down (%d, %s); it is tried again later%s", p, f.status, model, said)
	case kindTooLong:
		return fmt.Sprintf("the request is too long for %s of %s; let the server's context be longer (llama.cpp: --ctx-size, vLLM: --max-model-len, Ollama: OLLAMA_CONTEXT_LENGTH), or choose another model%s", model, p, said)
	case kindTools:
		return fmt.Sprintf("%s does not let %s call tools (%d); start llama.cpp's server with --jinja, vLLM with --enable-auto-tool-choice and --tool-call-parser, or choose a model that calls tools%s. %s", p, model, f.status, said, byPlain(strings.ToLower(p)+"/"+model))
	case kindUnreachable:
		return fmt.Sprintf("%s could not be reached at %s (%s)%s", p, e.at(""), model, said)
	case kindSilent:
		return fmt.Sprintf("%s %s (%s, %s)", p, f.said, model, e.at(""))
	case kindBroken:
		return fmt.Sprintf("%s's answer broke off (%s)%s", p, model, said)
	case kindAnswer:
		return fmt.Sprintf("%s's answer cannot be read (%s, %s)%s", p, model, e.at(""), said)
	}
	return fmt.Sprintf("%s refused the request (%d, %s)%s", p, f.status, model, said)
}

// public says what happened to people who do not run the server: nothing of its
// addresses, settings and accounts.
func (f *failure) public() string {
	what := map[kind]string{
		kindUnreachable: "could not be reached", kindSilent: "did not answer in time", kindBroken: "broke off its answer",
		kindLimited: "limits the rate", kindOverloaded: "is overloaded or down", kindFailed: "is overloaded or down",
		kindKey: "refuses the server's key", kindPermission: "does not let the server use this model", kindModel: "does not know the model",
		kindCredit: "wants to be paid", kindURL: "answered with an error page", kindTooLong: "finds the request too long for this model",
		kindAnswer: "answered what cannot be read", kindTools: "does not let this model call tools",
	}[f.kind]
	if what == "" {
		what = "refused the request"
	}
	status := ""
	if f.status > 0 {
		status = fmt.Sprintf(" (%d)", f.status)
	}
	return "the model's provider " + what + status + f.reason() + "; the operator has been told"
}

// inward is what a provider's words may hold of the server that asked it: addresses and accounts.
var inward = lazyregexp.New(`\b\w+://\S+|\b\d{1,3}(?:\.\d{1,3}){3}\S*|\[?[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){3,}\]?\S*|\b[\w.-]+:\d{2,5}\b\S*|\S+@\S+|\b(?:org|proj|acct|req|sk|key)[-_]\S+|(?:^|\s)[/~][\w./-]+`)

// reason is what the provider says of a request that it refused, for people who may know what to do about that.
func (f *failure) reason() string {
	if f.kind != kindRequest && f.kind != kindTooLong || f.said == "" {
		return ""
	}
	return fmt.Sprintf(", and says %q", text.Clip(strings.TrimSpace(inward.ReplaceAllString(text.OneLine(f.said), " …")), 160))
}

// leastKey is the length, in bytes, of the shortest key that is looked for in texts.
const leastKey = 8

// redact makes what a provider said fit for people: in one line, short, without the
// key that was used and what else looks like a credential.
func redact(s, key string) string {
	if len(key) >= leastKey { // a shorter one, as local servers are given, is in many a word
		s = strings.ReplaceAll(s, key, "[key]")
	}
	return text.ClipBytes(strings.Join(strings.Fields(text.Scrub(s)), " "), 300)
}

func agentFault(format string, args ...any) *pipeline.Fault {
	return &pipeline.Fault{Class: pipeline.FaultAgent, Message: fmt.Sprintf(format, args...)}
}

// ends reports whether an error of a workspace ends the phase instead of being
// told to the model.
func ends(ctx context.Context, err error) bool {
	var f *pipeline.Fault
	return errors.As(err, &f) || ctx.Err() != nil
}
