package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forge/github"
	"forge/pipeline"
)

// What GitHub said is used for 5 minutes; while it does not answer, for reading,
// for 15.
func TestWhatGitHubSaid(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	look := func(after time.Duration, code, reads int, want string) {
		t.Helper()
		d.now = d.now.Add(after)
		r := d.send("GET", "/", "", alice)
		if body := text(t, r); r.StatusCode != code || d.github.reads != reads || !strings.Contains(body, want) {
			t.Errorf("after %s: %d, %d reads, want %d, %d with %q: %s", after, r.StatusCode, d.github.reads, code, reads, want, body)
		}
		if code == 503 && r.Header.Get("Retry-After") != "10" {
			t.Errorf("after %s: Retry-After is %q", after, r.Header.Get("Retry-After"))
		}
	}
	look(0, 200, 1, "[acme/Shop acme/cart]")
	d.github.repos["token-of-alice"] = []pipeline.Repo{cart} // taken away on GitHub
	look(freshFor-time.Second, 200, 1, "[acme/Shop acme/cart]")
	look(time.Second, 200, 2, "[acme/cart]")

	d.github.read = errors.New("GitHub answered 502")
	look(freshFor, 200, 3, "stale=true all=false [acme/cart]")
	look(askAgain-time.Second, 200, 3, "stale=true") // it is left alone for a while
	look(time.Second, 200, 4, "stale=true")
	look(staleFor-freshFor-askAgain, 503, 5, "GitHub does not answer")
	look(time.Second, 503, 5, "GitHub does not answer")
	d.github.read = nil
	look(askAgain, 200, 6, "stale=false all=false [acme/cart]")

	d.github.read = fmt.Errorf("read: %w", github.ErrSignedOut)
	look(freshFor, 401, 7, "no longer accepts your sign-in")
	d.github.read = nil
	look(time.Hour, 401, 7, "no longer accepts your sign-in") // a token that ended stays so
}

// A first look while GitHub is down shows nothing, and a program gets plain words.
func TestGitHubDownAtFirst(t *testing.T) {
	t.Parallel()
	d := newTestAccess(t)
	alice := d.signIn("alice")
	d.github.read = errors.New("no route")
	r := d.send("GET", "/", "", alice, "HX-Request: true")
	if body := text(t, r); r.StatusCode != 503 || d.hits > 0 || strings.Contains(body, "<") || strings.Contains(body, "no route") {
		t.Errorf("%d: %s", r.StatusCode, body)
	}
	d.github.read = github.ErrSignedOut
	d.now = d.now.Add(askAgain)
	r = d.send("GET", "/", "", alice)
	if c := cookieOf(r, "__Host-forge_session"); r.StatusCode != 401 || c == nil || c.MaxAge >= 0 {
		t.Errorf("a token that ended: %d, %v", r.StatusCode, c)
	}
}

// However many look at once, GitHub is asked once for each sign-in.
func TestOneFetchAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		release := make(chan struct{})
		p := newPeople(func(ctx context.Context, token string) ([]pipeline.Repo, error) {
			asked.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return []pipeline.Repo{{ID: 1, Owner: "o", Name: token}}, nil
		}, time.Now)
		var wg sync.WaitGroup
		gone, cancel := context.WithCancel(t.Context())
		for _, token := range []string{"0", "1"} { // they ask first, and go away
			wg.Go(func() {
				if _, _, err := p.of(gone, token); !errors.Is(err, context.Canceled) {
					t.Errorf("who went away was told %v", err)
				}
			})
		}
		synctest.Wait()
		for i := range 50 {
			token := fmt.Sprint(i % 2)
			wg.Go(func() {
				can, stale, err := p.of(t.Context(), token)
				if err != nil || stale || len(can.list) != 1 || can.list[0] != "o/"+token {
					t.Errorf("of(%s) = %v, %t, %v", token, can, stale, err)
				}
			})
		}
		synctest.Wait()
		cancel() // the others get their answer
		synctest.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("asked %d times for 2 sign-ins", n)
		}
		close(release)
		wg.Wait()
	})
}

// A GitHub that does not answer holds nobody for ever.
func TestFetchEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeople(func(ctx context.Context, _ string) ([]pipeline.Repo, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, time.Now)
		began := time.Now()
		_, _, err := p.of(t.Context(), "t")
		if took := time.Since(began); err == nil || took != fetchFor {
			t.Errorf("of: %v after %s", err, took)
		}
		p = newPeople(func(context.Context, string) ([]pipeline.Repo, error) { panic("oh") }, time.Now)
		if _, _, err := p.of(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), "oh") {
			t.Errorf("a panic: %v", err)
		}
	})
}

// Memory is bounded: who was away longest is asked for again.
func TestMostPeople(t *testing.T) {
	t.Parallel()
	now, asked := time.Unix(1e9, 0), map[string]int{}
	p := newPeople(func(_ context.Context, token string) ([]pipeline.Repo, error) {
		asked[token]++
		return nil, nil
	}, func() time.Time { return now })
	look := func(token string) {
		t.Helper()
		now = now.Add(time.Millisecond)
		if _, _, err := p.of(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostPeople {
		look(fmt.Sprint(i))
	}
	look("0") // is here again
	look("new")
	if len(p.kept) != mostPeople {
		t.Errorf("%d are kept, want %d", len(p.kept), mostPeople)
	}
	look("0")
	look("1")
	p.end("2")
	if asked["0"] != 1 || asked["1"] != 2 || len(p.kept) != mostPeople {
		t.Errorf("asked %d times for 0, %d for 1; %d are kept", asked["0"], asked["1"], len(p.kept))
	}
}

func TestViewer(t *testing.T) {
	t.Parallel()
	ask := func(_ context.Context, _ pipeline.Repo, who pipeline.Actor) (string, error) {
		switch who.Login {
		case "down":
			return "write", errors.New("no answer")
		default:
			return who.Login, nil
		}
	}
	can := readableOf([]pipeline.Repo{cart, shop, {ID: 9}, {Owner: "acme", Name: "noid"}})
	for _, c := range []struct {
		name     string
		v        *Viewer
		repo     pipeline.Repo
		sees     bool
		may, err bool
	}{
		{"nobody", From(t.Context()), shop, false, false, false},
		{"who sits here", &Viewer{Local: true}, shop, true, true, false},
		{"who sits here, a folder", &Viewer{Local: true}, pipeline.Repo{Name: "dir"}, true, true, false},
		{"admin", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "admin"}, can: can, ask: ask}, shop, true, true, false},
		{"write", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "write"}, can: can, ask: ask}, shop, true, true, false},
		{"read", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "read"}, can: can, ask: ask}, shop, true, false, false},
		{"none", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "none"}, can: can, ask: ask}, shop, true, false, false},
		{"no answer", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "down"}, can: can, ask: ask}, shop, true, false, true},
		{"no id", &Viewer{Actor: pipeline.Actor{Login: "admin"}, can: can, ask: ask}, shop, true, false, false},
		{"another repository", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "read"}, can: can, ask: ask},
			pipeline.Repo{ID: 5, Owner: "acme", Name: "other"}, false, false, false},
		{"a folder of the server", &Viewer{Actor: pipeline.Actor{ID: 1, Login: "admin"}, can: can, ask: ask}, pipeline.Repo{Name: "Shop"}, false, false, false},
	} {
		may, err := c.v.MayWrite(t.Context(), c.repo)
		if sees := c.v.SeesRepo(c.repo); sees != c.sees || c.v.Sees(c.repo.FullName()) != c.sees || may != c.may || (err != nil) != c.err {
			t.Errorf("%s: sees %t, may write %t, %v; want %t, %t", c.name, sees, may, err, c.sees, c.may)
		}
	}
	v := &Viewer{can: can}
	if !v.Sees("ACME/shop") || v.Sees("shop") || v.Sees("") || v.Sees("acme/noid") {
		t.Error("Sees compares names wrongly")
	}
	if taken := (pipeline.Repo{ID: 99, Owner: "acme", Name: "cart"}); v.SeesRepo(taken) {
		t.Error("another repository that has the name by now is seen")
	}
	list, all := v.Repos()
	list[0] = "x"
	if again, _ := v.Repos(); all || len(list) != 2 || again[0] != "acme/Shop" {
		t.Errorf("Repos = %v, %t", again, all)
	}
}
