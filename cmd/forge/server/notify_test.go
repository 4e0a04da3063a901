package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/notify"
	"forge/cmd/forge/server/servertest"
	"forge/pipeline"
)

const notifySecret = "a-secret-of-notifications"

// listener takes notifications, refusing the first few.
type listener struct {
	fail int
	got  chan notify.Message
	t    *testing.T
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if l.fail > 0 {
		l.fail--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	var m notify.Message
	if err := json.Unmarshal(body, &m); err != nil {
		l.t.Error(err)
	}
	mac := hmac.New(sha256.New, []byte(notifySecret))
	mac.Write(body)
	if sig := r.Header.Get("X-Forge-Signature-256"); sig != "sha256="+hex.EncodeToString(mac.Sum(nil)) {
		l.t.Errorf("the signature is %s", sig)
	}
	l.got <- m
}

func (l *listener) next() notify.Message {
	l.t.Helper()
	select {
	case m := <-l.got:
		return m
	case <-time.After(30 * time.Second):
		l.t.Fatal("nobody is told")
		return notify.Message{}
	}
}

// A webhook is told of a question and of the end, signed, each once, although it does
// not answer at first; secrets are taken out of what it is told.
func TestNotifications(t *testing.T) {
	t.Parallel()
	l := &listener{t: t, fail: 1, got: make(chan notify.Message, 9)}
	receiver := httptest.NewServer(l)
	defer receiver.Close()
	ts := newTestServer(t, testOptions{tape: servertest.FailingTape, env: map[string]string{
		"FORGE_NOTIFY": "webhook", "FORGE_NOTIFY_URL": receiver.URL, "FORGE_NOTIFY_SECRET": notifySecret}})
	ts.label("acme")
	run := ts.untilState(pipeline.StateWaiting)
	m := l.next()
	if m.Event != "question" || m.State != "waiting" || m.Repo != greetRepo || m.Issue != ts.issue || m.Text != run.Gate().Question || m.Choices["continue"] == "" || m.URL == "" || !strings.HasPrefix(m.ID, "run/1/") {
		t.Errorf("the question is told as %+v", m)
	}
	if _, err := ts.gh.As("acme").Comment(greetRepo, ts.issue, "/forge continue 1"); err != nil {
		t.Fatal(err)
	}
	ts.untilState(pipeline.StateVerified)
	if m := l.next(); m.Event != "end" || m.State != "verified" || m.Pull == 0 {
		t.Errorf("the end is told as %+v", m)
	}
	if seq, err := ts.s.DB.Cursor(t.Context(), "notify", run.ID); err != nil || seq == 0 {
		t.Errorf("the cursor is at %d, %v", seq, err)
	}
}

// When the pull request leaves draft, who started the run is assigned and asked to
// review it, once, where the repository says so.
func TestHandOver(t *testing.T) {
	t.Parallel()
	ts := newTestServer(t, testOptions{files: map[string]string{".github/forge.yml": "tests:\n  commands: [sh test.sh]\nready: {assign: true, review: true}\n"}})
	ts.label("acme")
	run := ts.untilState(pipeline.StateVerified)
	ts.until("it is handed over", func(r *pipeline.Run) bool { return r.Published.Artefacts["handover"].Hash != "" })
	made := ts.gh.Mutations()
	if made["pulls/request-reviewers"] != 1 || made["issues/add-assignees"] != 1 || run.By.Login != "acme" {
		t.Errorf("%+v", made)
	}
}
