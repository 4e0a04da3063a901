package dashboard

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"forge/pipeline/record"
)

// deliver keeps deliveries.
func (s *site) deliver(t testing.TB, list ...record.Delivery) {
	t.Helper()
	for i := range list {
		if list[i].GUID == "" {
			list[i].GUID = fmt.Sprintf("g%d", i+1)
		}
		if list[i].Event == "" {
			list[i].Event = "issues"
		}
		list[i].Received = today.Add(time.Duration(i-len(list)) * time.Minute)
	}
	if err := s.db.KeepDeliveries(t.Context(), list); err != nil {
		t.Fatal(err)
	}
}

// dead has a delivery fail until it is given up.
func (s *site) dead(t testing.TB, guid, why string) {
	t.Helper()
	for range 5 {
		if err := s.db.FailDelivery(t.Context(), guid, why, today); err != nil {
			t.Fatal(err)
		}
	}
}

// Deliveries that nothing follows from are left out, until somebody asks for all.
func TestQuietDeliveries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.fill(t, "clean")
	s.deliver(t, record.Delivery{Repo: "acme/shop", Action: "labeled"},
		record.Delivery{Repo: "acme/shop", Event: "check_run", Action: "created", Outcome: "check run of Forge itself: created"},
		record.Delivery{Repo: "acme/shop", Event: "push"}, record.Delivery{Repo: "acme/shop", Event: "status"})
	for guid, quiet := range map[string]bool{"g1": false, "g3": true} {
		if _, err := s.db.FinishDelivery(t.Context(), nil, guid, "outcome of "+guid, quiet, today); err != nil {
			t.Fatal(err)
		}
	}
	for _, choice := range []string{"", "repo=acme/shop"} {
		page := s.get(t, "/deliveries?"+choice, 200)
		has(t, page, "issues.labeled", "status", "-check_run", "-outcome of g3", "all=1")
		all := s.get(t, "/deliveries?all=1&"+choice, 200)
		has(t, all, "issues.labeled", "status", "check_run.created", "outcome of g3", `name="all" value="1"`, "Leave out those")
	}
	has(t, s.get(t, "/deliveries?state=done", 200), "issues.labeled", "-check_run", `href="?all=1&amp;state=done"`)
}

// Covers lessons 18: every delivery has a visible outcome; who may not see a
// repository does not see its deliveries.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	has(t, s.get(t, "/deliveries", 200), "No deliveries that", "/webhook")
	has(t, s.get(t, "/deliveries?all=1", 200), "No deliveries.", "/webhook")
	s.fill(t, "clean", "weighed")
	s.deliver(t, record.Delivery{Repo: "acme/shop", Action: "labeled"}, record.Delivery{Repo: "acme/secret", Event: "push"},
		record.Delivery{Event: "installation", Action: "created"}, record.Delivery{Repo: "acme/quiet", Event: "ping"})
	if _, err := s.db.FinishDelivery(t.Context(), nil, "g1", "started run 7\nmore", false, today); err != nil {
		t.Fatal(err)
	}
	s.dead(t, "g2", hostileWords)
	page := s.get(t, "/deliveries", 200)
	has(t, page, "issues.labeled", "started run 7", "-more", "push", "installation.created", "ping", "attempt 5", "<b>1</b> given up",
		"<b>2</b> waiting", "count bad",
		"&lt;/script&gt;", "[U&#43;202E]evil", "-<script>alert", "-\u202e", `href="?state=dead"`)
	if strings.Index(page, "ping") > strings.Index(page, "issues.labeled") {
		t.Error("the newest is not first")
	}
	has(t, s.get(t, "/deliveries?state=dead", 200), "push", "-ping")
	has(t, s.get(t, "/deliveries?repo=acme/quiet", 200), "ping", "-issues.labeled", "<b>0</b> given up", `href="?repo=acme%2Fquiet&amp;state=dead"`)
	has(t, s.get(t, "/deliveries?repo=acme/none", 200), "No delivery fits")
	s.get(t, "/deliveries?state=lost", 400)
	s.get(t, "/deliveries?before=x", 400)

	s.viewer = person{repos: []string{"acme/shop", "acme/quiet"}}
	has(t, s.get(t, "/deliveries", 200), "issues.labeled", "ping", "-push", "-installation", "<b>0</b> given up", "<b>1</b> waiting", "-secret")
	has(t, s.get(t, "/deliveries?repo=acme/secret", 404), "or you do not see it")
	gone := s.get(t, "/deliveries/none", 404)
	for _, guid := range []string{"g2", "g3"} {
		if s.get(t, "/deliveries/"+guid, 404) != gone {
			t.Errorf("%s differs from what is not there", guid)
		}
		s.post(t, "/deliveries/"+guid+"/retry", "", 404)
	}
	s.viewer = person{repos: []string{}}
	has(t, s.get(t, "/deliveries", 200), "No deliveries that", "-ping")
	if s.told != nil {
		t.Errorf("told %v", s.told)
	}
}

// Many deliveries are paged through: each is on one page.
func TestDeliveryPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.deliver(t, make([]record.Delivery, 2*deliveriesShown+3)...)
	seen, at, pages := map[string]bool{}, "/deliveries?state=waiting", 0
	for at != "" {
		page := s.get(t, at, 200)
		for _, m := range regexp.MustCompile(`href="/deliveries/(g\d+)"`).FindAllStringSubmatch(page, -1) {
			seen[m[1]] = true
		}
		pages++
		m := regexp.MustCompile(`href="(\?[^"]*)" rel="next"`).FindStringSubmatch(page)
		if at = ""; m != nil {
			at = "/deliveries" + strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	if len(seen) != 2*deliveriesShown+3 || pages != 3 {
		t.Errorf("%d deliveries on %d pages", len(seen), pages)
	}
}

// A payload is for those who may write, without secrets; a delivery is handled again
// at the word of the same.
func TestDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	token := "ghp_" + strings.Repeat("a", 36)
	s.deliver(t, record.Delivery{Repo: "acme/shop",
		Payload: []byte(`{"action":"labeled","list":[1,{}],"body":"</pre><script>alert(1)</script>` + token + ` a\"b{\u202e"}`)},
		record.Delivery{Repo: "acme/shop", Payload: []byte("x")}, record.Delivery{Event: "installation", Payload: []byte(`{}`)})
	page := s.get(t, "/deliveries/g1", 200)
	has(t, page, "&#34;action&#34;: &#34;labeled&#34;,\n", "&#34;list&#34;: [\n    1,\n    {}\n  ]", "&lt;/pre&gt;&lt;script&gt;",
		"[secret] a\\&#34;b{\\u202e", "-"+token, "-<script>alert", "-<details open", "as soon as possible",
		"X-GitHub-Delivery", "Handle it again", `data-live="deliveries"`)
	if err := s.db.FailDelivery(t.Context(), "g1", "no <b>", today.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/deliveries/g1", 200), "no &lt;b&gt;", "not before", "31 Mar 2026, 13:00 UTC")
	s.dead(t, "g1", "no")
	has(t, s.get(t, "/deliveries/g1", 200), "given up")

	s.viewer = person{repos: []string{"acme/shop"}, writes: []string{}}
	has(t, s.get(t, "/deliveries/g1", 200), "shown to those with write access to acme/shop", "-labeled", "-Handle it again</button>")
	s.post(t, "/deliveries/g1/retry", "", 403)
	if s.told != nil {
		t.Errorf("told %v", s.told)
	}
	s.viewer = person{repos: []string{"acme/shop"}}
	notes, end := s.pages.live.listen()
	defer end()
	if to := s.post(t, "/deliveries/g1/retry", "", 303); to != "/deliveries/g1" || fmt.Sprint(s.told) != "[redrive g1]" {
		t.Errorf("sent to %s, told %v", to, s.told)
	}
	if n := <-notes; n != (note{"deliveries", "acme/shop"}) {
		t.Errorf("told of %+v", n)
	}
	s.viewer = person{}
	s.post(t, "/deliveries/g3/retry", "", 303)

	// What is done is not done again, and its payload is deleted some day.
	if _, err := s.db.FinishDelivery(t.Context(), nil, "g2", "nothing", true, today); err != nil {
		t.Fatal(err)
	}
	s.pages.Redrive = s.db.RetryDelivery
	s.post(t, "/deliveries/g2/retry", "", 303)
	has(t, s.get(t, "/deliveries/g2", 200), "-Handle it again", "<details>", `-data-live`)
	if _, err := s.db.PruneDeliveries(t.Context(), today.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	has(t, s.get(t, "/deliveries/g2", 200), "not kept any more", "-<details>")
}

// Whatever a payload is, what is shown of it is small, legible, and holds no secret.
func TestShowPayload(t *testing.T) {
	t.Parallel()
	token := "ghp_" + strings.Repeat("a", 36)
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for name, c := range map[string]struct {
		payload string
		cut     bool
	}{
		"empty": {"", false}, "small": {`{"a":[]}`, false}, "no JSON": {"]}\"\\", false}, "deep": {strings.Repeat(deep+",", 20), true},
		"long": {`"` + strings.Repeat("ä", payloadShown) + `"`, true}, "bytes": {"\xff\xfe\x00", false},
		"secret at the end": {`"` + strings.Repeat("x ", payloadShown/2-10) + token + `"`, false},
	} {
		text, cut := showPayload([]byte(c.payload))
		if cut != c.cut || len(text) > payloadShown || strings.Contains(text, "ghp_") || strings.Contains(text, "\x00") || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes, cut %v: %.80q", name, len(text), cut, text)
		}
	}
	if text, _ := indent([]byte(`{ "a" : [1, "b\\", {"c":"x{,"}], "d":{} }`),
		1000); text != "{\n  \"a\": [\n    1,\n    \"b\\\\\",\n    {\n      \"c\": \"x{,\"\n    }\n  ],\n  \"d\": {}\n}" {
		t.Errorf("indented:\n%s", text)
	}
}

// Nothing that is sent makes a payload's page large, or different from what it is.
func FuzzIndent(f *testing.F) {
	for _, s := range []string{`{"a":[1,{}]}`, `"\\"`, "[[[", "]]]", "\xff{"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		const limit = 4096
		text, cut := indent(src, limit)
		if len(text) > limit+110 || cut && len(text) < limit {
			t.Fatalf("%d bytes, cut %v", len(text), cut)
		}
		squeeze := func(b []byte) []byte {
			return slices.DeleteFunc(slices.Clone(b), func(c byte) bool { return strings.IndexByte(" \n\r\t", c) >= 0 })
		}
		if got, want := squeeze([]byte(text)), squeeze(src); !cut && !bytes.Equal(got, want) {
			t.Fatalf("%q became %q", want, got)
		}
	})
}
