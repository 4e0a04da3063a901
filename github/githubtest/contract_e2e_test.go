//go:build e2e

package githubtest

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"forge/github/githubtest/contract"
	"forge/github/githubtest/exchange"
)

var contractOnce = sync.OnceValues(func() (*contract.Contract, error) { return contract.New("../../../shared/github") })

func init() {
	described = func(t *testing.T) exchange.Checker {
		k, err := contractOnce()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // TestContractFinds says so
		}
		if err != nil {
			t.Fatal(err)
		}
		before := len(k.Violations())
		t.Cleanup(func() {
			for _, v := range k.Violations()[before:] {
				t.Error("contract: " + v)
			}
			if seen := k.Counts(); seen.Requests == 0 || seen.Webhooks == 0 {
				t.Errorf("the contract saw %+v", seen)
			}
		})
		return k
	}
}

// A contract that finds nothing wrong in what is wrong would prove nothing.
func TestContractFinds(t *testing.T) {
	t.Parallel()
	k, err := contract.New("../../../shared/github")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs GitHub's descriptions in the folder shared/github beside the checkout; without them no exchange is checked")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(o *Options) { o.Contract = nil }) // what it finds is wanted here
	w.s.opts.Contract = k
	w.issue()
	tok := w.token()
	clean := len(k.Violations())
	for _, tc := range []struct{ path, body, want string }{
		{"/api/v3/repos/acme/shop/issues", `{"title":"a","labls":["x"]}`, `the field "labls" is not known`},
		{"/api/v3/repos/acme/shop/issues?labels=x", `{"title":"a"}`, `the query parameter "labels" is not known`},
		{"/api/graphql", `{"query":"{viewer{logn}}"}`, `Cannot query field`},
	} {
		w.do("POST", tc.path, tok, tc.body)
		list := k.Violations()
		if len(list) == 0 || !strings.Contains(list[len(list)-1], tc.want) {
			t.Errorf("%s %s: violations %v, want %q", tc.path, tc.body, list, tc.want)
		}
	}
	k.Webhook("issues", "labeled", []byte(`{"action":"labeled"}`))
	k.Webhook("issues", "exploded", nil)
	k.REST(exchange.Exchange{Op: "issues/get", Request: httptest.NewRequest("GET", "/", nil), Status: 200,
		Header: http.Header{"Content-Type": {"application/json"}}, Answer: []byte(`{"id":"seven"}`)})
	if got := len(k.Violations()); got < clean+6 {
		t.Errorf("%d violations, want at least %d: %v", got, clean+6, k.Violations())
	}
	if _, err := contract.New(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
}
