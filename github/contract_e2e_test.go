//go:build e2e

package github

import (
	"errors"
	"io/fs"
	"sync"
	"testing"

	"forge/github/githubtest/contract"
	"forge/github/githubtest/exchange"
)

var contractOnce = sync.OnceValues(func() (*contract.Contract, error) { return contract.New("../../shared/github") })

func init() {
	thorough = true
	descriptions = func(t *testing.T) exchange.Checker {
		k, err := contractOnce()
		if errors.Is(err, fs.ErrNotExist) {
			t.Log("without the contract files ../shared/github: shapes are not checked")
			return nil
		}
		if err != nil {
			t.Fatal(err)
		}
		before := len(k.Violations())
		t.Cleanup(func() {
			for _, v := range k.Violations()[before:] {
				t.Errorf("against GitHub's description: %s", v)
			}
		})
		return k
	}
}
