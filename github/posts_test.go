package github

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gh "github.com/google/go-github/v62/github"

	"forge/pipeline"
	"forge/pipeline/command"
)

// noText is why a call needs nothing that makes text harmless.
const noText = "no text: "

// posts are all the places that change something on GitHub: file, function, call. Each says
// what its text has gone through, in calls that stand in that function; the rendered View's
// are p.v's. Of the one in another function, FILE FUNCTION stands before it.
var posts = map[string][]string{
	"commit.go Commit Mutate":                                    {"../pipeline/sandbox/commit.go messageOf: text.CommitMessage"},
	"commit.go MakeBranch Git.CreateRef":                         {noText + "a branch whose name package phase makes"},
	"commit.go MergeInto Repositories.Merge":                     {"../pipeline/sandbox/commit.go messageOf: text.CommitMessage"},
	"deploy.go Deploy Repositories.CreateDeployment":             {"render.Line"},
	"deploy.go OpenIssue Issues.Create":                          {"render.Line", "render.Block"},
	"deploy.go OpenDraft PullRequests.Create":                    {"render.Line", "render.Block"},
	"propose.go Propose Repositories.CreateFile":                 {"text.CommitMessage"},
	"propose.go Propose PullRequests.Create":                     {"render.Line", "render.Block"},
	"propose.go restart Git.CreateRef":                           {noText + "Forge's own branch"},
	"propose.go restart Git.UpdateRef":                           {noText + "Forge's own branch"},
	"publish_check.go check Checks.CreateCheckRun":               {"publish_check.go checks: p.v.Check"},
	"publish_check.go updateCheck NewRequest":                    {"publish_check.go checks: p.v.Check"},
	"publish_comment.go one Issues.EditComment":                  {"funnel"},
	"publish_comment.go one Issues.CreateComment":                {"funnel"},
	"publish_debt.go open Issues.Create":                         {"funnel"},
	"publish_pull.go pull PullRequests.Edit":                     {"p.v.PullTitle", "p.v.PullBody"},
	"publish_pull.go createPull PullRequests.Create":             {"publish_pull.go openPull: p.v.PullTitle", "publish_pull.go openPull: p.v.PullBody"},
	"publish_base.go repoint PullRequests.Edit":                  {noText + "the base branch's name"},
	"publish_pull.go handOver Issues.AddAssignees":               {noText + "logins"},
	"publish_pull.go handOver PullRequests.RequestReviewers":     {noText + "logins"},
	"publish_pull.go ready Mutate":                               {noText + "the pull request's id"},
	"publish_review.go postReview PullRequests.CreateReview":     {"funnel"},
	"publish_thread.go take Mutate":                              {"publish_thread.go turn: p.v.FixedNote", "publish_thread.go turn: p.v.ArgumentNote"},
	"register.go Register Apps.CompleteAppManifest":              {noText + "a code of GitHub's"},
	"register.go Redeliver Apps.RedeliverHookDelivery":           {noText + "a delivery's id"},
	"register.go EnsureLabel Issues.CreateLabel":                 {noText + "the operator's own label"},
	"reply.go say Issues.CreateComment":                          {"reply.go Reply: replyText", "reply.go Ask: replyText", "reply.go Ask: render.Line", "reply.go replyText: render.Block"},
	"reply.go replyInThread PullRequests.CreateCommentInReplyTo": {"reply.go Reply: replyText", "reply.go Ask: replyText"},
	"ship.go MergeAt PullRequests.Merge":                         {noText + "GitHub writes the message"},
	"ship.go Enqueue Mutate":                                     {noText + "the pull request's id"},
	"ship.go Dequeue Mutate":                                     {noText + "the pull request's id"},
	"signin.go Exchange NewRequestWithContext":                   {noText + "a code of GitHub's"},
	"signin.go Revoke Authorizations.Revoke":                     {noText + "a token"},
	"sweep.go Sweep Apps.RedeliverHookDelivery":                  {noText + "a delivery's id"},
	"verdict.go ShowVerdict Checks.UpdateCheckRun":               {"render.Line", "render.Block"},
	"verdict.go ShowVerdict Checks.CreateCheckRun":               {"render.Line", "render.Block"},
}

// funnels are the publisher's own ways to the calls above, which take text: who goes them
// has it of the View.
var funnels = []string{"comment", "one", "open", "postReview"}

// onlyReads are how methods of the library begin that change nothing.
var onlyReads = regexp.MustCompile(`^(Get|List|Compare|Download|Is|Find|Search|Count|Check)`)

// Covers S24: text goes to GitHub from these places alone, and through what makes it
// harmless. A new call has to be entered here, with what its text goes through.
func TestOnePlacePosts(t *testing.T) {
	t.Parallel()
	functions, calls := sourceOf(t, "../github/*.go", "../pipeline/sandbox/commit.go")
	for name, at := range calls {
		through, known := posts[name]
		if !known {
			t.Errorf("%s changes something on GitHub, and is not in the table: say what its text goes through", name)
		}
		for _, how := range through {
			place, wanted, elsewhere := strings.Cut(how, ": ")
			switch {
			case strings.HasPrefix(how, noText) || how == "funnel":
			case !elsewhere && !at[how]:
				t.Errorf("%s does not call %s", name, how)
			case elsewhere && !functions[strings.TrimPrefix(place, "../")][wanted]:
				t.Errorf("%s: %s does not call %s", name, place, wanted)
			}
		}
	}
	for name := range posts {
		if calls[name] == nil {
			t.Errorf("%s is in the table, and does not exist", name)
		}
	}
	for name, called := range functions {
		if !strings.HasPrefix(name, "publish") || slices.Contains(funnels, name[strings.LastIndexByte(name, ' ')+1:]) {
			continue
		}
		for _, f := range funnels {
			if called["p."+f] && !slices.ContainsFunc(slices.Collect(maps.Keys(called)), func(c string) bool { return strings.HasPrefix(c, "p.v.") }) {
				t.Errorf("%s posts by p.%s what does not come from the View", name, f)
			}
		}
	}
}

// No other package speaks to GitHub's API.
func TestOnePackageSpeaksToGitHub(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../github/") || strings.HasPrefix(path, "../.") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			if strings.Contains(i.Path.Value, "google/go-github") || strings.Contains(i.Path.Value, "shurcooL") {
				t.Errorf("%s imports %s", path, i.Path.Value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sourceOf returns what each function calls, by "FILE FUNCTION", and the same for each call
// that changes something on GitHub.
func sourceOf(t *testing.T, globs ...string) (functions, calls map[string]map[string]bool) {
	t.Helper()
	services := map[string]bool{}
	for c, i := reflect.TypeFor[gh.Client](), 0; i < c.NumField(); i++ {
		services[c.Field(i).Name] = c.Field(i).IsExported() && c.Field(i).Type.Kind() == reflect.Pointer
	}
	functions, calls = map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, glob := range globs {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", glob, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				called := map[string]bool{}
				name := strings.TrimPrefix(strings.TrimPrefix(path, "../"), "github/") + " " + fn.Name.Name
				functions[name] = called
				ast.Inspect(fn, func(n ast.Node) bool {
					if call, ok := n.(*ast.CallExpr); ok {
						called[types.ExprString(call.Fun)] = true
						if w := writes(call, services); w != "" {
							calls[name+" "+w] = called
						}
					}
					return true
				})
			}
		}
	}
	return functions, calls
}

// writes names a call that changes something on GitHub; "" for others.
func writes(call *ast.CallExpr, services map[string]bool) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if on, ok := sel.X.(*ast.SelectorExpr); ok && services[on.Sel.Name] && !onlyReads.MatchString(sel.Sel.Name) {
		return on.Sel.Name + "." + sel.Sel.Name
	}
	switch sel.Sel.Name {
	case "Mutate", "Post", "PostForm":
		return sel.Sel.Name
	case "NewRequest", "NewRequestWithContext", "NewFormRequest", "NewUploadRequest":
		for _, arg := range call.Args {
			if types.ExprString(arg) == "http.MethodGet" {
				return ""
			}
		}
		return sel.Sel.Name
	}
	return ""
}

// posted keeps the texts that are posted, and answers like a GitHub that has nothing yet.
type posted struct{ texts, messages []string } // those of commits are messages

func (p *posted) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, status := `{}`, http.StatusOK
	switch path := req.URL.Path; {
	case strings.HasSuffix(path, "/access_tokens"):
		answer, status = `{"token":"ghs_x","expires_at":"2099-01-01T00:00:00Z"}`, http.StatusCreated
	case strings.HasSuffix(path, "/app"):
		answer = `{"id":1,"slug":"forge-test"}`
	case strings.Contains(path, "/users/"):
		answer = `{"id":4242,"login":"forge-test[bot]","type":"Bot"}`
	case req.Method != http.MethodGet:
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		var v any
		if err := json.Unmarshal(body, &v); err != nil {
			return nil, err
		}
		p.keep("", v)
		status = http.StatusCreated
	case strings.HasSuffix(path, "/check-runs"):
		answer = `{"total_count":0,"check_runs":[]}`
	case strings.Contains(path, "/contents/"):
		answer, status = `{"message":"Not Found"}`, http.StatusNotFound
	case strings.Contains(path, "/git/ref"):
		answer = `{"ref":"refs/heads/x","object":{"sha":"0123456789012345678901234567890123456789"}}`
	case strings.Contains(path, "/compare/"):
		answer = `{"ahead_by":0,"commits":[]}`
	default:
		answer = `[]`
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// keep collects the texts in a call, not what names things.
func (p *posted) keep(field string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			p.keep(k, x)
		}
	case []any:
		for _, x := range v {
			p.keep(field, x)
		}
	case string:
		switch {
		case field == "message":
			p.messages = append(p.messages, v)
		case !slices.Contains(fixed, field):
			p.texts = append(p.texts, v)
		}
	}
}

// obeyed are those of active that GitHub acts on in commit messages, which it shows as they are.
var obeyed = []string{"a mention", "a closing keyword", "what skips CI"}

// active is what GitHub acts on, in any text that is posted.
var active = map[string]*regexp.Regexp{
	"a mention":         regexp.MustCompile(`[@＠][A-Za-z0-9]`),
	"an image":          regexp.MustCompile(`!\[`),
	"a tag":             regexp.MustCompile(`<(img|a|script|iframe|details|h1)\b`),
	"an entity":         regexp.MustCompile(`&(#|[a-z]+;)`),
	"a closing keyword": regexp.MustCompile(`(?i)(close[sd]?|fix(e[sd])?|resolve[sd]?)\b[\s:*_]*(#|gh-|https?://|[\w.-]+/[\w.-]+#)\d?`),
	"what skips CI":     regexp.MustCompile(`(?i)\[(?:skip|no)[ -](?:ci|actions)|\[ci skip`),
	"a foreign link":    regexp.MustCompile(`\]\(https?://[a-z]*\.?example`),
}

// Covers S24: what everybody may write becomes harmless wherever it is posted, whatever it
// becomes there. What the runs' own texts become is package render's to test.
func TestAttacksPerKind(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("render/testdata/hostile.txt")
	if err != nil {
		t.Fatal(err)
	}
	repo := pipeline.Repo{ID: 1, Owner: "octo", Name: "repo", DefaultBranch: "main", Installation: 5}
	n := pipeline.Notice{Repo: repo, Issue: 7}
	kinds := map[string]func(context.Context, *App, string) error{
		"an answer": func(ctx context.Context, a *App, s string) error { return a.Reply(ctx, n, s, "key") },
		"a question": func(ctx context.Context, a *App, s string) error {
			return a.Ask(ctx, n, command.Question{Text: s, Choices: []command.Choice{{Write: "/forge go", What: s}}}, "key")
		},
		"an issue": func(ctx context.Context, a *App, s string) error {
			_, _, err := a.OpenIssue(ctx, repo, s, s, "key")
			return err
		},
		"a draft": func(ctx context.Context, a *App, s string) error {
			_, _, err := a.OpenDraft(ctx, repo, "forge/x", s, s)
			return err
		},
		"a deployment": func(ctx context.Context, a *App, s string) error {
			_, err := a.Deploy(ctx, repo, Deploying{Environment: "e", Commit: strings.Repeat("a", 40), Task: "deploy", Any: true, Key: "key", Description: s})
			return err
		},
		"a verdict": func(ctx context.Context, a *App, s string) error {
			return a.ShowVerdict(ctx, repo, Verdict{SHA: strings.Repeat("a", 40), Key: "key", Conclusion: "failure", Title: s, Summary: s})
		},
		"a proposal": func(ctx context.Context, a *App, s string) error {
			_, _, err := a.Propose(ctx, repo, Proposal{Branch: "forge/x", Path: "a.md", Title: s, Body: s, Message: s,
				Change: func([]byte) ([]byte, error) { return []byte("x"), nil }})
			return err
		},
	}
	for name, post := range kinds {
		t.Run(name, func(t *testing.T) {
			to := &posted{}
			a, err := New(Options{AppID: 1, PrivateKey: testKey(), Base: to, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
			if err != nil {
				t.Fatal(err)
			}
			tried := 0
			for line := range strings.Lines(string(raw)) {
				line = strings.TrimSpace(line)
				if line == "" {
					continue
				}
				to.texts, to.messages = nil, nil
				if err := post(t.Context(), a, "it says "+line+" there"); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if len(to.texts) == 0 {
					t.Fatalf("%q: nothing was posted", line)
				}
				tried++
				for _, s := range to.messages {
					for _, what := range obeyed {
						if m := active[what].FindString(s); m != "" {
							t.Errorf("%q was committed as %q, which has %s: %s", line, s, what, m)
						}
					}
				}
				for _, s := range to.texts {
					s = regexp.MustCompile(`<!-- forge:[^>]* -->|<details><summary>All of it</summary>|</details>`).ReplaceAllString(s, "")
					for what, re := range active {
						if m := re.FindString(s); m != "" {
							t.Errorf("%q was posted as %q, which has %s: %s", line, s, what, m)
						}
					}
				}
			}
			if tried < 100 {
				t.Errorf("%d attacks were tried, want 100 at least", tried)
			}
		})
	}
}
