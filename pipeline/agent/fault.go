package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"forge/pipeline"
)

// providerFault turns a provider's refusal into a fault that says how to mend it.
// What the provider said is shortened and shown, except where it may hold the key.
func providerFault(provider, model, key string, status int, said string) *pipeline.Fault {
	f := &pipeline.Fault{Class: pipeline.FaultProvider}
	switch {
	case status == http.StatusUnauthorized:
		f.Final, said = true, ""
		f.Message = fmt.Sprintf("%s refused the API key (401); check the key in the server's settings", provider)
	case status == http.StatusForbidden:
		f.Final, said = true, ""
		f.Message = fmt.Sprintf("%s does not let this API key use %s (403); choose another model or key", provider, model)
	case status == http.StatusNotFound:
		f.Final = true
		f.Message = fmt.Sprintf("%s does not know the model %s (404); correct models in the settings", provider, model)
	case status == http.StatusTooManyRequests:
		f.Message = fmt.Sprintf("%s limits the rate, or the quota is used up (429, %s); it is tried again later", provider, model)
	case status == http.StatusPaymentRequired:
		f.Final = true
		f.Message = fmt.Sprintf("%s wants to be paid (402); check the account's credit", provider)
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		f.Message = fmt.Sprintf("%s is overloaded or down (%d, %s); it is tried again later", provider, status, model)
	default:
		f.Final = true
		f.Message = fmt.Sprintf("%s refused the request (%d, %s)", provider, status, model)
	}
	if said = redact(said, key); said != "" {
		f.Message += ": " + said
	}
	return f
}

// transportFault is for calls that got no answer, or one that is no answer.
func transportFault(ctx context.Context, provider, model, key string, limit time.Duration, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	what := "could not be reached"
	var timeout net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() {
		what = fmt.Sprintf("did not answer within %v", limit)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which may hold credentials
	}
	return &pipeline.Fault{Class: pipeline.FaultProvider,
		Message: fmt.Sprintf("%s %s (%s): %s", provider, what, model, redact(err.Error(), key))}
}

// redact makes what a provider said fit for people: in one line, short, without the
// key that was used and what else looks like a credential.
func redact(s, key string) string {
	if key != "" {
		s = strings.ReplaceAll(s, key, "[key]")
	}
	return clip(strings.Join(strings.Fields(pipeline.Scrub(s)), " "), 300)
}

// clip shortens s to at most n bytes on a rune's boundary and says so.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n] + "…"
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
