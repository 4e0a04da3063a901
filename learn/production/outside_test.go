package production

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// seen is what a message becomes, in short.
func seen(list []Observation, why string, err error) string {
	var out []string
	for _, o := range list {
		s := fmt.Sprintf("%s %s %s %s", o.Environment, o.Kind, o.Severity, o.Status)
		if o.Group != "" {
			s += " group=" + o.Group
		}
		out = append(out, s)
	}
	if why != "" {
		out = append(out, "why")
	}
	if err != nil {
		out = append(out, "error")
	}
	return strings.Join(out, " | ")
}

func alert(status, labels, more string) string {
	return fmt.Sprintf(`{"status":%q,"labels":{"alertname":"A",%s"severity":"critical"},"annotations":{},"startsAt":"2026-03-01T10:00:00Z"%s}`, status, labels, more)
}

func alerts(groupStatus, more string, list ...string) string {
	return fmt.Sprintf(`{"version":"4","status":%q,"groupKey":"g"%s,"alerts":[%s]}`, groupStatus, more, strings.Join(list, ","))
}

func event(kind, data string) string {
	return fmt.Sprintf(`{"specversion":"1.0","id":"1","source":"s","type":"production.%s","data":%s}`, kind, data)
}

// What monitors send, as an outsider would: two parts of a group that do not agree, what
// was cut off, values of types that the documents do not promise.
func TestReadFromOutside(t *testing.T) {
	t.Parallel()
	sentry := func(resource, data string) string {
		return `{"action":"triggered","data":{"` + resource + `":` + data + `}}`
	}
	for _, tt := range []struct {
		name, kind, body, want string
		check                  func(Observation) string
	}{
		{"two services of a group, the second is over", "alertmanager", alerts("firing", "", alert("firing", `"service":"b",`, ""), alert("resolved", `"service":"a",`, "")),
			"production anomaly critical firing group=g", nil},
		{"two services of a group, the first is over", "alertmanager", alerts("firing", "", alert("resolved", `"service":"a",`, ""), alert("firing", `"service":"b",`, "")),
			"production anomaly critical firing group=g", func(o Observation) string { return eq(o.Service, "b") }},
		{"all that is shown is over, and more goes on", "alertmanager", alerts("firing", `,"truncatedAlerts":3`, alert("resolved", "", "")),
			"production anomaly critical firing group=g", nil},
		{"all is over, and more is cut off", "alertmanager", alerts("resolved", `,"truncatedAlerts":3`, alert("resolved", "", "")), "production anomaly critical resolved group=g", nil},
		{"two environments of a group do not agree", "alertmanager", alerts("firing", "", alert("firing", `"environment":"staging",`, ""), alert("resolved", `"environment":"production",`, "")),
			"staging anomaly critical firing group=g | production anomaly critical resolved group=g", nil},
		{"a clock that is ahead", "alertmanager", alerts("firing", "", strings.Replace(alert("firing", "", ""), "10:00:00", "10:50:00", 1)),
			"production anomaly critical firing group=g", func(o Observation) string { return notAfter(o) }},
		{"startsAt is no time", "alertmanager", alerts("firing", "", strings.Replace(alert("firing", "", ""), "2026-03-01T10:00:00Z", "yesterday", 1)),
			"production anomaly critical firing group=g", func(o Observation) string { return notAfter(o) }},
		{"status in capitals", "alertmanager", alerts("RESOLVED", "", alert("RESOLVED", "", "")), "production anomaly critical resolved group=g", nil},
		{"a status that is not known", "alertmanager", alerts("pending", "", alert("pending", "", "")), "production anomaly critical firing group=g", nil},
		{"alerts is null", "alertmanager", `{"version":"4","status":"firing","alerts":null}`, "error", nil},
		{"an alert is null", "alertmanager", alerts("firing", "", "null", alert("firing", "", "")), "production anomaly critical firing group=g", nil},
		{"labels is null", "alertmanager", `{"groupKey":"g","alerts":[{"status":"firing","labels":null,"annotations":null}]}`, "production anomaly warning firing group=g", nil},
		{"labels is a list", "alertmanager", `{"groupKey":"g","alerts":[{"status":"firing","labels":[]}]}`, "error", nil},
		{"environment of spaces", "alertmanager", alerts("firing", "", alert("firing", `"environment":"   ",`, "")), "production anomaly critical firing group=g", nil},
		{"deployment as a large number", "alertmanager", alerts("firing", "", alert("firing", `"deployment_id":"3000000000",`, "")), "production anomaly critical firing group=g",
			func(o Observation) string { return eq(fmt.Sprint(o.Deployment), "3000000000") }},
		{"Grafana says alerting", "alertmanager", `{"status":"firing","state":"alerting","orgId":1,"groupKey":"g","alerts":[` + alert("firing", "", `,"values":{"B":44.2,"C":1},"dashboardURL":""`) + `]}`,
			"production anomaly critical firing group=g", nil},
		{"Grafana has no data", "alertmanager", `{"status":"firing","groupKey":"g","alerts":[` + alert("firing", "", `,"values":null,"valueString":null`) + `]}`, "production anomaly critical firing group=g", nil},

		{"one of a batch is broken", "generic", "[" + event("error_detected", `[]`) + "," + event("health_check_failed", `{"endpoint":"/x"}`) + "]", "production health warning firing | why", nil},
		{"frequency with a point", "generic", event("error_detected", `{"type":"E","frequency":12.0,"affectedUsers":"1e3"}`), "production error warning firing",
			func(o Observation) string { return eq(fmt.Sprint(o.Error.Frequency, o.Error.Users), "12 1000") }},
		{"data is a text of JSON", "generic", event("error_detected", `"{\"type\":\"E\"}"`), "production error warning firing", nil},
		{"data in base64", "generic", `{"specversion":"1.0","id":"1","source":"s","type":"production.error_detected","data_base64":"eyJ0eXBlIjoiRSJ9"}`, "production error warning firing", nil},
		{"status in capitals", "generic", event("anomaly_detected", `{"metric":"m","status":"RESOLVED"}`), "production anomaly warning resolved", nil},
		{"status recovered", "generic", event("health_check_failed", `{"endpoint":"/x","status":"healthy"}`), "production health warning resolved", nil},
		{"status closed", "generic", event("error_detected", `{"type":"E","status":"closed"}`), "production error warning resolved", nil},
		{"severity high", "generic", event("error_detected", `{"type":"E","severity":"HIGH"}`), "production error warning firing", nil},
		{"severity sev-1", "generic", event("error_detected", `{"type":"E","severity":"SEV-1"}`), "production error critical firing", nil},
		{"stack of null", "generic", event("error_detected", `{"type":"E","stack":null}`), "production error warning firing", nil},
		{"frames that are texts", "generic", event("error_detected", `{"type":"E","stack":["at f (/srv/a.js:3:1)","at g (/srv/b.js:4:1)"]}`), "production error warning firing",
			func(o Observation) string { return eq(fmt.Sprint(len(o.Error.Stack)), "2") }},
		{"a line below nothing", "generic", event("error_detected", `{"stack":[{"file":"a.go","line":-5}]}`), "production error warning firing",
			func(o Observation) string { return eq(fmt.Sprint(o.Error.Stack[0].Line), "0") }},
		{"the body is a number", "generic", "7", "error", nil},
		{"the body is empty", "generic", "", "error", nil},
		{"an empty batch", "generic", "[]", "why", nil},
		{"data with the key twice", "generic", event("anomaly_detected", `{"metric":"a","Metric":"b","METRIC":"c"}`), "production anomaly warning firing", nil},
		{"a time of milliseconds", "generic", event("anomaly_detected", `{"metric":"m","since":1772359200000}`), "production anomaly warning firing",
			func(o Observation) string { return eq(o.Since.Format(time.RFC3339), "2026-03-01T10:00:00Z") }},
		{"a clock that is ahead", "generic", event("anomaly_detected", `{"metric":"m","at":"2026-03-01T11:20:00Z"}`), "production anomaly warning firing",
			func(o Observation) string { return notAfter(o) }},
		{"since after at", "generic", event("anomaly_detected", `{"metric":"m","at":"2026-03-01T10:00:00Z","since":"2026-03-01T10:20:00Z"}`), "production anomaly warning firing",
			func(o Observation) string { return notAfter(o) }},

		{"Sentry does not say what is the app's own", "sentry", sentry("event", `{"issue_id":"1","level":"fatal","exception":{"values":[{"type":"E","stacktrace":{"frames":[
			{"filename":"/srv/node_modules/x.js","lineno":1,"in_app":null},{"filename":"/srv/app.js","lineno":2}]}}]}}`), "production error critical firing group=sentry/1",
			func(o Observation) string {
				return eq(fmt.Sprint(o.Error.Stack[0].InApp, o.Error.Stack[1].InApp), "true false")
			}},
		{"Sentry's tags are objects", "sentry", sentry("event", `{"issue_id":"1","level":"error","tags":[{"key":"environment","value":"staging"}]}`), "staging error warning firing group=sentry/1", nil},
		{"Sentry's tags have a null", "sentry", sentry("event", `{"issue_id":"1","level":"error","tags":[["environment",null],["level","error"]]}`), "production error warning firing group=sentry/1", nil},
		{"Sentry's line is a text", "sentry", sentry("event", `{"issue_id":"1","level":"error","exception":{"values":[{"type":"E","stacktrace":{"frames":[{"filename":"a.py","lineno":"7"}]}}]}}`),
			"production error warning firing group=sentry/1", func(o Observation) string { return eq(fmt.Sprint(o.Error.Stack[0].Line), "7") }},
		{"Sentry's exception is null", "sentry", sentry("error", `{"issue_id":1,"level":"error","exception":null,"message":null,"release":null}`), "production error warning firing group=sentry/1", nil},
		{"an issue of years ago is back", "sentry", `{"action":"unresolved","data":{"issue":{"id":"5","title":"E","level":"error","firstSeen":"2023-01-01T00:00:00Z","lastSeen":"2026-03-01T10:00:00Z"}}}`,
			"production error warning firing group=sentry/5", func(o Observation) string { return eq(o.began().Format(time.RFC3339), "2026-03-01T10:00:00Z") }},
		{"an issue without its number", "sentry", `{"action":"created","data":{"issue":{"title":"E"}}}`, "production error warning firing", nil},
		{"a metric alert without its rule", "sentry", `{"action":"critical","data":{"metric_alert":{"id":"7"}}}`, "production anomaly critical firing group=sentry/metric/7", nil},
	} {
		t.Run(tt.kind+": "+tt.name, func(t *testing.T) {
			list, why, err := Read(Hook{Name: "h", Kind: HookKind(tt.kind), Repo: "acme/shop"}, Message{Body: []byte(tt.body), Received: received})
			if got := seen(list, why, err); got != tt.want {
				t.Fatalf("%s; want %s (%s, %v)", got, tt.want, why, err)
			}
			if tt.check != nil {
				if wrong := tt.check(list[0]); wrong != "" {
					data, _ := json.Marshal(list[0])
					t.Errorf("%s in %s", wrong, data)
				}
			}
		})
	}
}

func eq(got, want string) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s, not %s,", got, want)
}

func notAfter(o Observation) string {
	if o.At.After(received) || o.began().After(received) {
		return "it begins in the future"
	}
	return ""
}

// Stories as an outsider would think of them: how a place is written, what nobody says is
// over, what was dismissed before something new came.
func TestTrackerFromOutside(t *testing.T) {
	t.Parallel()
	failing := func(times ...string) Observation {
		return Observation{Kind: KindError, Source: "sentry", Repo: "acme/shop", Environment: "production", Severity: SeverityCritical, Status: StatusFiring, Title: "E",
			Group: "sentry/1", Error: &Error{Type: "E"}, Each: true}
	}
	deploy := func(k *keeper, environment string) {
		k.deployed = append(k.deployed, Deployment{ID: int64(len(k.deployed) + 1), Repo: "acme/shop", Environment: environment, At: k.now, State: "success", Commit: sha(len(k.deployed) + 1)})
	}
	take := func(k *keeper, o Observation) Note {
		o.At = k.now
		d := k.tracker()
		n := d.Take(o)
		k.keep(t, d)
		return n
	}
	tick := func(k *keeper, after time.Duration) *Incident {
		k.now = k.now.Add(after)
		d := k.tracker()
		d.Tick()
		k.keep(t, d)
		return k.incidents[0]
	}

	t.Run("the environment is written in another way", func(t *testing.T) {
		k := newKeeper()
		deploy(k, "Production")
		k.now = k.now.Add(time.Minute)
		i := take(k, anomaly("production", "g", k.now, true)).Incident
		if i.Environment != "Production" || len(Candidates(i, k.deployed)) != 1 {
			t.Errorf("in %q, %d candidates", i.Environment, len(Candidates(i, k.deployed)))
		}
		if n := take(k, anomaly("PRODUCTION", "g", k.now, true)); n.Incident != i {
			t.Errorf("%s", n)
		}
	})
	t.Run("an error of which nobody says that it is over", func(t *testing.T) {
		k := newKeeper()
		deploy(k, "production")
		take(k, failing())
		if i := tick(k, 2*time.Hour); i.State != StateOpen { // nothing was done about it
			t.Errorf("it is %s", i.State)
		}
		deploy(k, "production")
		if i := tick(k, 59*time.Minute); i.State != StateOpen {
			t.Errorf("it is %s", i.State)
		}
		if i := tick(k, 2*time.Minute); i.State != StateResolved || !strings.Contains(i.Why, "deployment 2") {
			t.Errorf("it is %s: %s", i.State, i.Why)
		}
	})
	t.Run("an error that comes on after the next deployment", func(t *testing.T) {
		k := newKeeper()
		take(k, failing())
		k.now = k.now.Add(time.Minute)
		deploy(k, "production")
		k.now = k.now.Add(30 * time.Minute)
		take(k, failing())
		if i := tick(k, 3*time.Hour); i.State != StateOpen {
			t.Errorf("it is %s", i.State)
		}
	})
	t.Run("an error with an alert that goes on", func(t *testing.T) {
		k := newKeeper()
		deploy(k, "production")
		take(k, failing())
		take(k, anomaly("production", "g", k.now, true)) // taken for the same thing
		k.now = k.now.Add(time.Minute)
		deploy(k, "production")
		if i := tick(k, 3*time.Hour); i.State != StateOpen || len(i.Joined) != 1 {
			t.Fatalf("it is %s, %q", i.State, i.Joined)
		}
		over := anomaly("production", "g", k.now, true)
		over.Status = StatusResolved
		take(k, over)
		if i := tick(k, time.Minute); i.State != StateResolved {
			t.Errorf("it is %s", i.State)
		}
	})
	t.Run("what was dismissed comes after a new deployment", func(t *testing.T) {
		k := newKeeper()
		deploy(k, "production")
		i := take(k, anomaly("production", "g", k.now, true)).Incident
		d := k.tracker()
		d.Record(i, EventDismissed, EventData{By: "ann", Why: "noise"})
		k.keep(t, d)
		k.now = k.now.Add(time.Hour)
		if n := take(k, anomaly("production", "g", k.now, true)); n.Incident != i {
			t.Errorf("%s", n)
		}
		deploy(k, "staging")
		if n := take(k, anomaly("production", "g", k.now, true)); n.Incident != i {
			t.Errorf("%s", n)
		}
		deploy(k, "production")
		k.now = k.now.Add(time.Minute)
		if n := take(k, anomaly("production", "g", k.now, true)); n.Incident == i || n.What != "opened" {
			t.Errorf("%s", n)
		}
	})
	t.Run("over before it began", func(t *testing.T) {
		k := newKeeper()
		o := anomaly("production", "g", k.now, true)
		o.Status = StatusResolved
		if n := take(k, o); n.Incident != nil || len(k.incidents) != 0 {
			t.Errorf("%s", n)
		}
	})
	t.Run("a stack that comes later", func(t *testing.T) {
		k := newKeeper()
		deploy(k, "production")
		k.now = k.now.Add(time.Minute)
		i := take(k, anomaly("production", "g", k.now, true)).Incident
		d := k.tracker()
		d.Record(i, EventCorrelated, EventData{Weighed: i.Weigh(Candidates(i, k.deployed))})
		k.keep(t, d)
		o := failing()
		o.Error = &Error{Type: "E", Stack: []Frame{{File: "a.go", Line: 3, InApp: true}}}
		take(k, o)
		if !i.Uncorrelated(k.deployed) {
			t.Error("it is not weighed again")
		}
		d = k.tracker()
		d.Record(i, EventCorrelated, EventData{Weighed: i.Weigh(Candidates(i, k.deployed))})
		k.keep(t, d)
		take(k, o)
		if i.Uncorrelated(k.deployed) {
			t.Error("it is weighed again for the same")
		}
	})
}
