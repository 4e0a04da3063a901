package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/shell"
	"forge/github/githubtest"
	"forge/learn/metrics"
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

// scraped is what a real server tells a monitor after a run, with a budget set.
func scraped(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	s, _ := verifiedServer(t, githubtest.DeliveryFaults{}, map[string]string{"FORGE_DAY_USD": "50", "FORGE_MONTH_USD": "500"})
	if _, err := s.DB.MeasureRuns(t.Context(), metrics.Of); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(s.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
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

// Every metric and label that an alert or a panel asks for is in a real scrape, and
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

// Every alert says how bad it is, what is the matter and what to do, with commands
// that exist.
func TestAlerts(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	count := 0
	for _, g := range alerts(t).Groups {
		for _, r := range g.Rules {
			count++
			if names[r.Alert] || !regexp.MustCompile(`^Forge[A-Z][A-Za-z]+$`).MatchString(r.Alert) {
				t.Errorf("%s: the name is there twice, or not one", r.Alert)
			}
			names[r.Alert] = true
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
			}
			if len(r.Annotations["summary"]) < 20 || len(r.Annotations["action"]) < 40 {
				t.Errorf("%s does not say what is the matter or what to do: %v", r.Alert, r.Annotations)
			}
			if r.For != "" {
				if _, err := time.ParseDuration(r.For); err != nil {
					t.Errorf("%s: for: %v", r.Alert, err)
				}
			}
			checkCommands(t, r.Alert, r.Annotations["action"])
		}
	}
	if count < 15 {
		t.Errorf("%d alerts", count)
	}
}

var quoted = regexp.MustCompile("`(/?)forge ([^`]+)`")

// checkCommands holds that what a text tells people to type can be typed.
func checkCommands(t *testing.T, where, text string) {
	t.Helper()
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[2])
		if m[1] == "/" {
			if readme := read(t, "../../.github/docs/loop.md"); !strings.Contains(readme, "`/forge "+words[0]) {
				t.Errorf("%s: .github/docs/loop.md knows no /forge %s", where, words[0])
			}
			continue
		}
		cmd, _, err := rootCommand().Find(words[:1])
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		for _, w := range words[1:] {
			if flag, ok := strings.CutPrefix(w, "--"); ok && cmd.Flags().Lookup(flag) == nil {
				t.Errorf("%s: %s has no flag %s", where, cmd.CommandPath(), w)
			}
		}
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

// The files come out of the binary as they are in the tree.
func TestMonitoringCommand(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"alerts": "alerts.yml", "grafana": "grafana.json", "logs": "log-keys.md"} {
		want, err := os.ReadFile(filepath.Join("monitoring", file))
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		if code := Main(t.Context(), []string{"monitoring", name}, &out, &errs); code != shell.Done || !bytes.Equal(out.Bytes(), want) {
			t.Errorf("forge monitoring %s: exit code %d, %d bytes, want %d: %s", name, code, out.Len(), len(want), errs.String())
		}
	}
}

// Log lines are text or JSON, and nothing else.
func TestLogFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"text": "level=WARN msg=hello run=7\n", "json": `"level":"WARN","msg":"hello","run":7}`} {
		var errs bytes.Buffer
		cmd := rootCommand()
		cmd.SetErr(&errs)
		if err := cmd.ParseFlags([]string{"--log-format", format}); err != nil {
			t.Fatal(err)
		}
		shell.Logger(cmd).Warn("hello", "run", 7)
		if !strings.Contains(errs.String(), want) {
			t.Errorf("--log-format %s writes %q, want %q", format, errs.String(), want)
		}
	}
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"serve", "--log-format", "xml"}, &out, &out); code != shell.Misused ||
		!strings.Contains(out.String(), "--log-format xml: there are text and json") {
		t.Errorf("forge serve --log-format xml: exit code %d: %s", code, out.String())
	}
}
