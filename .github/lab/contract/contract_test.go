package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"forge/github/githubtest/exchange"
	"forge/github/githubtest/exchangetest"
)

const top = "../../.."

// described are GitHub's own descriptions, which lie beside the checkout.
func described(t *testing.T) *Contract {
	t.Helper()
	k, err := New(top + "/../shared/github")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs GitHub's descriptions in the folder shared/github beside the checkout")
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Covers D4: all that the tests of the local GitHub, and of Forge's client against it, ask,
// hear and are sent fits GitHub's own descriptions.
func TestExchanges(t *testing.T) {
	t.Parallel()
	k := described(t)
	path := filepath.Join(t.TempDir(), "exchanges")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "./github", "./github/githubtest")
	cmd.Dir, cmd.Env = top, append(os.Environ(), exchangetest.Variable+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for dec := json.NewDecoder(file); dec.More(); {
		var l exchangetest.Line
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		before := len(k.Violations())
		hold(t, k, l)
		for _, v := range k.Violations()[before:] {
			t.Errorf("%s: %s", l.Test, v)
		}
	}
	seen := k.Counts()
	t.Logf("%+v", seen)
	if seen.Requests < 1000 || seen.Answers < 1000 || seen.Webhooks < 100 || seen.Documents < 50 {
		t.Errorf("only %+v were held to the descriptions", seen)
	}
}

func hold(t *testing.T, k *Contract, l exchangetest.Line) {
	t.Helper()
	switch {
	case l.Op != "":
		u, err := url.Parse(l.URL)
		if err != nil {
			t.Fatal(err)
		}
		k.REST(exchange.Exchange{Op: l.Op, Request: &http.Request{Method: l.Method, URL: u}, Body: l.Body, Status: l.Status, Header: l.Header, Answer: l.Answer})
	case l.Event != "":
		k.Webhook(l.Event, l.Action, l.Payload)
	default:
		k.GraphQL(l.Query)
	}
}

// A contract that finds nothing wrong in what is wrong would prove nothing.
func TestFinds(t *testing.T) {
	t.Parallel()
	k := described(t)
	rest := func(op, method, path, body string, status int, answer string) func() {
		r := httptest.NewRequest(method, path, bytes.NewReader([]byte(body)))
		r.Header.Set("Content-Type", "application/json")
		return func() {
			k.REST(exchange.Exchange{Op: op, Request: r, Body: []byte(body), Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(answer)})
		}
	}
	for _, tc := range []struct {
		do   func()
		want string
	}{
		{rest("issues/create", "POST", "/repos/acme/shop/issues", `{"title":"a","labls":["x"]}`, 500, `{}`), ""},
		{rest("issues/create", "POST", "/repos/acme/shop/issues", `{"title":"a","labls":["x"]}`, 201, `{}`), `the field "labls" is not known`},
		{rest("issues/create", "POST", "/repos/acme/shop/issues?labels=x", `{"title":"a"}`, 201, `{}`), `the query parameter "labels" is not known`},
		{rest("issues/get", "GET", "/", "", 200, `{"id":"seven"}`), "issues/get"},
		{rest("issues/explode", "GET", "/", "", 200, `{}`), "is not in GitHub's description"},
		{func() { k.GraphQL("{viewer{logn}}") }, "Cannot query field"},
		{func() { k.Webhook("issues", "labeled", []byte(`{"action":"labeled"}`)) }, "labeled"},
		{func() { k.Webhook("issues", "exploded", nil) }, "exploded"},
	} {
		before := len(k.Violations())
		tc.do()
		if got := strings.Join(k.Violations()[before:], "\n"); !strings.Contains(got, tc.want) || tc.want != "" && got == "" {
			t.Errorf("violations %q, want %q", got, tc.want)
		}
	}
	if _, err := New(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}
