package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"forge/cmd/forge/monitoring"
	"forge/cmd/forge/shell"
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
