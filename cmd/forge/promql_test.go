package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forge/learn/metrics"
)

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

var promToken = regexp.MustCompile(`^(?:[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?|"[^"]*"|=~|!~|!=|==|>=|<=|[-+*/<>=(){}\[\],])`)

// selectors reads an expression: its brackets must match, its words be known, and
// ranges stand where functions need them. It is no parser of all of PromQL.
func selectors(expr string) (out []selector, err error) {
	var tokens []string
	for rest := strings.TrimSpace(expr); rest != ""; rest = strings.TrimSpace(rest) {
		tok := promToken.FindString(rest)
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
