package production

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// alertmanagerMessage is Alertmanager's webhook, version 4; Grafana sends the same
// with more fields.
// https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
type alertmanagerMessage struct {
	Status   string              `json:"status"`
	GroupKey string              `json:"groupKey"`
	External string              `json:"externalURL"`
	Title    string              `json:"title"` // Grafana's
	Cut      int                 `json:"truncatedAlerts"`
	Alerts   []alertmanagerAlert `json:"alerts"`
}

type alertmanagerAlert struct {
	Status      string         `json:"status"`
	Labels      labels         `json:"labels"`
	Annotations labels         `json:"annotations"`
	StartsAt    string         `json:"startsAt"`
	EndsAt      string         `json:"endsAt"`
	Generator   string         `json:"generatorURL"`
	Fingerprint string         `json:"fingerprint"`
	Values      map[string]any `json:"values"` // Grafana's
}

// labels are names with values, of which few enough are looked at.
type labels map[string]string

// UnmarshalJSON implements json.Unmarshaler: values that are no text are passed over.
func (l *labels) UnmarshalJSON(data []byte) error {
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*l = labels{}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if v, ok := all[k].(string); ok && len(*l) < maxLabels {
			(*l)[strings.ToLower(k)] = v
		}
	}
	return nil
}

// first returns the first of the named values that is there.
func (l labels) first(names ...string) string {
	for _, n := range names {
		if v := strings.TrimSpace(l[n]); v != "" {
			return v
		}
	}
	return ""
}

// readAlertmanager makes an observation of each part of a group that is about one
// thing: a repository, an environment, a kind. What else differs, such as the service,
// belongs together because whoever set the monitor up says so.
func readAlertmanager(h Hook, m Message) ([]Observation, string, error) {
	var msg alertmanagerMessage
	if err := decode(m.Body, &msg); err != nil {
		return nil, "", err
	}
	if msg.Alerts == nil {
		return nil, "", fmt.Errorf("%w: it has no alerts: is this Alertmanager's webhook?", ErrUnread)
	}
	if len(msg.Alerts) > maxAlerts {
		msg.Alerts = msg.Alerts[:maxAlerts]
	}
	type place struct {
		repo, environment string
		kind              Kind
	}
	var order []place
	parts := map[place][]alertmanagerAlert{}
	why := ""
	for _, a := range msg.Alerts {
		repo, no := h.repoOf(a.Labels["forge_repo"])
		if no != "" {
			why = cmp.Or(why, no)
			continue
		}
		p := place{repo: repo, environment: h.environmentOf(a.Labels.first("environment", "env")), kind: alertKind(a)}
		if parts[p] == nil && len(order) == maxEvents {
			why = cmp.Or(why, fmt.Sprintf("it is about more than %d things", maxEvents))
			continue
		}
		if parts[p] == nil {
			order = append(order, p)
		}
		parts[p] = append(parts[p], a)
	}
	var out []Observation
	for _, p := range order {
		o := alertObservation(p.kind, msg, parts[p])
		o.Repo, o.Environment = p.repo, p.environment
		if msg.Cut > 0 && len(order) == 1 && o.Status == StatusResolved && strings.EqualFold(msg.Status, string(StatusFiring)) {
			o.Status, o.At = StatusFiring, time.Time{} // by those that were cut off
		}
		out = append(out, o)
	}
	return out, why, nil
}

func alertKind(a alertmanagerAlert) Kind {
	switch strings.ToLower(a.Labels["forge_kind"]) {
	case "error":
		return KindError
	case "health":
		return KindHealth
	}
	return KindAnomaly
}

// firing reports whether an alert goes on.
func (a alertmanagerAlert) firing() bool { return !strings.EqualFold(a.Status, string(StatusResolved)) }

// alertObservation takes alerts together: it goes on while one of them does, is as
// bad as the worst of these, and shows the one that began first.
func alertObservation(kind Kind, msg alertmanagerMessage, alerts []alertmanagerAlert) Observation {
	shownFirst := slices.MinFunc(alerts, func(a, b alertmanagerAlert) int {
		if a.firing() != b.firing() {
			return map[bool]int{true: -1, false: 1}[a.firing()]
		}
		return cmp.Compare(a.StartsAt, b.StartsAt)
	})
	a := shownFirst
	o := Observation{
		Kind: kind, Status: StatusResolved, Severity: SeverityWarning, Since: when(a.StartsAt), Times: len(alerts), Group: line(msg.GroupKey, maxGroup),
		Title: line(cmp.Or(a.Annotations.first("summary", "title"), a.Labels.first("alertname"), msg.Title), maxTitle),
		Text:  words(a.Annotations.first("description", "message")), URL: cmp.Or(link(a.Generator), link(msg.External)),
		Release: name(a.Labels.first("release", "version")), Commit: commit(a.Labels.first("commit", "revision", "sha")),
		Deployment: number64(a.Labels.first("deployment_id", "forge_deployment")), Service: name(a.Labels.first("service", "job")),
	}
	var prints []string
	for _, b := range alerts {
		if b.Fingerprint != "" {
			prints = append(prints, name(b.Fingerprint))
		}
		if !b.firing() {
			if end := when(b.EndsAt); o.Status == StatusResolved && end.After(o.At) {
				o.At = end
			}
			continue
		}
		o.Status, o.At = StatusFiring, time.Time{}
		if severity(b.Labels.first("severity", "level", "priority")) == SeverityCritical {
			o.Severity = SeverityCritical
		}
	}
	if o.Status == StatusResolved && severity(a.Labels.first("severity", "level", "priority")) == SeverityCritical {
		o.Severity = SeverityCritical
	}
	slices.Sort(prints)
	o.Fingerprint = line(strings.Join(prints, ","), maxGroup)
	if o.Group == "" {
		o.Group = o.Fingerprint
	}
	metric := name(cmp.Or(a.Annotations.first("metric"), a.Labels.first("metric", "alertname")))
	switch kind {
	case KindError:
		o.Error = &Error{Type: name(cmp.Or(a.Labels.first("error", "exception", "type"), metric)), Stack: Frames(a.Annotations.first("stack", "stacktrace")),
			Frequency: whole(a.Annotations.first("count", "value")), FirstSeen: o.Since}
	case KindHealth:
		o.Health = &Health{Endpoint: name(a.Labels.first("endpoint", "target", "instance")), Expected: whole(a.Annotations.first("expected")),
			Actual: whole(a.Annotations.first("actual", "value"))}
	default:
		o.Anomaly = &Anomaly{Metric: metric, Baseline: figure(a.Annotations.first("baseline")), Current: figure(a.Annotations.first("value", "current"))}
		if f, ok := onlyValue(a.Values); ok && o.Anomaly.Current == nil {
			o.Anomaly.Current = &f
		}
	}
	return o
}

// onlyValue is Grafana's value of an alert that has one.
func onlyValue(values map[string]any) (float64, bool) {
	if len(values) != 1 {
		return 0, false
	}
	for _, v := range values {
		f, ok := v.(float64)
		return f, ok
	}
	return 0, false
}
