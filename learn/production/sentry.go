package production

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
)

// sentryMessage is a webhook of Sentry's integration platform.
// https://docs.sentry.io/integrations/integration-platform/webhooks/
type sentryMessage struct {
	Action string `json:"action"`
	Data   struct {
		Issue  *sentryIssue  `json:"issue"`
		Event  *sentryEvent  `json:"event"` // of an issue alert
		Error  *sentryEvent  `json:"error"`
		Metric *sentryMetric `json:"metric_alert"`
		Rule   string        `json:"triggered_rule"`
		Title  string        `json:"description_title"`
		Text   string        `json:"description_text"`
		WebURL string        `json:"web_url"`
	} `json:"data"`
}

type sentryIssue struct {
	ID        word   `json:"id"`
	Title     string `json:"title"`
	Culprit   string `json:"culprit"`
	Level     string `json:"level"`
	Permalink string `json:"permalink"`
	WebURL    string `json:"web_url"`
	Count     word   `json:"count"`
	Users     word   `json:"userCount"`
	FirstSeen string `json:"firstSeen"`
	LastSeen  string `json:"lastSeen"`
	Project   struct {
		ID       word   `json:"id"`
		Slug     string `json:"slug"`
		Platform string `json:"platform"`
	} `json:"project"`
	Metadata struct {
		Type     string `json:"type"`
		Value    string `json:"value"`
		Filename string `json:"filename"`
		Function string `json:"function"`
	} `json:"metadata"`
}

type sentryEvent struct {
	ID          string          `json:"event_id"`
	IssueID     word            `json:"issue_id"`
	Project     word            `json:"project"` // its number
	URL         string          `json:"url"`
	WebURL      string          `json:"web_url"`
	Title       string          `json:"title"`
	Message     string          `json:"message"`
	Culprit     string          `json:"culprit"`
	Level       string          `json:"level"`
	Datetime    string          `json:"datetime"`
	Platform    string          `json:"platform"`
	Release     json.RawMessage `json:"release"` // text, or an object with a version
	Environment string          `json:"environment"`
	Tags        []sentryTag     `json:"tags"`
	Exception   struct {
		Values []struct {
			Type      string `json:"type"`
			Value     string `json:"value"`
			Mechanism struct {
				Handled *bool `json:"handled"`
			} `json:"mechanism"`
			Stacktrace struct {
				Frames []sentryFrame `json:"frames"`
			} `json:"stacktrace"`
		} `json:"values"`
	} `json:"exception"`
}

type sentryFrame struct {
	Filename string `json:"filename"`
	AbsPath  string `json:"abs_path"`
	Module   string `json:"module"`
	Function string `json:"function"`
	Line     word   `json:"lineno"`
	InApp    *bool  `json:"in_app"` // nil: it is not known
}

// sentryTag is a key and its value, as a pair or an object.
type sentryTag struct{ Key, Value word }

// UnmarshalJSON implements json.Unmarshaler.
func (t *sentryTag) UnmarshalJSON(data []byte) error {
	var pair []word
	if json.Unmarshal(data, &pair) == nil {
		if len(pair) == 2 {
			t.Key, t.Value = pair[0], pair[1]
		}
		return nil
	}
	type plain sentryTag
	_ = json.Unmarshal(data, (*plain)(t)) // what is neither is none
	return nil
}

type sentryMetric struct {
	ID          word   `json:"id"`
	DateStarted string `json:"date_started"`
	DateClosed  string `json:"date_closed"`
	AlertRule   struct {
		Name        string   `json:"name"`
		Query       string   `json:"query"`
		Aggregate   string   `json:"aggregate"`
		Environment string   `json:"environment"`
		Projects    []string `json:"projects"`
	} `json:"alert_rule"`
}

func readSentry(h Hook, m Message) ([]Observation, string, error) {
	var msg sentryMessage
	if err := decode(m.Body, &msg); err != nil {
		return nil, "", err
	}
	var o Observation
	var project []string // names of it, any of which the hook may know
	switch d := msg.Data; {
	case d.Metric != nil:
		o, project = sentryMetricAlert(msg)
	case d.Event != nil:
		o, project = d.Event.observation(), d.Event.projects()
	case d.Error != nil:
		o, project = d.Error.observation(), d.Error.projects()
	case d.Issue != nil:
		switch msg.Action {
		case "created", "unresolved", "resolved", "archived", "ignored":
		default:
			return nil, fmt.Sprintf("an issue of Sentry was %s", name(msg.Action)), nil
		}
		o, project = d.Issue.observation(msg.Action), []string{d.Issue.Project.Slug, string(d.Issue.Project.ID)}
	default:
		return nil, fmt.Sprintf("Sentry's %s tells of no error", name(cmp.Or(m.Resource, "message"))), nil
	}
	repo, why := h.sentryRepo(project)
	if why != "" {
		return nil, why, nil
	}
	o.Repo, o.Environment = repo, h.environmentOf(o.Environment)
	o.Each = o.Kind == KindError && o.Status == StatusFiring // that an error is over somebody says by hand, if ever
	return []Observation{o}, "", nil
}

// sentryRepo finds the repository of a project.
func (h Hook) sentryRepo(project []string) (repo, why string) {
	for _, p := range project {
		if r := h.Projects[p]; p != "" && r != "" {
			return r, ""
		}
	}
	if h.Repo != "" {
		return h.Repo, ""
	}
	return "", fmt.Sprintf("the hook has no repository for Sentry's project %q", name(strings.Join(project, " ")))
}

func (i *sentryIssue) observation(action string) Observation {
	o := Observation{
		Kind: KindError, Status: StatusFiring, Severity: severity(i.Level), At: when(i.LastSeen), Since: when(i.FirstSeen),
		Title: line(cmp.Or(i.Title, i.Metadata.Type), maxTitle), Text: words(i.Metadata.Value), URL: cmp.Or(link(i.WebURL), link(i.Permalink)),
		Error: &Error{Type: name(i.Metadata.Type), Frequency: whole(string(i.Count)), Users: whole(string(i.Users)), FirstSeen: when(i.FirstSeen),
			Culprit: name(i.Culprit), Platform: name(i.Project.Platform), Issue: name(string(i.ID))},
	}
	if i.Metadata.Filename != "" {
		f := newFrame(i.Metadata.Filename, 0, i.Metadata.Function)
		o.Error.Stack = []Frame{f}
	}
	if i.ID != "" {
		o.Group = name("sentry/" + string(i.ID))
	}
	switch action {
	case "created":
	case "unresolved": // it came back: what did that is not what made it years ago
		o.Since = time.Time{}
	default:
		o.Status = StatusResolved
	}
	return o
}

func (e *sentryEvent) observation() Observation {
	o := Observation{
		Kind: KindError, Status: StatusFiring, Severity: severity(e.Level), At: when(e.Datetime),
		Title: line(cmp.Or(e.Title, e.Message), maxTitle), Text: words(e.Message),
		URL: cmp.Or(link(e.WebURL), link(e.URL)), Environment: name(cmp.Or(e.Environment, e.tag("environment"))), Release: e.release(),
		Error: &Error{Culprit: name(e.Culprit), Platform: name(e.Platform), Issue: name(string(e.IssueID))},
	}
	if e.IssueID != "" {
		o.Group = name("sentry/" + string(e.IssueID))
	}
	o.Commit = commit(o.Release[strings.LastIndexByte(o.Release, '@')+1:])
	values := e.Exception.Values
	if len(values) == 0 {
		return o
	}
	last := values[len(values)-1] // of exceptions that caused each other, the one that was raised
	o.Error.Type, o.Error.Handled = name(last.Type), last.Mechanism.Handled != nil && *last.Mechanism.Handled
	if o.Text == "" {
		o.Text = words(last.Value)
	}
	o.Title = cmp.Or(o.Title, line(last.Type+": "+last.Value, maxTitle))
	frames := last.Stacktrace.Frames
	for n := len(frames) - 1; n >= 0 && len(o.Error.Stack) < maxFrames; n-- { // the oldest call is first
		f := newFrame(cmp.Or(frames[n].Filename, frames[n].AbsPath, frames[n].Module), whole(string(frames[n].Line)), frames[n].Function)
		if in := frames[n].InApp; in != nil {
			f.InApp = *in
		}
		if f.File != "" {
			o.Error.Stack = append(o.Error.Stack, f)
		}
	}
	return o
}

func (e *sentryEvent) tag(key string) string {
	for _, t := range e.Tags[:min(len(e.Tags), maxLabels)] {
		if string(t.Key) == key {
			return string(t.Value)
		}
	}
	return ""
}

func (e *sentryEvent) release() string {
	var s string
	if json.Unmarshal(e.Release, &s) == nil && s != "" {
		return name(s)
	}
	var o struct {
		Version string `json:"version"`
	}
	_ = json.Unmarshal(e.Release, &o)
	return name(cmp.Or(o.Version, e.tag("release"), e.tag("sentry:release")))
}

var sentryProject = lazyregexp.New(`/projects/[^/]+/([^/]+)/`)

// projects are the project's slug, which stands in the event's address, and number.
func (e *sentryEvent) projects() (out []string) {
	if m := sentryProject.FindStringSubmatch(e.URL); m != nil {
		out = append(out, name(m[1]))
	}
	return append(out, name(string(e.Project)))
}

func sentryMetricAlert(msg sentryMessage) (Observation, []string) {
	a := msg.Data.Metric
	o := Observation{
		Kind: KindAnomaly, Status: StatusFiring, Severity: severity(msg.Action), At: when(a.DateStarted), Since: when(a.DateStarted),
		Environment: name(a.AlertRule.Environment),
		Group:       name("sentry/metric/" + cmp.Or(a.AlertRule.Name, string(a.ID))), Title: line(cmp.Or(msg.Data.Title, a.AlertRule.Name), maxTitle),
		Text: words(msg.Data.Text), URL: link(msg.Data.WebURL),
		Anomaly: &Anomaly{Metric: name(cmp.Or(a.AlertRule.Aggregate, a.AlertRule.Name))},
	}
	if msg.Action == "resolved" {
		o.Status, o.At = StatusResolved, when(a.DateClosed)
	}
	if m := leadingNumber.FindString(msg.Data.Text); m != "" {
		o.Anomaly.Current = figure(m)
	}
	return o, a.AlertRule.Projects
}

// leadingNumber is the figure in "1000 events in the last 10 minutes".
var leadingNumber = lazyregexp.New(`^-?\d+(\.\d+)?%?`)
