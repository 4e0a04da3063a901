package production

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// HookKind says whose messages a hook takes.
type HookKind string

// The kinds of hooks.
const (
	HookAlertmanager HookKind = "alertmanager" // Alertmanager, Grafana, Mimir
	HookSentry       HookKind = "sentry"       //
	HookGeneric      HookKind = "generic"      // CloudEvents and Standard Webhooks
)

// Hook is a door that messages come in by. What it says goes before what they say.
type Hook struct {
	Name        string
	Kind        HookKind
	Repo        string            // that its messages are about, when they name none
	Repos       []string          // that they may name besides
	Environment string            // of messages that name none; "": production
	Projects    map[string]string // of Sentry: project → repository
}

// Message is what came in by a hook. Nothing of it is trusted.
type Message struct {
	Resource string // of Sentry: what it is about, as its header says
	Body     []byte
	Received time.Time
}

// ErrUnread says that a message is not of the hook's kind.
var ErrUnread = errors.New("it cannot be read")

// Read makes observations of a message. Without any, why says why nothing follows.
func Read(h Hook, m Message) (list []Observation, why string, err error) {
	switch h.Kind {
	case HookAlertmanager:
		list, why, err = readAlertmanager(h, m)
	case HookSentry:
		list, why, err = readSentry(h, m)
	case HookGeneric:
		list, why, err = readGeneric(h, m)
	default:
		return nil, "", fmt.Errorf("%w: there is no kind %q of hooks", ErrUnread, h.Kind)
	}
	for i := range list {
		list[i].Source = h.Name
		list[i].finish(m.Received)
	}
	if err == nil && len(list) == 0 && why == "" {
		why = "it tells of nothing"
	}
	return list, why, err
}

// decode reads JSON; what is wrong is said without quoting it.
func decode(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	var typed *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		where := "the body"
		if typed.Field != "" {
			where = line(typed.Field, 100)
		}
		return fmt.Errorf("%w: %s is of the wrong type", ErrUnread, where)
	}
	return fmt.Errorf("%w: the body is not JSON", ErrUnread)
}

// word is a text that some senders write as a number.
type word string

// UnmarshalJSON implements json.Unmarshaler: what is neither text nor a number is "".
func (w *word) UnmarshalJSON(data []byte) error {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(data, &s) == nil:
		*w = word(s)
	case json.Unmarshal(data, &n) == nil:
		*w = word(n)
	}
	return nil
}

// repoOf chooses the repository of a message that names one, or does not.
func (h Hook) repoOf(named string) (repo, why string) {
	same := func(r string) bool { return strings.EqualFold(r, named) }
	switch i := slices.IndexFunc(h.Repos, same); {
	case named == "" && h.Repo != "":
		return h.Repo, ""
	case named == "":
		return "", "it names no repository, and the hook has none"
	case h.Repo != "" && same(h.Repo):
		return h.Repo, ""
	case i >= 0:
		return h.Repos[i], ""
	}
	return "", fmt.Sprintf("the hook may not speak for the repository %q", line(named, 100))
}

// environmentOf chooses the environment.
func (h Hook) environmentOf(named string) string {
	for _, s := range []string{name(named), h.Environment} {
		if s != "" {
			return s
		}
	}
	return "production"
}
