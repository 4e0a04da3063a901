package production

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// generic is an event in the structured mode of CloudEvents 1.0, or the payload that
// Standard Webhooks recommends: both have a type and data. The door makes the binary
// mode of CloudEvents into the structured one.
type generic struct {
	SpecVersion string          `json:"specversion"`
	Type        string          `json:"type"`
	Source      string          `json:"source"`
	Subject     string          `json:"subject"`
	Time        string          `json:"time"`      // CloudEvents
	Timestamp   string          `json:"timestamp"` // Standard Webhooks
	Data        json.RawMessage `json:"data"`
	Base64      []byte          `json:"data_base64"`
}

// maxEvents is how many events of one message are read.
const maxEvents = 100

// readGeneric reads one event, or a batch of them.
func readGeneric(h Hook, m Message) (out []Observation, why string, err error) {
	body := bytes.TrimSpace(m.Body)
	var events []generic
	if len(body) > 0 && body[0] == '[' {
		if err := decode(body, &events); err != nil {
			return nil, "", err
		}
		events = events[:min(len(events), maxEvents)]
	} else {
		var one generic
		if err := decode(body, &one); err != nil {
			return nil, "", err
		}
		events = append(events, one)
	}
	for _, e := range events {
		o, no, err := e.read(h)
		switch {
		case err != nil && len(events) == 1:
			return nil, "", err
		case err != nil: // the others of a batch say what they say
			why = cmp.Or(why, err.Error())
		case no != "":
			why = cmp.Or(why, no)
		default:
			out = append(out, o)
		}
	}
	return out, why, nil
}

func (e generic) read(h Hook) (Observation, string, error) {
	kind, ok := kindOf(e.Type)
	if !ok {
		return Observation{}, fmt.Sprintf("its type is %q; there are %s, %s and %s", line(e.Type, 100), EventAnomalyDetected, EventErrorDetected,
			EventHealthCheckFailed), nil
	}
	f := fields{}
	if err := decode(e.data(), &f); err != nil {
		return Observation{}, "", fmt.Errorf("%w: data must be an object with the fields of %s", ErrUnread, e.Type)
	}
	repo, why := h.repoOf(f.text("repo", "repository"))
	if why != "" {
		return Observation{}, why, nil
	}
	o := Observation{
		Kind: kind, Repo: repo, Environment: h.environmentOf(f.text("environment", "env")), Service: name(f.text("service")),
		Group:    line(f.text("group", "fingerprint"), maxGroup),
		Severity: severity(f.text("severity")), Status: StatusFiring, At: when(cmp.Or(f.text("at", "time"), e.Time, e.Timestamp)),
		Since: when(f.text("since", "startsat")),
		URL:   link(f.text("url", "link")), Title: line(f.text("title", "summary", "message"), maxTitle), Text: words(f.text("text", "description", "message")),
		Release: name(f.text("release", "version")), Commit: commit(f.text("commit", "sha", "relatedcommit")), Deployment: f.id("deploymentid", "deployment"),
	}
	status := f.text("status", "state")
	if over[strings.ToLower(status)] {
		o.Status = StatusResolved
	}
	switch kind {
	case KindError:
		o.Each = status == ""
		o.Error = &Error{Type: name(f.text("type", "errortype", "exception")), Stack: f.stack("stack", "stacktrace"),
			Frequency: f.count("frequency", "count"), FirstSeen: when(f.text("firstseen")),
			Users: f.count("affectedusers", "users"), Related: commit(f.text("relatedcommit")), Culprit: name(f.text("culprit"))}
		o.Title = cmp.Or(o.Title, o.Error.Type)
	case KindHealth:
		o.Health = &Health{Endpoint: name(f.text("endpoint", "target")), Expected: f.count("expectedstatus", "expected"), Actual: f.count("actualstatus", "actual")}
		if o.Title == "" && o.Health.Endpoint != "" {
			o.Title = line(fmt.Sprintf("%s answered %d, not %d", o.Health.Endpoint, o.Health.Actual, o.Health.Expected), maxTitle)
		}
	default:
		o.Anomaly = &Anomaly{Metric: name(f.text("metric")), Baseline: figure(f.text("baseline")), Current: figure(f.text("current", "value"))}
		o.Title = cmp.Or(o.Title, o.Anomaly.Metric)
	}
	return o, "", nil
}

// over are the words by which senders say that something does not go on.
var over = map[string]bool{"resolved": true, "ok": true, "closed": true, "recovered": true, "healthy": true, "normal": true, "up": true}

// data is the event's data, which may be in a text, or in base64.
func (e generic) data() []byte {
	var s string
	if json.Unmarshal(e.Data, &s) == nil && s != "" {
		return []byte(s)
	}
	if len(e.Data) == 0 {
		return e.Base64
	}
	return e.Data
}

// fields are those of an event's data, by their names without case, dashes and
// underlines: relatedCommit and related_commit are the same.
type fields map[string]json.RawMessage

var plainKey = strings.NewReplacer("_", "", "-", "", " ", "")

// UnmarshalJSON implements json.Unmarshaler.
func (f *fields) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if raw == nil {
		return ErrUnread
	}
	*f = fields{}
	for k, v := range raw {
		k = strings.ToLower(plainKey.Replace(k))
		if old, twice := (*f)[k]; !twice || bytes.Compare(v, old) > 0 { // whatever their order
			(*f)[k] = v
		}
	}
	return nil
}

// text returns the first of the named fields that is there, a number as its digits.
func (f fields) text(names ...string) string {
	for _, n := range names {
		raw := f[n]
		var s string
		if json.Unmarshal(raw, &s) == nil && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
		var num json.Number
		if len(raw) > 0 && raw[0] != '"' && json.Unmarshal(raw, &num) == nil && num != "" {
			return num.String()
		}
	}
	return ""
}

func (f fields) count(names ...string) int { return whole(f.text(names...)) }

func (f fields) id(names ...string) int64 {
	return number64(f.text(names...))
}

// stack reads a stack that is text, or a list of frames.
func (f fields) stack(names ...string) []Frame {
	for _, n := range names {
		if s := f.text(n); s != "" {
			return Frames(s)
		}
		var lines []string
		if json.Unmarshal(f[n], &lines) == nil && len(lines) > 0 {
			return Frames(strings.Join(lines, "\n"))
		}
		var list []fields
		if json.Unmarshal(f[n], &list) != nil || len(list) == 0 {
			continue
		}
		var out []Frame
		for _, v := range list[:min(len(list), maxFrames)] {
			fr := newFrame(v.text("file", "filename", "path"), v.count("line", "lineno"), v.text("function", "func", "method"))
			if in := v["inapp"]; len(in) > 0 {
				fr.InApp = string(in) == "true"
			}
			if fr.File != "" {
				out = append(out, fr)
			}
		}
		return out
	}
	return nil
}
