package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Check reports whether the model with this name can be used with these credentials:
// nil, or an error for the operator that names the address, what is wrong there, and
// what to set. A *pipeline.Fault that is not Final passes by itself: the provider is
// there, or may be soon. It costs nothing where the provider lists its models, and a
// few tokens elsewhere. The caller limits the time by the context.
func Check(ctx context.Context, name string, c Credentials) error {
	return NewProviders(ProviderOptions{Credentials: c}).Check(ctx, name)
}

// Check is the function Check with the providers' credentials. It makes its calls
// whatever the circuits say, and tells them nothing.
func (p *Providers) Check(ctx context.Context, name string) error {
	if name == "" {
		return final("no model is set: set model in forge.yml or FORGE_MODEL to provider/model, for instance anthropic/claude-sonnet-5-5, or openai/MODEL with OPENAI_BASE_URL for a compatible server")
	}
	if path, ok := strings.CutPrefix(name, "tape:"); ok {
		if _, err := os.Stat(path); err != nil {
			return final("the model %s cannot be read: %v; set model to a tape that is there, or to provider/model", name, err)
		}
		_, err := p.Open(name)
		return err
	}
	m, err := p.remote(name)
	if err != nil {
		return final("%v", err)
	}
	if u, err := url.Parse(m.base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return final("%s is not an address of a provider: set it to http://HOST/v1 or https://HOST/v1", m.setting)
	}
	return m.check(ctx)
}

func final(format string, args ...any) error {
	return &pipeline.Fault{Class: pipeline.FaultProvider, Final: true, Message: fmt.Sprintf(format, args...)}
}

// check asks for the list of models, for the model itself where it is not in the
// list, and for an answer where there is no list.
func (m *remote) check(ctx context.Context) error {
	list := m.dialect.models()
	a, f, err := m.get(ctx, list)
	if err != nil {
		return err
	}
	known, listed := readModels(a.body)
	_, there := known.find(m.name)
	switch {
	case f == nil && listed && there:
		return nil
	case f == nil && listed:
		path, _, _ := strings.Cut(list, "?")
		_, f, err := m.get(ctx, path+"/"+url.PathEscape(m.name))
		if err != nil {
			return err
		}
		if f == nil {
			return nil
		}
		if f.kind == kindModel || f.kind == kindURL {
			return m.unknown(known.names())
		}
		return f
	case f != nil && (f.kind == kindKey || f.kind == kindCredit || f.kind.passes()):
		return f
	}
	return m.try(ctx)
}

// unknown says that the model is not there, and which is most like it.
func (m *remote) unknown(names []string) error {
	hint := ""
	switch near := text.Nearest(m.name, names); {
	case near != "":
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	case len(names) > 0 && len(names) <= 10:
		hint = " (it has " + strings.Join(names, ", ") + ")"
	case len(names) == 0:
		hint = " (it has none)"
	}
	return final("%s at %s does not know the model %s%s: correct model or models in the settings", m.endpoint.provider, m.at(""), m.name, hint)
}

// try asks the model for a word.
func (m *remote) try(ctx context.Context) error {
	_, err := m.attempt(ctx, pass{round: -1}, Request{MaxTokens: 16, Messages: []Message{{Role: "user", Text: "Say ok."}}})
	var f *failure
	switch {
	case ctx.Err() != nil:
		return m.slow(ctx)
	case errors.As(err, &f) && (f.kind == kindRequest || f.kind == kindTooLong):
		return nil // it knows the key and the model, and only dislikes the question
	}
	return err
}

// get fetches a path. A failure is returned described; err is the context's.
func (m *remote) get(ctx context.Context, path string) (answer, *failure, error) {
	a, err := m.exchange(ctx, http.MethodGet, path, nil, func(event) (bool, error) { return true, nil })
	var f *failure
	switch {
	case ctx.Err() != nil:
		return a, nil, m.slow(ctx)
	case errors.As(err, &f):
	case a.status != http.StatusOK:
		f = m.refusal(path, a, m.opts.Now())
	case !json.Valid(a.body):
		f = &failure{kind: kindURL, said: m.elsewhere(path, a, strings.HasPrefix(strings.TrimSpace(string(a.body)), "<"))}
	}
	if f != nil {
		f.describe(m.endpoint, m.name)
		if f.kind == kindUnreachable {
			f.fault.Message += fmt.Sprintf("; check that it runs, and %s", m.setting)
		}
	}
	return a, f, nil
}

// slow is the error of a check that ran out of time, or was stopped.
func (m *remote) slow(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	f := &failure{kind: kindSilent, said: "did not answer in time"}
	return f.describe(m.endpoint, m.name)
}
