package process

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/github/githubtest"
	"forge/lab/meter"
	"forge/pipeline/agent/agenttest"
)

// Covers T7: on a real module, a run that is stopped at its first bounce asks a
// human, who answers by a comment, a box or a button; each choice is carried out.
func TestEscalationOnRealModule(t *testing.T) {
	long(t)
	t.Parallel()
	l := newLab(t, labOptions{})
	limits := "loop:\n  review_bounces: 0\n"
	if _, err := l.gh.As("acme").PushFiles(e2eRepo,
		githubtest.Push{Branch: "main", Message: "Ask at once", Files: map[string]*string{".github/forge.yml": &limits}}); err != nil {
		t.Fatal(err)
	}
	l.serve()
	words := read(t, "testdata/issue.md")
	title, body, _ := strings.Cut(words, "\n")
	for _, c := range []struct {
		name   string
		answer func(*escalation)
		want   func(*escalation, *githubtest.Pull) bool
	}{
		{"continue by comment", func(e *escalation) { e.comment("/forge continue 3\nMind the leading zeros.") }, verifiedPull},
		{"continue by box", func(e *escalation) { e.tick("/forge continue") }, verifiedPull},
		{"continue by button", func(e *escalation) { e.press("continue:1@1") }, verifiedPull},
		{"history by box, accept by button", func(e *escalation) {
			e.tick("/forge history")
			e.until("the history", func(p *githubtest.Pull) bool { return strings.Contains(texts(p), "## Iteration 1") })
			e.press("accept@1")
		}, func(e *escalation, p *githubtest.Pull) bool {
			return p.Draft && strings.Contains(p.Body, "Accepted with known issues") && strings.Contains(p.Body, "kept as technical debt in #")
		}},
		{"cancel by comment", func(e *escalation) { e.comment("/forge cancel") }, func(_ *escalation, p *githubtest.Pull) bool {
			return p.State == "closed" && !p.Merged && slices.ContainsFunc(p.Checks, func(c githubtest.CheckRun) bool { return c.Conclusion == "cancelled" })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := l.gh.As("acme").OpenIssue(e2eRepo, title, strings.TrimSpace(body))
			if err != nil {
				t.Fatal(err)
			}
			e := &escalation{t, l, n}
			if err := l.gh.As("acme").Label(e2eRepo, n, "forge"); err != nil {
				t.Fatal(err)
			}
			e.until("a question", func(p *githubtest.Pull) bool {
				return strings.Contains(texts(p), "Your choice") && len(e.buttons(p)) > 0
			})
			c.answer(e)
			e.until("what was chosen", func(p *githubtest.Pull) bool { return c.want(e, p) })
			if e.until("the answer", func(p *githubtest.Pull) bool {
				return strings.Contains(texts(p), "— settled") || p.State == "closed"
			}); !strings.Contains(texts(e.pull()), "acme") {
				t.Errorf("who answered is not shown: %s", texts(e.pull()))
			}
		})
	}
	l.checkContract()
}

// escalation is an issue of the lab whose run asks a human.
type escalation struct {
	t     *testing.T
	l     *labTest
	issue int
}

func (e *escalation) pull() *githubtest.Pull {
	e.t.Helper()
	pulls, err := e.l.gh.Pulls(e2eRepo)
	if err != nil {
		e.t.Fatal(err)
	}
	for i := range pulls {
		if strings.HasPrefix(pulls[i].Branch, fmt.Sprintf("forge/issue-%d-", e.issue)) {
			return &pulls[i]
		}
	}
	return nil
}

func (e *escalation) until(what string, cond func(*githubtest.Pull) bool) *githubtest.Pull {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 2*time.Minute)
	defer cancel()
	if err := e.l.gh.Wait(ctx, func() bool { p := e.pull(); return p != nil && cond(p) }); err != nil {
		e.t.Fatalf("no %s on the pull request of issue %d: %+v\nlog: %s", what, e.issue, e.pull(), e.l.log())
	}
	return e.pull()
}

func (e *escalation) comment(text string) {
	e.t.Helper()
	if _, err := e.l.gh.As("acme").Comment(e2eRepo, e.pull().Number, text); err != nil {
		e.t.Fatal(err)
	}
}

func (e *escalation) tick(choice string) {
	e.t.Helper()
	for _, c := range e.pull().Comments {
		n := 0
		for line := range strings.SplitSeq(c.Body, "\n") {
			if !strings.HasPrefix(line, "- [ ] ") {
				continue
			}
			if strings.Contains(line, choice) {
				if err := e.l.gh.As("acme").TickBox(e2eRepo, c.ID, n); err != nil {
					e.t.Fatal(err)
				}
				return
			}
			n++
		}
	}
	e.t.Fatalf("no box for %q in %s", choice, texts(e.pull()))
}

// buttons returns the identifiers of the head's buttons, and the check run's id.
func (e *escalation) buttons(p *githubtest.Pull) map[string]int64 {
	out := map[string]int64{}
	for _, c := range p.Checks {
		for _, id := range c.Actions {
			out[id] = c.ID
		}
	}
	return out
}

func (e *escalation) press(identifier string) {
	e.t.Helper()
	all := e.buttons(e.pull())
	id, ok := all[identifier]
	if !ok {
		e.t.Fatalf("no button %q; there are %v", identifier, all)
	}
	if err := e.l.gh.As("acme").Press(e2eRepo, id, identifier); err != nil {
		e.t.Fatal(err)
	}
}

func texts(p *githubtest.Pull) string {
	var b strings.Builder
	for _, c := range p.Comments {
		b.WriteString(c.Author + ": " + c.Body + "\n")
	}
	return b.String()
}

func verifiedPull(_ *escalation, p *githubtest.Pull) bool {
	return !p.Draft && slices.ContainsFunc(p.Checks, func(c githubtest.CheckRun) bool { return c.Name == "forge" && c.Conclusion == "success" })
}

// The same through the real clients of both providers, against servers that speak
// their protocols and play the tape.
func TestProviders(t *testing.T) {
	long(t)
	t.Parallel()
	for _, provider := range []string{"openai", "anthropic"} {
		t.Run(provider, func(t *testing.T) {
			models, err := agenttest.NewServer([]byte(read(t, "testdata/tape.txtar")))
			if err != nil {
				t.Fatal(err)
			}
			defer models.Close()
			l := newLab(t, labOptions{models: []string{
				"FORGE_MODEL=" + provider + "/tape", "OPENAI_BASE_URL=" + models.URL + "/v1", "ANTHROPIC_BASE_URL=" + models.URL,
				"OPENAI_API_KEY=sk-test-0000000000", "ANTHROPIC_API_KEY=sk-ant-test-0000000000",
			}})
			l.serve()
			l.start()
			l.checkHead(l.verified(patience))
			l.checkContract()
			l.checkSecrets()
			meter.CheckTokens(t, models, 66_000) // half as many again as before the roles were told so much
		})
	}
}
