package github

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/fence"
	"forge/pipeline/secrets"
)

// sentTo keeps what is sent and answers with nothing.
type sentTo struct{ bodies []string }

func (s *sentTo) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil || int64(len(body)) != req.ContentLength {
		return nil, errors.New("the body is not as long as it says")
	}
	s.bodies = append(s.bodies, string(body))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"data":{}}`)), Request: req}, nil
}

// Covers S25: whatever text goes to GitHub, a secret in it does not; whoever reads it is
// told, and so is the operator. What is no text is not sent at all.
func TestNothingIsPostedWithASecret(t *testing.T) {
	t.Parallel()
	token, own := "ghp_"+"R7kd2mQx9Lw4"+"Zt8vYb3nHs6c"+"Jf5pGa1eUo0i", "correct horse 9 battery staple"
	const mask = "[secret]"
	for name, tt := range map[string]struct {
		method, path, body string
		field              string // where the mask must be; "": the call must not be made
		told               bool   // readers are told
	}{
		"a comment":            {"POST", "repos/o/r/issues/1/comments", `{"body":"use TOKEN now"}`, "body", true},
		"Forge's own":          {"POST", "repos/o/r/issues/1/comments", `{"body":"OWN"}`, "body", true},
		"Forge's own, encoded": {"POST", "repos/o/r/issues/1/comments", `{"body":"B64OWN"}`, "body", true},
		"an edited comment":    {"PATCH", "repos/o/r/issues/comments/1", `{"body":"TOKEN"}`, "body", true},
		"a title":              {"POST", "repos/o/r/pulls", `{"title":"add TOKEN","body":"x","head":"forge/a","base":"main","draft":true}`, "title", false},
		"a pull request":       {"PATCH", "repos/o/r/pulls/1", `{"title":"x","body":"a\nTOKEN"}`, "body", true},
		"a review": {"POST", "repos/o/r/pulls/1/reviews",
			`{"body":"x","commit_id":"0123","comments":[{"path":"a.go","line":3,"body":"` + "```suggestion\\nkey = TOKEN\\n```" + `"}]}`,
			"comments.0.body", true},
		"a check run":        {"POST", "repos/o/r/check-runs", `{"name":"forge","output":{"title":"TOKEN","summary":"x"}}`, "output.title", false},
		"a check's summary":  {"PATCH", "repos/o/r/check-runs/1", `{"output":{"title":"x","summary":"TOKEN"}}`, "output.summary", true},
		"an annotation":      {"PATCH", "repos/o/r/check-runs/1", `{"output":{"annotations":[{"message":"TOKEN"}]}}`, "output.annotations.0.message", false},
		"a button":           {"PATCH", "repos/o/r/check-runs/1", `{"actions":[{"label":"TOKEN"}]}`, "actions.0.label", false},
		"labels":             {"POST", "repos/o/r/issues", `{"title":"x","labels":["a","TOKEN"]}`, "labels.1", false},
		"a thread":           {"POST", "graphql", `{"query":"mutation($i:I!){a(input:$i){b}}","variables":{"i":{"body":"TOKEN"}}}`, "variables.i.body", true},
		"a commit's message": {"PUT", "repos/o/r/contents/a.md", `{"message":"TOKEN","content":"eA==","branch":"forge/a"}`, "message", false},
		"a file":             {"PUT", "repos/o/r/contents/a.md", `{"message":"x","content":"B64","branch":"forge/a"}`, "", false},
		"a branch":           {"POST", "repos/o/r/git/refs", `{"ref":"refs/heads/TOKEN","sha":"0123"}`, "", false},
		"an address":         {"DELETE", "repos/o/r/issues/1/labels/TOKEN", ``, "", false},
		"no JSON":            {"POST", "repos/o/r/x", `TOKEN`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			a, err := New(Options{AppID: 1, PrivateKey: testKey(), Secrets: secrets.New(own), Log: slog.New(slog.NewTextHandler(&logged, nil))})
			if err != nil {
				t.Fatal(err)
			}
			to := &sentTo{}
			rt := &transport{app: a, next: to, lim: newLimiter()}
			fill := strings.NewReplacer("TOKEN", token, "B64OWN", base64.StdEncoding.EncodeToString([]byte("x"+own)), "OWN", own, "B64",
				base64.StdEncoding.EncodeToString([]byte("a: 1\nkey: "+token+"\n")))
			req, err := http.NewRequestWithContext(t.Context(), tt.method, a.rest.String()+fill.Replace(tt.path), strings.NewReader(fill.Replace(tt.body)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = rt.RoundTrip(req)
			if all := strings.Join(to.bodies, "\n") + logged.String(); strings.Contains(all, token) || strings.Contains(all, own) {
				t.Fatalf("it left, or is in the log: %s", all)
			}
			if tt.field == "" {
				var fault *pipeline.Fault
				if !errors.As(err, &fault) || fault.Class != pipeline.FaultSecret || !fault.Final || len(to.bodies) > 0 || strings.Contains(err.Error(), token) {
					t.Errorf("error %v, sent %q; want a fault of class secret", err, to.bodies)
				}
				return
			}
			if err != nil || len(to.bodies) != 1 {
				t.Fatalf("RoundTrip: %v, sent %q", err, to.bodies)
			}
			got := fieldOf(t, to.bodies[0], tt.field)
			if !strings.Contains(got, mask) || strings.Contains(got, "revoke it") != tt.told {
				t.Errorf("%s is %q; want the mask, and a word to readers: %v", tt.field, got, tt.told)
			}
			if strings.Contains(got, "```suggestion") {
				t.Errorf("%s is %q; one click would apply what a part was taken out of", tt.field, got)
			}
			if !strings.Contains(logged.String(), "level=WARN") {
				t.Errorf("the operator is not told: %s", logged.String())
			}
		})
	}
}

// fieldOf returns a value of JSON by its path, "a.0.b".
func fieldOf(t *testing.T, body, path string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	for k := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[k]
		case []any:
			v = x[k[0]-'0']
		}
	}
	s, _ := v.(string)
	return s
}

// What holds no secret goes as it is, byte for byte, and reads are not looked through.
func TestOtherwiseItIsSentAsItIs(t *testing.T) {
	t.Parallel()
	a, err := New(Options{AppID: 1, PrivateKey: testKey(), Secrets: secrets.New()})
	if err != nil {
		t.Fatal(err)
	}
	to := &sentTo{}
	rt := &transport{app: a, next: to, lim: newLimiter()}
	const body = `{ "body":"a <b> & AKIAIOSFODNN7EXAMPLE", "n": 12345678901234567890}` + "\n"
	req, err := http.NewRequestWithContext(t.Context(), "POST", a.rest.String()+"repos/o/r/issues/1/comments", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.RoundTrip(req); err != nil || len(to.bodies) != 1 || to.bodies[0] != body {
		t.Errorf("sent %q, %v", to.bodies, err)
	}
}

// Covers S18: who has lost a run writes nothing to GitHub, and still reads.
func TestNothingIsPostedOfWhatIsLost(t *testing.T) {
	t.Parallel()
	a, err := New(Options{AppID: 1, PrivateKey: testKey()})
	if err != nil {
		t.Fatal(err)
	}
	to, lost := &sentTo{}, errors.New("another server has the run")
	rt := &transport{app: a, next: to, lim: newLimiter()}
	ctx := fence.With(t.Context(), func() error { return lost })
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.rest.String()+"repos/o/r/issues/1/comments", strings.NewReader(`{"body":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.RoundTrip(req); !errors.Is(err, lost) || len(to.bodies) > 0 {
		t.Errorf("a comment: %v, sent %q", err, to.bodies)
	}
}
