package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/text"
)

// Ability is what a model was seen to do in a conversation of two turns.
type Ability struct {
	Form    string   // how it is asked
	Why     string   // it is asked in the plain form
	Unset   bool     // a run asks in the plain form only where model_limits says so: the model calls no tools
	Forced  bool     // it calls a tool only when it is made to
	Adapted []string // what had to be done so that it could be read
	Context int64    // tokens that its context holds; 0: its server does not say
	Took    time.Duration
}

// String says it for people.
func (a Ability) String() string {
	more := []string{"calls tools"}
	if a.Form == FormPlain {
		return fmt.Sprintf("is asked for code alone, without plan and review (%s); %.1fs an answer", a.Why, a.Took.Seconds())
	}
	if a.Forced {
		more = append(more, "when it is made to")
	}
	if len(a.Adapted) > 0 {
		more = append(more, "with help: "+strings.Join(a.Adapted, ", "))
	}
	if a.Context > 0 {
		more = append(more, fmt.Sprintf("a context of %d tokens", a.Context))
	}
	more = append(more, fmt.Sprintf("%.1fs an answer", a.Took.Seconds()/2))
	return strings.Join(more, "; ")
}

// errNoTools is of a model that answers, and calls no tool; its fault says what helps.
type errNoTools struct{ error }

// Probe is Check, and then a short conversation with a tool as runs hold it, for a few
// hundred tokens; of a model that is asked in the plain form, or calls no tools, a question. A
// model that comes through it can be used; the error of one that does not is what a run would
// end with. A tape is not asked.
func Probe(ctx context.Context, name string, l Limits, c Credentials) (Ability, error) {
	p := NewProviders(ProviderOptions{Credentials: c, Attended: true})
	if err := p.Check(ctx, name); err != nil || strings.HasPrefix(name, "tape:") {
		return Ability{}, err
	}
	m, err := p.remote(name)
	if err != nil {
		return Ability{}, final("%v", err)
	}
	var out Ability
	out.Form, out.Why = l.form(ctx, name, m)
	if out.Form == FormTools {
		err := out.converse(ctx, m)
		var none errNoTools
		switch {
		case err == nil: // now that the model is loaded, its server may say another window
			if m.window.tokens.Store(out.Context); out.Context > 0 {
				out.Form, out.Why = l.form(ctx, name, m)
			}
			return out, nil
		case !errors.As(err, &none):
			return out, err
		case l.Form != "" || out.ask(ctx, m) != nil:
			return out, none.error
		}
		out.Form, out.Why, out.Unset = FormPlain, "it calls no tool. "+whySilent, true
		return out, nil
	}
	if n := m.window.tokens.Load(); n <= smallWindow {
		out.Context = n
	}
	return out, out.ask(ctx, m)
}

// ask asks for code.
func (a *Ability) ask(ctx context.Context, m *remote) error {
	begun := m.opts.Now()
	r, err := m.Complete(ctx, Request{Step: 1, System: promptText("plain"), MaxTokens: 200, Messages: []Message{{Role: "user", Text: "# Task\n\nWrite add(a, b) in Python."}}})
	switch {
	case ctx.Err() != nil:
		return m.slow(ctx)
	case err == nil && r.Text == "" && len(r.Calls) == 0:
		err = final("%s of %s answers with nothing", m.name, m.endpoint.provider)
	}
	a.Took = m.opts.Now().Sub(begun)
	return err
}

// converse has two tools called, one after the other.
func (a *Ability) converse(ctx context.Context, m *remote) error {
	begun := m.opts.Now()
	read := Tool{Name: "read", Description: "Reads a file.", Schema: object("path", typed("string", "the file"))}
	submit := Tool{Name: "submit", Description: "Hands in the plan.", Schema: object("summary", typed("string", "the plan, in a sentence"))}
	req := Request{Step: 1, System: "You are the planner of a small task. Call a tool in every answer.", Tools: []Tool{read, submit}, MaxTokens: 4000,
		Messages: []Message{{Role: "user", Text: "The task: add a function mul to calc.py. First read calc.py; then call submit with your plan."}}}
	for range 2 {
		r, err := m.Complete(ctx, req)
		if err == nil && len(r.Calls) == 0 {
			req.Force, a.Forced = ForceAny, true
			req.Messages = append(req.Messages, Message{Role: "assistant", Text: firstOf(r.Text, "(nothing)"), Raw: r.Raw}, Message{Role: "user", Text: "Your answer called no tool. Call one."})
			r, err = m.Complete(ctx, req)
		}
		var f *failure
		switch {
		case ctx.Err() != nil:
			return m.slow(ctx)
		case errors.As(err, &f) && f.kind == kindTools:
			return errNoTools{err}
		case err != nil:
			return err
		case len(r.Calls) == 0:
			err := final("%s of %s answers and calls no tool, so it can do no work with them; it said %q. %s. %s",
				m.name, m.endpoint.provider, text.ClipBytes(r.Text, 200), whySilent, byPlain(strings.ToLower(m.endpoint.provider)+"/"+m.name))
			if req.Step == 1 {
				return errNoTools{err}
			}
			return err
		}
		for _, s := range r.Adapted {
			if !slices.Contains(a.Adapted, s) {
				a.Adapted = append(a.Adapted, s)
			}
		}
		req.Step++
		req.Messages = append(req.Messages, Message{Role: "assistant", Text: r.Text, Calls: r.Calls, Raw: r.Raw})
		results := Message{Role: "user"}
		for _, call := range r.Calls {
			results.Results = append(results.Results, ToolResult{ID: call.ID, Text: "def add(a, b):\n    return a + b\n\nNow call submit."})
		}
		req.Messages = append(req.Messages, results)
	}
	a.Took = m.opts.Now().Sub(begun)
	if d, ok := m.dialect.(*openaiDialect); ok && !d.own {
		a.Context = m.contextTokens(ctx) // now that the model is loaded
	}
	return nil
}
