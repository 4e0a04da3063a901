package play

import (
	"bytes"
	"encoding/json"
	"fmt"
	"forge/cmd/forge/server/servertest"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"forge/cmd/forge/monitoring"
	"forge/learn/metrics"
	"forge/pipeline"
)

// rules are Prometheus' rule files, as far as Forge uses them. Unknown keys are errors.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func alerts(t *testing.T) (r rules) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(monitoring.Alerts), yaml.Strict()).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// panel is a panel of Grafana's, as far as a test looks at it.
type panel struct {
	ID         int    `json:"id"`
	Type       string `json:"type"`
	Title      string `json:"title"`
	GridPos    struct{ X, Y, W, H int }
	Datasource struct{ UID string }
	Targets    []struct {
		RefID      string `json:"refId"`
		Expr       string
		Datasource struct{ UID string }
	}
}

type board struct {
	Title         string
	SchemaVersion int
	Panels        []panel
	Templating    struct {
		List []struct {
			Name, Type, Definition string
			Query                  any
		}
	}
}

func dashboardFile(t *testing.T) (b board) {
	t.Helper()
	if err := json.Unmarshal([]byte(monitoring.Grafana), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// scraped is what a server tells a monitor after a run, with a budget set.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	ts := newServer(t, servertest.Options{Env: map[string]string{"FORGE_DAY_USD": "50", "FORGE_MONTH_USD": "500"}})
	ts.Label("acme")
	ts.UntilState(pipeline.StateVerified)
	_, err := ts.Forge.DB.MeasureRuns(t.Context(), metrics.Of)
	ts.Must(err)
	resp, err := http.Get(ts.Forge.URL + "/metrics")
	ts.Must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %v %s", resp.Status, err, body)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// Covers M2: every metric and label that an alert or a panel asks for is in a real scrape, and
// so is every value of a label that Forge itself gives.
func TestExpressions(t *testing.T) {
	t.Parallel()
	families := scraped(t)
	have := map[string]map[string][]string{} // metric, label, values
	for name, f := range families {
		labels := map[string][]string{"instance": nil, "job": nil} // Prometheus' own
		for _, m := range f.Metric {
			for _, l := range m.Label {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		have[name] = labels
		if f.GetType() == dto.MetricType_HISTOGRAM {
			labels["le"] = nil
			have[name+"_bucket"], have[name+"_sum"], have[name+"_count"] = labels, labels, labels
		}
		if f.GetType() == dto.MetricType_SUMMARY {
			labels["quantile"] = nil
		}
	}
	have["up"] = map[string][]string{"instance": nil, "job": nil}
	// What a first run cannot have: what memory changes, which takes forty;
	have["forge_memory_effect"] = map[string][]string{"instance": nil, "job": nil, "bound": {"value", "low", "high"}}
	// what came in by hooks, of which it has none;
	have["forge_hook_deliveries_total"] = map[string][]string{"instance": nil, "job": nil, "hook": nil, "result": {"taken", "unproven", "busy"}}
	// figures of dismissals and bounces exist when there are any.
	known := map[string]bool{}
	for _, d := range figureKeys() {
		known[d] = true
	}
	n := 0
	look := func(where, expr string) {
		n++
		found, err := selectors(expr)
		if err != nil || len(found) == 0 {
			t.Errorf("%s: %q: %v", where, expr, err)
			return
		}
		for _, s := range found {
			labels, ok := have[s.metric]
			if !ok {
				t.Errorf("%s: %q asks for %s, which no scrape has", where, expr, s.metric)
				continue
			}
			for _, m := range s.matchers {
				values, ok := labels[m.label]
				switch {
				case !ok:
					t.Errorf("%s: %q: %s has no label %s", where, expr, s.metric, m.label)
				case strings.Contains(m.value, "$") || values == nil || m.op == "!=":
				default:
					for _, v := range strings.Split(m.value, "|") {
						if !slices.Contains(values, v) && !(m.label == "metric" && known[v]) {
							t.Errorf("%s: %q: %s has %s=%q, and not %q", where, expr, s.metric, m.label, values, v)
						}
					}
				}
			}
			for _, by := range s.by {
				if _, ok := labels[by]; !ok {
					t.Errorf("%s: %q groups by %s, which %s does not have", where, expr, by, s.metric)
				}
			}
		}
	}
	for _, g := range alerts(t).Groups {
		for _, r := range g.Rules {
			look(r.Alert, r.Expr)
		}
	}
	for _, p := range dashboardFile(t).Panels {
		for _, target := range p.Targets {
			look(p.Title, target.Expr)
		}
	}
	if n < 50 {
		t.Errorf("looked at %d expressions only", n)
	}
}

// The dashboard can be imported: ids are unique, panels do not overlap and fill
// rows of 24, and all ask the chosen data source.
func TestDashboardFile(t *testing.T) {
	t.Parallel()
	b := dashboardFile(t)
	ids, taken, rows := map[int]string{}, map[[2]int]string{}, []string{}
	for _, p := range b.Panels {
		if ids[p.ID] != "" || p.ID == 0 || p.Title == "" {
			t.Errorf("%q and %q have the id %d", p.Title, ids[p.ID], p.ID)
		}
		ids[p.ID] = p.Title
		g := p.GridPos
		if g.W <= 0 || g.H <= 0 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("%s is outside of the grid: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Datasource.UID != "${datasource}" {
				t.Errorf("%s: two queries are called %s, or it asks %s", p.Title, target.RefID, target.Datasource.UID)
			}
			refs[target.RefID] = true
		}
		if len(refs) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("%s asks %d times, of %s", p.Title, len(refs), p.Datasource.UID)
		}
	}
	if want := []string{"Work", "Loops", "Cost", "GitHub", "Health"}; !slices.Equal(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	variables := map[string]string{}
	for _, v := range b.Templating.List {
		variables[v.Name] = v.Type
	}
	if variables["datasource"] != "datasource" || variables["instance"] != "query" || b.SchemaVersion < 39 || b.Title == "" {
		t.Errorf("variables %v, schema %d, title %q", variables, b.SchemaVersion, b.Title)
	}
}

// selector is what a PromQL expression asks for: a metric with matchers, and the
// labels that it is grouped by.
type selector struct {
	metric   string
	matchers []matcher
	by       []string
}

type matcher struct{ label, op, value string }

// The words of PromQL that Forge's expressions use. One that is missing here is a
// typing error, or belongs here.
var (
	functions    = []string{"absent", "changes", "clamp_min", "delta", "histogram_quantile", "increase", "rate"}
	aggregations = []string{"avg", "count", "max", "min", "sum"}
	operators    = []string{"and", "or", "unless"}
)

var promWord = regexp.MustCompile(`^(?:[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?|"[^"]*"|=~|!~|!=|==|>=|<=|[-+*/<>=(){}\[\],])`)

// selectors reads an expression: its brackets must match, its words be known, and
// ranges stand where functions need them. It is no parser of all of PromQL.
func selectors(expr string) (out []selector, err error) {
	var tokens []string
	for rest := strings.TrimSpace(expr); rest != ""; rest = strings.TrimSpace(rest) {
		tok := promWord.FindString(rest)
		if tok == "" {
			return nil, fmt.Errorf("what is %.20q?", rest)
		}
		// A range is one token.
		if tok == "[" {
			tok = regexp.MustCompile(`^\[[0-9]+[smhdw]\]`).FindString(rest)
			if tok == "" {
				return nil, fmt.Errorf("no range: %.20q", rest)
			}
		}
		tokens = append(tokens, tok)
		rest = rest[len(tok):]
	}
	at := func(i int) string {
		if i < len(tokens) {
			return tokens[i]
		}
		return ""
	}
	var open []string // functions and brackets
	var by []string   // of the aggregation that is being read
	for i := 0; i < len(tokens); i++ {
		tok := tokens[i]
		switch {
		case tok == "(":
			name := ""
			if i > 0 && slices.Contains(functions, tokens[i-1]) {
				name = tokens[i-1]
			}
			open = append(open, name)
		case tok == ")":
			if len(open) == 0 {
				return nil, fmt.Errorf("one ) too many")
			}
			open = open[:len(open)-1]
		case slices.Contains(operators, tok):
			by = nil
		case slices.Contains(functions, tok) && at(i+1) == "(":
		case slices.Contains(aggregations, tok):
			by = nil
			if at(i+1) == "by" && at(i+2) == "(" {
				for i += 3; at(i) != ")"; i++ {
					if at(i) == "" {
						return nil, fmt.Errorf("by ( does not end")
					}
					if at(i) != "," {
						by = append(by, at(i))
					}
				}
			}
			if at(i+1) != "(" {
				return nil, fmt.Errorf("%s without (", tok)
			}
		case regexp.MustCompile(`^[a-zA-Z_:]`).MatchString(tok):
			s := selector{metric: tok, by: by}
			if at(i+1) == "{" {
				for i += 2; at(i) != "}"; i++ {
					if at(i) == "," {
						continue
					}
					if !slices.Contains([]string{"=", "=~", "!=", "!~"}, at(i+1)) || !strings.HasPrefix(at(i+2), `"`) {
						return nil, fmt.Errorf("no matcher at %q", at(i))
					}
					s.matchers = append(s.matchers, matcher{at(i), at(i + 1), strings.Trim(at(i+2), `"`)})
					i += 2
				}
			}
			ranged := strings.HasPrefix(at(i+1), "[")
			if ranged {
				i++
			}
			over := len(open) > 0 && slices.Contains([]string{"changes", "delta", "increase", "rate"}, open[len(open)-1])
			if ranged != over {
				return nil, fmt.Errorf("%s needs a range exactly where a function takes one", s.metric)
			}
			out = append(out, s)
		}
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("%d ( do not end", len(open))
	}
	return out, nil
}

func figureKeys() (keys []string) {
	for _, d := range metrics.Catalogue() {
		keys = append(keys, d.Key)
	}
	return keys
}

func TestSelectors(t *testing.T) {
	t.Parallel()
	got, err := selectors(`max by (state, x) (delta(forge_runs{state=~"a|b", x!=""}[1d])) > 3 * 86400 and absent(forge_y)`)
	want := []selector{{"forge_runs", []matcher{{"state", "=~", "a|b"}, {"x", "!=", ""}}, []string{"state", "x"}}, {"forge_y", nil, nil}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(selector{}, matcher{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, bad := range []string{`max(forge_runs`, `max(forge_runs))`, `rate(forge_runs)`, `forge_runs[5m]`, `increase(forge_runs[5])`,
		`forge_runs{state}`, `forge_runs{state="a}`,
		`max by (state forge_runs`, `max forge_runs`, `forge_runs ~ 2`, `forge_runs{state=a}`} {
		if got, err := selectors(bad); err == nil {
			t.Errorf("selectors(%s) = %v, want an error", bad, got)
		}
	}
}
