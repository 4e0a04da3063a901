// Package browsertest opens pages in a real browser and checks what every page must
// have: no violation that axe-core finds, nothing on the console, which is
// where a browser tells what the content security policy forbade, and a picture
// to look at.
package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"forge/pipeline/needs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Browser is one window of a browser, with cookies of its own.
type Browser struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// New starts a browser. It needs Chromium, and axe-core's axe.min.js, which
// FORGE_AXE names.
func New(t testing.TB) *Browser {
	t.Helper()
	needs.Tools(t, "chromium")
	if os.Getenv("FORGE_AXE") == "" {
		t.Skip("needs axe-core: npm install axe-core@4.10.3, and FORGE_AXE=…/node_modules/axe-core/axe.min.js")
	}
	opts := []chromedp.ExecAllocatorOption{chromedp.WindowSize(1280, 900)}
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // Chromium's sandbox refuses root; it sees our own pages alone
	}
	limited, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	ctx, end := chromedp.NewContext(limited, chromedp.WithAllocatorOptions(opts...))
	b := &Browser{t: t, ctx: ctx}
	messages := chromedp.Console(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// That somebody may not see a page is for the test to judge.
			if text := m.String(); !strings.Contains(text, "status of 401") && !strings.Contains(text, "status of 403") {
				b.mu.Lock()
				b.problems = append(b.problems, text)
				b.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { end(); cancel(); reading.Wait() })
	return b
}

// eventually tries until it succeeds: between two pages there is nothing to act on.
func (b *Browser) eventually(what string, try func() error) {
	b.t.Helper()
	limit, tick := time.After(20*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.title + "\n" + document.body.innerText`))
			b.t.Fatalf("%s: not in 20 s: %v; the page reads\n%s", what, err, text)
		}
	}
}

func run[T any](b *Browser, what string, a chromedp.Action[T]) (v T) {
	b.t.Helper()
	b.eventually(what, func() (err error) {
		v, err = chromedp.Run(b.ctx, a)
		return err
	})
	return v
}

// Open opens a page and returns what one reads there.
func (b *Browser) Open(url string) string {
	b.t.Helper()
	run(b, "open "+url, chromedp.Navigate(url))
	return b.Text("body")
}

// Text returns what one reads in an element.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return Evaluate[string](b, fmt.Sprintf(`document.querySelector(%q).innerText`, selector))
}

// Click clicks on an element, once the page is whole: what comes later would move it away.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.Until("the page is whole", `document.readyState === "complete"`)
	run(b, "click on "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Write replaces what stands in a field.
func (b *Browser) Write(selector, text string) {
	b.t.Helper()
	Evaluate[bool](b, fmt.Sprintf(`(f => { f.focus(); f.select(); return true })(document.querySelector(%q))`, selector))
	run(b, "write into "+selector, chromedp.KeyEvent(text))
}

// Evaluate returns what an expression of the page is.
func Evaluate[T any](b *Browser, expression string) T {
	b.t.Helper()
	return run(b, "evaluate "+expression[:min(60, len(expression))], chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Until waits until an expression is true, of this page or of the one that it
// leads to.
func (b *Browser) Until(what, expression string) {
	b.t.Helper()
	b.eventually(what, func() error {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && !ok {
			err = errors.New("not yet")
		}
		return err
	})
}

// Scheme shows pages as somebody sees them who wants "light" or "dark" ones, in a
// window of some width.
func (b *Browser) Scheme(scheme string, width int64) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}); err != nil {
		b.t.Fatal(err)
	}
	run(b, "size the window", chromedp.EmulateViewport(width, 900))
}

// Check fails the test for what axe-core finds on the page, and for what the
// browser complained of since the last check.
func (b *Browser) Check(name string) {
	b.t.Helper()
	axe, err := os.ReadFile(os.Getenv("FORGE_AXE"))
	if err != nil {
		b.t.Fatalf("read axe-core: %v", err)
	}
	Evaluate[int](b, string(axe)+"\n;0")
	result := Evaluate[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	var violations []struct {
		ID    string
		Help  string
		Nodes []struct{ HTML, FailureSummary string }
	}
	if err := json.Unmarshal([]byte(result), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		for _, n := range v.Nodes {
			b.t.Errorf("%s: axe %s: %s\n%s\n%s", name, v.ID, v.Help, n.HTML, n.FailureSummary)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.problems) > 0 {
		b.t.Errorf("%s: the browser complains:\n%s", name, strings.Join(b.problems, "\n"))
	}
	b.problems = nil
}

// Overflows reports whether the page is wider than the window.
func (b *Browser) Overflows() bool {
	b.t.Helper()
	return Evaluate[bool](b, `document.documentElement.scrollWidth > window.innerWidth`)
}

// Picture keeps a picture of the whole page in the directory that FORGE_PICTURES
// names; without it there is none.
func (b *Browser) Picture(name string) {
	b.t.Helper()
	dir := os.Getenv("FORGE_PICTURES")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), run(b, "take a picture", chromedp.FullScreenshot(100)), 0o644); err != nil {
		b.t.Fatal(err)
	}
}
