// Package protections has the tests that take away what keeps Forge's promises, one by one,
// and want its tests to see it.
package protections

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	only   = flag.String("only", "", "take away those alone whose file or text matches")
	atOnce = flag.Int("at-once", 2, "so many compilers at the same time")
)

// top is the project's folder, from this one.
const top = "../../.."

// protection is what keeps a promise of .github/docs/security.md: the text that makes it,
// and what it becomes when it is taken away. The text stands in its file once. To add one,
// add its row, see it survive, write the test.
type protection struct {
	file, text, without string
	tests               string // of its package, or of PACKAGE: behind which they stand, which see that it is gone; "": all
}

// TestProtections takes each protection away but those of the sandbox.
func TestProtections(t *testing.T) {
	list := protections
	if testing.Short() {
		list = handful()
	}
	takeAway(t, list)
}

// Every protection is known by its text, also where only a handful are taken away.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, p := range append(ofSandbox(t), protections...) {
		if source, err := os.ReadFile(filepath.Join(top, p.file)); err != nil || strings.Count(string(source), p.text) != 1 {
			t.Errorf("%s: %q stands there %d times, want once; %v", p.file, p.text, strings.Count(string(source), p.text), err)
		}
	}
}

// takeAway takes each protection away, for a build of its own, and wants the tests of its
// package to fail. One that can be removed unseen is no protection for long.
func takeAway(t *testing.T, list []protection) {
	chosen := regexp.MustCompile(*only)
	list = slices.DeleteFunc(slices.Clone(list), func(p protection) bool { return !chosen.MatchString(p.file + ": " + p.text) })
	if len(list) == 0 {
		t.Skipf("no protection matches %q", *only)
	}
	dir, turn := t.TempDir(), make(chan bool, *atOnce)
	var tried sync.WaitGroup
	for i, p := range list {
		tried.Go(func() {
			turn <- true
			defer func() { <-turn }()
			if err := p.try(t, filepath.Join(dir, fmt.Sprint(i))); err != nil {
				t.Errorf("%s: %s: %v", p.file, strings.TrimSpace(p.text), err)
			}
		})
	}
	tried.Wait()
}

// try runs the package's tests without the protection. The error says that they passed,
// or that they could not be run.
func (p protection) try(t *testing.T, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	overlay, err := without(dir, filepath.Join(top, p.file), p.text, p.without)
	if err != nil {
		return err
	}
	in, tests, elsewhere := strings.Cut(p.tests, ": ")
	if !elsewhere {
		in, tests = filepath.Dir(p.file), p.tests
	}
	run := []string{"test", "-short", "-vet=off", "-failfast", "-timeout", "4m", "-overlay", overlay}
	if tests != "" {
		run = append(run, "-run", "^("+tests+")$")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(run, "./"+in)...)
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	said := string(out)
	switch {
	case strings.Contains(said, "[build failed]") || strings.Contains(said, "[setup failed]"):
		return fmt.Errorf("it does not compile without it:\n%s", said)
	case strings.Contains(said, "no tests to run"):
		return fmt.Errorf("there is no test %s in %s", tests, in)
	case err == nil:
		return fmt.Errorf("no test fails without it")
	case !strings.Contains(said, "--- FAIL: "):
		return fmt.Errorf("%w:\n%s", err, said)
	}
	_, by, _ := strings.Cut(said, "--- FAIL: ")
	by, _, _ = strings.Cut(by, " ")
	t.Logf("%s: %s: seen by %s", p.file, strings.TrimSpace(p.text), by)
	return nil
}

// without writes a copy of a source file into a directory, with a text that stands in it
// once replaced, and returns the overlay with which go builds that instead.
func without(dir, file, text, instead string) (overlay string, err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), text); n != 1 {
		return "", fmt.Errorf("its text is there %d times, not once: mend the list", n)
	}
	at, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]map[string]string{"Replace": {at: changed}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(changed, []byte(strings.Replace(string(source), text, instead, 1)), 0o644); err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, replaced, 0o644)
}

// handful are ten of the list, each in a small package: enough to see that the tool works
// and that the doors are shut.
func handful() []protection {
	var few []protection
	for _, p := range protections {
		for _, text := range []string{"hmac.Equal(mac.Sum(", "if !Public(at.Addr())", `return "[secret]"`, "b.WriteString(Mask)", "ip.IsLoopback()",
			"s = htmlComment.ReplaceAllString(", "case user.Bot:", "err != nil || !os.SameFile(", "message = visible(message)", "if len(open)+tags > l.depth"} {
			if strings.Contains(p.text, text) {
				few = append(few, p)
			}
		}
	}
	return few
}

var protections = []protection{
	// S27: deliveries, and the hooks of other services.
	{"webhook/webhook.go", `return hmac.Equal(mac.Sum(sum[:0]), signature)`, `return len(mac.Sum(sum[:0])) > 0`, "TestForged"},
	{"webhook/webhook.go", `if len(o.Secret) == 0 {`, `if false {`, ""},
	{"webhook/webhook.go", `if !ok || err != nil || len(mac) != sha256.Size {`, `if err != nil && !ok {`, ""},
	{"webhook/body.go", `case len(buf.data) > most:`, `case false:`, ""},
	{"webhook/body.go", `_ = connection.SetReadDeadline(time.Now().Add(bodyTime))`, `_ = bodyTime`, ""},
	{"webhook/source.go", `if !hmac.Equal(want, g.mac(body)) {`, `if len(g.mac(body)) == 0 {`, ""},
	{"webhook/source.go", `subtle.ConstantTimeCompare(got[:], want[:]) != 1`, `subtle.ConstantTimeCompare(got[:], want[:]) > 1`, ""},
	{"webhook/source.go", `|| away > sourceWindow {`, `|| away < 0 {`, ""},
	{"webhook/source.go", `if hmac.Equal(mac, want) {`, `if len(mac) == len(want) {`, ""},

	// S21: what a model learnt of anybody's words.
	{"learn/hint.go", `l.Weight > 0 && !judges`, `l.Weight > 0`, "cmd/forge/memory: TestReflectionsAreHints"},
	{"learn/hint.go", `l.Weight > 0 && !judges`, `!judges`, "cmd/forge/memory: TestReflectionsAreHints"},
	{"learn/hint.go", `(!Unchecked(l) || l.For > 0)`, `true`, "cmd/forge/memory: TestUnchecked"},
	{"learn/hint.go", `named == 0 || fact && missing > 0`, `named == 0 || fact && missing < 0`, "TestMarkUnchecked"},
	{"cmd/forge/memory/recall.go", `learn.Borne(l) || reasoned(l)`, `reasoned(l)`, "TestReflectionsAreHints"},
	{"learn/lifecycle.go", ` && (a.Weight > 0) == (b.Weight > 0)`, ``, "cmd/forge/memory: TestStrangersTasksConfirmNothing"},
	{"learn/share.go", `if l.Source == pipeline.SourceReflection && l.State`, `if l.State`, "TestRemarksAreNotShared"},
	{"learn/share.go", `l.Weight > 0 && l.Type`, `l.Type`, "cmd/forge/memory: TestStrangersTasksConfirmNothing"},
	{"learn/reflect/refuse.go", `case learn.Stands(l) == learn.StandAvoid:`, `case false:`, "TestParseRefuses"},
	{"cmd/forge/memory/retrospective.go", `if err != nil || !(weight > 0) {`, `if err != nil || weight < 0 {`, "TestReflectionsAreHints"},

	// H1: a dismissal that somebody lets stand alone.
	{"github/feedback/thread.go", `objects = g.objects(c, st)`, `objects = false`, "TestContestedDismissals"},
	{"github/feedback/thread.go", `if of.text == "" || !c.Updated`, `if !c.Updated`, "TestClicksAgainstWords"},
	{"github/feedback/thread.go", `objects := st == Agree && !of.command`, `objects := false`, "TestContestedDismissals"},
	{"github/feedback/thread.go", `if w, err := g.weigh(ctx, c.Author); err != nil || w > 0 {`, `if _, err := g.weigh(ctx, c.Author); true {`, "TestContestedDismissals"},

	// S19, S20: who starts and steers.
	{"pipeline/work/notices.go", `return permission == "admin" || permission == "maintain" || permission == "write"`, `return permission != "none"`, "TestEdits"},
	{"pipeline/work/turns.go", `if err != nil || n <= limit {`, `if err != nil || n >= limit {`, "TestAnswersComeToAnEnd|TestRemarksAreLookedAtTogether"},
	{"pipeline/work/notices.go", "if !may {\n\t\te.Logger", "if !may && false {\n\t\te.Logger", "TestAnswersComeToAnEnd"},
	{"github/read.go", `if actor.Bot || actor.ID == 0 || actor.Login == "" {`, `if actor.ID == 0 || actor.Login == "" {`, "TestPermission|TestWeight"},
	{"github/read.go", `if actor.Login == "" || actor.ID == 0 {`, `if actor.Login == "" {`, "TestPermission|TestWeight"},
	{"github/read.go", `if id := l.GetUser().GetID(); id != actor.ID {`, `if id := l.GetUser().GetID(); id < 0 {`, "TestPermission|TestWeight"},
	{"github/read.go", `case "admin", "write", "read", "none":`, `case "admin", "write", "read", "none", "owner", "everything":`, "TestPermission|TestWeight"},
	{"github/delivery/delivery.go", `return r.o.BotID != 0 && r.d.Sender.ID == r.o.BotID }`, `return false }`, "TestRead|TestCommands"},
	{"github/delivery/delivery.go", `case d.Action == "labeled" && r.n.Actor.Bot:`, `case false:`, "TestRead|TestCommands"},
	{"github/delivery/delivery.go", `r.o.BotID == 0 || d.Comment.User.ID != r.o.BotID || r.n.Actor.Bot`, `r.n.Actor.Bot`, "TestRead|TestCommands"},
	{"github/delivery/delivery.go", `d.Comment.User.ID != r.o.BotID || r.n.Actor.Bot ||`, `d.Comment.User.ID != r.o.BotID ||`, "TestRead|TestCommands"},
	{"github/delivery/delivery.go", "if r.n.Actor.Bot {\n\t\tr.none(\"a comment by the bot", "if false {\n\t\tr.none(\"a comment by the bot", "TestRead|TestCommands"},

	// S7, S28: where connections lead, and what goes along.
	{"pipeline/registry/dial.go", `if !Public(at.Addr()) {`, `if false {`, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/dial.go", `return a.IsGlobalUnicast() && !a.IsPrivate()`, `return a.IsGlobalUnicast()`, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/dial.go", `return a.IsGlobalUnicast() && !a.IsPrivate()`, `return !a.IsPrivate()`, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/dial.go", `a = a.Unmap().WithZone("")`, `a = a.WithZone("")`, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/dial.go", `if e.prefix.Contains(a) {`, `if e.at < 0 {`, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/dial.go", `netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT; clouds have metadata there`, ``, "TestPublic.*|TestWhereItGoes|TestDial.*|TestNamesThatLeadInside"},
	{"pipeline/registry/session.go", `case s.strange(k, asked) != "":`, `case false:`, "TestGoHosts"},
	{"pipeline/registry/hosts.go", `if known || s.g.Lists`, `if known || name != "" || s.g.Lists`, "TestGoHosts"},
	{"cmd/forge/phase/environment.go", `slices.DeleteFunc(u.plan.Inputs(), deps.Steers)`, `u.plan.Inputs()`, "TestInputsOfChange"},
	{"pipeline/procedure.go", `case r.Part == nil && it.Review.Unread() && !r.looked(it):`, `case false:`, "TestUnreadStops"},
	{"pipeline/registry/gateway.go", `r.Header.Del("Authorization")`, `r.Header.Del("Cookie")`, "TestCredentialsStayWithTheirHost"},
	{"pipeline/registry/gateway.go", `if u.Authorization != "" && req.URL.Host == u.base.Host {`, `if u.Authorization != "" {`, "TestCredentialsStayWithTheirHost"},
	// S9: the gateway to registries, and what is installed through it.
	{"pipeline/registry/session.go", `case r.Method != http.MethodGet && r.Method != http.MethodHead:`, `case false:`, "TestAttacksOnTheGateway"},
	{"pipeline/registry/session.go", `case r.Host != strings.TrimPrefix(k.URL(), "http://") && r.Host != "localhost:"+strconv.Itoa(k.Port()):`, `case false:`, "TestAttacksOnTheGateway"},
	{"pipeline/registry/session.go", `case r.ContentLength != 0 || len(r.TransferEncoding) > 0:`, `case false:`, "TestAttacksOnTheGateway"},
	{"pipeline/registry/session.go", `case !k.valid(asked):`, `case false:`, "TestAttacksOnTheGateway"},
	{"pipeline/registry/session.go", `if s.report.Requests >= s.g.limits.Requests {`, `if false {`, "TestSessionIsBounded"},
	{"pipeline/registry/session.go", `if s.sent >= s.g.limits.SessionBytes {`, `if false {`, "TestSessionIsBounded"},
	{"pipeline/registry/gateway.go", `case base.User != nil:`, `case false:`, "TestBadRegistries"},
	{"pipeline/registry/gateway.go", `case base.Scheme != "https" && !(base.Scheme == "http" && r.Private):`, `case false:`, "TestBadRegistries"},
	{"pipeline/registry/gateway.go", `if private != "" && address == private {`, `if private != "" {`, "TestNamesThatLeadInside|TestFilesOfOthersStayGuarded"},
	{"pipeline/registry/gateway.go", `case len(via) > 5:`, `case false:`, "TestAnswersAreBounded|TestFilesOfOthersStayGuarded"},
	{"pipeline/registry/gateway.go", `case r.URL.Scheme != "https" && !(u.Private && r.URL.Host == u.base.Host):`, `case false:`, "TestAnswersAreBounded|TestFilesOfOthersStayGuarded|TestNamesThatLeadInside"},
	{"pipeline/registry/gateway.go", `if len(own) > 0 {`, `if false {`, "TestPackagesOfTheirOwnRegistry"},
	{"pipeline/registry/gateway.go", `case res.ContentLength > max:`, `case false:`, ""},
	{"pipeline/registry/cache.go", `if e.Size > max {`, `if false {`, "TestAnswersAreBounded"},
	{"pipeline/registry/cache.go", `if err == nil && hex.EncodeToString(sum.Sum(nil)) != e.Digest {`, `if err == nil && false {`, "TestChangedContentIsNotServed"},
	{"pipeline/work/words.go", `e.Idle != nil && e.Idle(n.Feedback.Body)`, `e.Idle == nil`, "cmd/forge/server: TestWordsTooLate"},
	{"github/comments.go", `if known {`, `if known || !known {`, "TestCommentsOnPulls"},
	{"github/comments.go", `len(t.Comments.Nodes) == 0 || t.Comments.Nodes[0].Author.actor().Bot`, `len(t.Comments.Nodes) == 0`, "TestCommentsOnPulls"},
	{"github/relations.go", `r.State == "OPEN"`, `r.State != ""`, "cmd/forge/server: TestRelatedIssues"},
	{"pipeline/work/steer.go", `!errors.As(err, &limit) || !limit.Limited()`, `!errors.As(err, &limit) || limit.Limited()`, "TestRateLimitIsWaitedFor"},
	{"pipeline/report.go", `r.Await.Woken || r.Updated.After(r.Await.Next)`, `r.Await.Woken`, "pipeline/store: TestRunsWait"},
	{"pipeline/agent/fault.go", `inward.ReplaceAllString(text.OneLine(f.said), " …")`, `text.OneLine(f.said)`, "TestReasonIsSaid"},
	{"github/publish_pull.go", `was.Number == ref.Number && was.Ready`, `was.Number != ref.Number && was.Ready`, "cmd/forge/server: TestDraftStays"},
	{"pipeline/procedure.go", `return sent != "" && r.Head != sent`, `return sent == ""`, "TestLoop"},
	{"cmd/forge/phase/implement.go", `impl.Contract == "" && run.Anew()`, `impl.Contract == "" && !run.Anew()`, "cmd/forge/server: TestHumanMends"},
	{"pipeline/check/mutate.go", `; ok && len(v.found) < maxMutations`, `; !ok && len(v.found) < maxMutations`, "TestMutate"},
	{"pipeline/check/judge.go", `res.Exit == 0 && ranNothing(text)`, `res.Exit != 0 && ranNothing(text)`, "TestNothingToRun"},
	{"pipeline/agent/rulings.go", `return fixed.Differs(place, now), stop()`, `return false && fixed.Differs(place, now), stop()`, "TestMendIsUndone"},
	{"pipeline/agent/rulings.go", `case v == pipeline.VerdictFixed && !r.Changed:`, `case false:`, "TestScripts"},
	{"pipeline/asked_anew.go", `if known(f.elsewhere) {`, `if false {`, "TestSameWordsOnTwoLines"},
	{"pipeline/reopen.go", `if pull := r.Published.Pull; pull != nil {`, `if pull := r.Published.Pull; pull != nil && pull.Number < 0 {`, "TestIssueAfterTheEnd"},
	{"pipeline/branch.go", `if r.Part == nil && len(r.Requested) > 0 && e.Data.Lost == "" {`, `if false {`, "TestLoop"},
	{"pipeline/human.go", `!g.Guard.futile() && g.Guard.Name != GuardNoProgress`, `!g.Guard.futile()`, "TestLoop"},
	{"pipeline/human.go", `r.Part == nil && !actor.Bot`, `r.Part == nil`, "TestLoop"},
	{"pipeline/gate.go", `if a.Via == viaReview {`, `if a.Via == viaPush {`, "TestLoop"},
	{"pipeline/work/words.go", `f.State != "approved" || g == nil`, `f.State == "approved" || g == nil`, "cmd/forge/server: TestReviewsAtTheGate"},
	{"pipeline/procedure.go", `(r.BaseHead != r.Base || r.Apart)`, `r.BaseHead != r.Base`, "TestLoop"},
	{"pipeline/sandbox/merge.go", `err == nil || o.Base == ""`, `err != nil || o.Base == ""`, "TestMergeUnrelated"},
	{"cmd/forge/phase/update.go", `Parent: run.Head, Base: run.Base, Author`, `Parent: run.Head, Author`, "cmd/forge/server: TestBranchBegunAnew"},
	{"github/mergeable.go", `status(err) == http.StatusNotFound && p.Mergeable`, `status(err) == http.StatusGone && p.Mergeable`, "TestMergeable"},
	{"pipeline/work/notices.go", `start.Notes = run.Unmet()`, ``, "TestRequestsOutliveTheirRun"},
	{"pipeline/sandbox/command.go", `res.Outside = w.tree.filledSubmodules()`, ``, "TestSubmoduleIsNotWritten"},
	{"pipeline/reopen.go", `case NoticeIssueEdited:`, `case "none":`, "pipeline/work: TestReopened"},
	{"pipeline/store/lock.go", `PRAGMA wal_checkpoint(TRUNCATE)`, `PRAGMA user_version`, "TestFileIsTakenAway"},
	{"pipeline/work/publish.go", `pub.Late != "" || refused {`, `pub.Late != "" {`, "TestRefusedPublicationIsTriedAgain"},
	{"cmd/forge/server/health.go", `free < leastKept`, `free < 0`, "TestNoRoomForWebhooks"},
	{"github/publish_base.go", `if err != nil || head != "" { // both`, `if err != nil { // both`, "cmd/forge/server: TestDefaultBranchIsSwitched"},
	{"github/publish_base.go", `head == "" || c.GetBehindBy() > 0`, `head == "" || c == nil`, "cmd/forge/server: TestDefaultBranchIsAnother"},
	{"github/publish_pull.go", `return p.repoint(ctx, pr)`, `return nil`, "cmd/forge/server: TestDefaultBranchIsRenamed"},
	{"cmd/forge/phase/locking.go", `if l.times++; l.times > maxLocks {`, `if l.times++; false {`, "TestLocksHaveALimit"},
	{"cmd/forge/phase/environment.go", "base := settled(run, sha)\n\tif err := x.fetch", "base := sha\n\tif err := x.fetch", "TestSetupCommands"},
	{"pipeline/deps/make.go", `if len(one.more) == 0 {`, `if false {`, "TestUpdate"},
	{"pipeline/deps/make.go", `if p.host.Scripts {`, `if true {`, "TestUpdate"},
	{"pipeline/deps/python.py", `if line and not (NAMES and not PLAIN.fullmatch(line)) and line not in out:`, `if line and line not in out:`, "TestPython"},
	{"pipeline/sandbox/environment.go", `if err := disarm(dir); err != nil {`, `if err := error(nil); err != nil {`, "cmd/forge/phase: TestAttacksOfSetupCommands"},

	// D1: the set-up's page, and the registration of the App.
	{"cmd/forge/setup/setup.go", `subtle.ConstantTimeCompare([]byte(state), []byte(s.p.State)) != 1 {`, `subtle.ConstantTimeCompare([]byte(state), []byte(s.p.State)) > 1 {`, "TestStatesAreRefused"},
	{"cmd/forge/setup/setup.go", `if s.p.State == "" || subtle.ConstantTimeCompare(`, `if subtle.ConstantTimeCompare(`, "TestStatesAreRefused"},
	{"cmd/forge/setup/setup.go", `s.p.State, s.p.Until = "", time.Time{}`, `_ = 0`, "TestStatesAreRefused"},
	{"cmd/forge/setup/setup.go", `late := !s.o.Now().Before(s.p.Until)`, `late := false`, "TestStatesAreRefused"},
	{"cmd/forge/setup/setup.go", `if s.p.State == "" || !s.o.Now().Before(s.p.Until) {`, `if s.p.State == "" || s.p.Port >= 0 {`, "TestInterruptedAtEveryStep"},
	{"cmd/forge/setup/setup.go", `if s.p.App != nil { // interrupted while the files were written`, `if false {`, "TestInterruptedAtEveryStep|TestInterruptedWhileFilesAreWritten"},
	{"cmd/forge/setup/page.go", `if err != nil || host != "127.0.0.1" && host != "localhost" {`, `if err != nil || host == "" {`, "TestPageIsClosed"},
	{"cmd/forge/setup/page.go", `subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.key)) != 1 {`, `subtle.ConstantTimeCompare([]byte(c.Value), []byte(p.key)) > 1 {`, "TestPageIsClosed"},
	{"cmd/forge/setup/page.go", `if subtle.ConstantTimeCompare([]byte(r.PathValue("key")), []byte(p.key)) != 1 {`, `if false {`, "TestPageIsClosed"},
	{"cmd/forge/setup/page.go", `inner := guard.Handler(mux)`, `_, inner := guard, http.Handler(mux)`, "TestPageIsClosed"},
	{"cmd/forge/setup/files.go", "if !s.o.Replace {\n\t\t\treturn", "if false {\n\t\t\treturn", "TestNothingIsOverwritten"},

	// S7, S28: where calls of GitHub lead.
	{"github/transport.go", `if req.URL.Host != t.app.rest.Host || req.URL.Scheme != t.app.rest.Scheme {`, `if false {`, ""},
	{"github/client.go", `if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {`, `if false {`, ""},

	// S18 and reliability 16: who has lost the right to it writes nothing.
	{"github/transport.go", `if err := fence.Check(req.Context()); err != nil { // it may`, `if err := fence.Check(req.Context()); false { // it may`, "TestNothingIsPosted.*"},
	{"pipeline/store/lease.go", `WHERE id = $1 AND (lease_owner = '' OR lease_until <= $4)`, `WHERE id = $1 AND (lease_owner <> $2 OR lease_until <= $4)`, "TestLease.*"},
	{"pipeline/store/lease.go", "SET lease_until = $3 WHERE id = $1 AND lease_owner = $2`", "SET lease_until = $3 WHERE id = $1 AND $2 <> ''`", "TestLease.*"},
	{"pipeline/store/lock.go", `ok && st.Nlink > 1 {`, `ok && st.Nlink > 99 {`, "TestOwn.*|TestFileIsTakenAway|TestOpenRefuses"},
	{"pipeline/store/lock.go", `err = d.lockFile()`, `err = nil`, "TestOwn.*|TestFileIsTakenAway|TestOpenRefuses"},
	{"pipeline/store/lock.go", `err != nil || !os.SameFile(info, d.opened)`, `err != nil || info == nil`, "TestOwn.*|TestFileIsTakenAway|TestOpenRefuses"},

	// S21, S24: what texts do.
	{"github/render/sanitize.go", "s = Visible(s)\n", "", "TestProse"},
	{"github/render/sanitize.go", `s = htmlComment.ReplaceAllString(s, "")`, ``, "TestProse|TestProseKeeps"},
	{"github/render/sanitize.go", `s = image.ReplaceAllString(s, "[image: $1]")`, ``, "TestProse|TestProseKeeps"},
	{"github/render/sanitize.go", `s = closing.ReplaceAllString(s, "${1}"+zwsp+"${2}${3}")`, ``, "TestProse"},
	{"github/render/sanitize.go", `if allowed(u, host) {`, `if true {`, "TestProse"},
	{"github/render/sanitize.go", `s = skipsCI.ReplaceAllString(s, "["+zwsp+"${1}")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = skipTrailer.ReplaceAllString(s, "${1}${3}"+zwsp+"${2}${4}")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = taskBox.ReplaceAllString(s, "${1}["+zwsp+"${2}]")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = breaking.ReplaceAllString(s, "${1}"+zwsp+"${2}")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = alert.ReplaceAllString(s, "["+zwsp+"!${1}]")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = www.ReplaceAllString(s, "${1}"+zwsp+".")`, ``, "TestProse"},
	{"github/render/sanitize.go", `s = reference.ReplaceAllString(s, "${1}"+zwsp+"${2}")`, ``, "TestProse"},
	{"github/render/sanitize.go", `return breakers.Replace(s)`, `return s`, "TestProse"},
	{"github/verdict.go", `render.Block(v.Summary, a.web.Host, render.MaxText)`, `render.Head(v.Summary, render.MaxText)`, "TestAttacksPerKind"},
	{"github/propose.go", `render.Block(p.Body, a.web.Host, render.MaxText)`, `render.Head(p.Body, render.MaxText)`, "TestAttacksPerKind"},
	{"pipeline/text/commit.go", `message = b.find.ReplaceAllString(message, b.with)`, `_ = b`, "TestCommitMessage.*"},
	{"pipeline/text/commit.go", `message = visible(message)`, ``, "TestCommitMessage.*"},

	// S25, S29: secrets.
	{"pipeline/secrets/named.go", `ended(line, end, quoted) && drawn(v, quoted)`, `false`, "TestNamed"},
	{"pipeline/secrets/named.go", `ended(line, end, quoted) && drawn(v, quoted)`, `ended(line, end, quoted)`, "TestNamedPassedOver"},
	{"pipeline/secrets/named.go", `if publicWords[p] {`, `if false && publicWords[p] {`, "TestNamedPassedOver"},
	{"pipeline/secrets/secrets.go", `b.WriteString(Mask)`, `b.WriteString(content[m.start:m.end])`, "TestText.*|TestEncoded|TestSeeded"},
	{"pipeline/secrets/secrets.go", `if shown, at := asRead(content); shown != content {`, `if shown, at := asRead(content); false && shown != content {`, "TestText.*|TestEncoded|TestSeeded"},
	{"pipeline/secrets/encoded.go", `if in := shapes(text, true); len(in) > 0 {`, `if in := shapes(text, true); false && len(in) > 0 {`, "TestText.*|TestEncoded|TestSeeded"},
	{"pipeline/text/slug.go", `strings.ToLower(Scrub(words))`, `strings.ToLower(words)`, "cmd/forge/phase: TestBranchNames"},
	{"github/publish_pull.go", `if look != nil || now.GetDraft() {`, `if look != nil || now.GetDraft() || true {`, "TestPublishFaults"},
	{"cmd/forge/server/github_client.go", `if head == "" {`, `if false {`, "TestDefaultBranchIsGone"},
	{"pipeline/check/detect.go", `bytes.TrimPrefix(data, byteOrderMark), nil`, `bytes.TrimPrefix(data, nil), nil`, "TestDetect"},
	{"github/outgoing.go", `suggestionFence.ReplaceAllString(clean, "$1")`, `clean`, "TestNothingIsPosted.*"},
	{"github/outgoing.go", `if finder == nil || t.searched {`, `if true {`, "TestNothingIsPosted.*"},
	{"github/outgoing.go", `if len(o.barred) > 0 {`, `if false {`, "TestNothingIsPosted.*"},
	{"github/outgoing.go", `o.pass(req.URL.Path, "the address of "+o.what)`, ``, "TestNothingIsPosted.*"},
	{"cmd/forge/settings/secret.go", `return "[secret]"`, `return s.value`, "TestSecret"},
	{"cmd/forge/settings/server.go", `case info.Mode().Perm()&0o007 != 0:`, `case false:`, "TestServerFiles"},
	{"cmd/forge/main.go", `if err := sandbox.Private(); err != nil {`, `if err := error(nil); err != nil {`, "TestCommandsArePrivate"},

	// S11 to S18: git and files.
	{"pipeline/sandbox/push.go", `"--force-with-lease=" + ref + ":" + old, address, sha + ":" + ref}`, `"--force", address, sha + ":" + ref}`, "TestPush.*"},
	{"pipeline/sandbox/push.go", `if !strings.HasPrefix(branch, g.prefix) || branch == g.prefix {`, `if false {`, "TestPush|TestDelete"},
	{"pipeline/sandbox/push.go", `if err := g.checkForward(ctx, repo, branch, sha, old); err != nil {`, `if err := error(nil); err != nil {`, "TestPush"},
	{"pipeline/sandbox/push.go", `if err := g.checkPush(ctx, g.git(repo), o); err != nil {`, `if err := error(nil); err != nil {`, "TestPush.*"},
	{"pipeline/sandbox/push.go", "if err := fence.Check(ctx); err != nil {\n\t\treturn err\n\t}\n\tpush := call\n\tpush.args = []string{\"push\", \"--porcelain\", \"--no-verify\", \"--no-follow",
		"if err := error(nil); err != nil {\n\t\treturn err\n\t}\n\tpush := call\n\tpush.args = []string{\"push\", \"--porcelain\", \"--no-verify\", \"--no-follow", "TestPushOfWhatIsLost"},
	{"pipeline/sandbox/commit.go", `if err := checkPath(c.Path); err != nil {`, `if err := error(nil); err != nil {`, "TestCommitRefuses"},
	{"pipeline/sandbox/commit.go", `if err := checkProtected(c.Path, o.Protected, o.Allow); err != nil {`, `if err := error(nil); err != nil {`, "TestCommitRefuses"},
	{"pipeline/sandbox/commit.go", `if found && !gone {`, `if found && !gone && false {`, "TestCommitRefuses"},
	{"pipeline/sandbox/commit.go", `if err := g.checkCommit(ctx, git, o); err != nil {`, `if err := error(nil); err != nil {`, "TestCommitWithholds"},
	{"pipeline/sandbox/protected.go", `if matchGlob(folded(rule), plain) {`, `if false {`, "TestProtectedPaths"},
	{"pipeline/sandbox/protected.go", `if strings.HasPrefix(part, ".") && `, `if false && `, "TestProtectedPaths"},
	{"pipeline/sandbox/protected.go", `norm.NFKD.String(name)`, `norm.NFC.String(name)`, "TestProtectedPaths"},
	{"pipeline/sandbox/protected.go", `part = strings.TrimRight(part, ". ")`, ``, "TestProtectedPaths"},
	{"pipeline/sandbox/protected.txt", "**/HEAD\n", "", "TestProtectedPaths"},
	{"pipeline/sandbox/isolation_linux.go", `if o.Unsafe || m.setup.Bwrap == "" {`, `if m.uid >= 0 || o.Unsafe || m.setup.Bwrap == "" {`, "TestWorkerOfRoot"},
	{"pipeline/check/support.go", `found(s.plain(), dir, words)`, `found(false, dir, words)`, "TestRules"},
	{"pipeline/check/verify.go", `if err := v.spare(ctx); err != nil {`, `if err := error(nil); err != nil {`, "TestPlainCommands"},
	{"pipeline/check/stood.go", `for i := -1; !told && len(tried) > 1`, `for i := -1; false && len(tried) > 1`, "TestPlainCommands"},
	{"pipeline/check/support.go", `words = append(words, b.respelt(text, words)...)`, ``, "TestPlainCommands"},
	{"webhook/body.go", `if b.held.Add(int64(more)) > maxHeld {`, `if b.held.Add(int64(more)) < 0 {`, "TestHeldInAll"},
	{"pipeline/sandbox/environment.go", `fmt.Sprintf("%s-%d", dirName(w.open.Cache), user)`, `fmt.Sprintf("%s-%d", dirName(w.open.Cache), user*0)`, "TestInstalledByAnotherUser"},
	{"pipeline/check/verify.go", `if err := v.settle(ctx); err != nil {`, `if err := error(nil); err != nil {`, "TestPlainCommands"},
	{"pipeline/sandbox/protected.txt", "**/AGENTS.*.md\n", "", "TestProtectedPaths"},
	{"pipeline/sandbox/protected.txt", ".github/settings.y*ml\n", "", "TestProtectedPaths"},
	{"pipeline/sandbox/protected.go", `len(part) > 255 || isDotGit(part) {`, `len(part) > 255 {`, "TestCommitRefuses"},
	{"pipeline/sandbox/worker.go", "if err := checkProtected(name, w.Protected, w.Allow); err != nil {\n\t\treturn err\n\t}\n\treturn w.tree.write",
		"return w.tree.write", "TestEditsRefuseProtected"},
	{"pipeline/sandbox/tree.go", `case info.Sys().(*syscall.Stat_t).Nlink > 1:`, `case false:`, "TestFilesRefuse"},
	{"pipeline/sandbox/tree.go", "case !info.Mode().IsRegular():\n\t\treturn fmt.Errorf(\"%s is not a plain", "case false:\n\t\treturn fmt.Errorf(\"%s is not a plain", "TestFilesRefuse"},
	{"pipeline/sandbox/git.go", `strings.NewReplacer(c.token, "[redacted]", `, `strings.NewReplacer(`, "TestToken"},
	{"pipeline/sandbox/git.go", `"core.hooksPath=/dev/null",`, ``, "TestDetonators"},
	{"pipeline/sandbox/git.go", `"transfer.fsckObjects=true", "fetch.fsckObjects=true", `, ``, "TestHostileTrees"},
	{"pipeline/sandbox/git.go", `"badDate", `, `"badDate", "hasDotgit", `, "TestHostileTrees"},

	// Images.
	{"pipeline/image/image.go", `if !slices.Contains(s.o.Hosts, host) {`, `if !slices.Contains(s.o.Hosts, host) && false {`, "TestRefused"},
	{"pipeline/image/image.go", `web.DialContext = registry.PublicDialer(net.DefaultResolver).DialContext`, `_ = net.DefaultResolver; _ = registry.PublicDialer`, "TestRefused"},
	{"pipeline/image/image.go", `if left -= h.Size; left < 0 {`, `if left -= h.Size; left < -1<<62 {`, "TestRefused"},
	{"pipeline/image/image.go", `_, err = io.Copy(io.Discard, files)`, `err = nil`, "TestRefused"},

	// The pages.
	{"cmd/forge/dashboard/access/guard.go", `if g.cross.Check(r) != nil {`, `if false {`, ""},
	{"cmd/forge/dashboard/access/guard.go", `!strings.EqualFold(origin, own) {`, `origin == own+"x" {`, ""},
	{"cmd/forge/dashboard/access/local.go", `ip != nil && ip.IsLoopback()`, `ip != nil`, ""},
	{"cmd/forge/dashboard/access/local.go", `if len(r.Header.Values(h)) > 0 {`, `if len(h) > 99 {`, ""},
	{"cmd/forge/dashboard/access/local.go", `overLoopback(r) && localName(r.Host) }`, `overLoopback(r) }`, "cmd/forge/server: TestScrapeAccess"},
	{"cmd/forge/dashboard/access/local.go", `case !localName(r.Host):`, `case false:`, ""},
	{"cmd/forge/dashboard/access/access.go", `case !a.hasKey(r):`, `case false:`, ""},
	{"cmd/forge/dashboard/access/local.go", ` && r.ProtoAtLeast(1, 1)`, ``, ""},
	{"cmd/forge/dashboard/access/signin.go", `case user.Bot:`, `case false:`, ""},
	{"cmd/forge/dashboard/access/access.go", `if why := a.guard.crossSite(r); why != "" {`, `if why := ""; why != "" {`, ""},
	{"cmd/forge/dashboard/access/access.go", `if why := whyNotHere(r); why != "" {`, `if why := ""; why != "" {`, ""},

	// S32: what ends the server is set aside.
	{"pipeline/work/crash.go", `Class: pipeline.FaultCrash, Final: aside,`, `Class: pipeline.FaultCrash, Final: aside && false,`, "TestCrashedPhase"},
	{"pipeline/work/publish.go", `fmt.Sprint(labelRun, run.ID, labelPublish)`, `fmt.Sprint(labelRun, run.ID)`, "TestCrashedPublication"},

	// S30: what anybody wrote does not end the server, and all work stops.
	{"pipeline/untrusted/untrusted.go", `if len(open)+tags > l.depth {`, `if false {`, "FuzzDepth"},
	{"pipeline/untrusted/untrusted.go", `if head.depth+in.depth+key.depth > l.depth {`, `if false {`, "FuzzDepth"},
	{"github/transport.go", `path != own && !strings.HasPrefix(path, own+"/")`, `false`, "TestCallsNameTheID"},
	{"github/transport.go", ` || req.URL.Scheme != t.app.rest.Scheme`, ``, "TestCallsNameTheID"},
	{"github/client.go", `resp.StatusCode != http.StatusUnauthorized ||`, `true ||`, "TestTokenEnds"},
	{"pipeline/sandbox/refused.go", `ask == nil ||`, `true || ask == nil ||`, "TestRemoteRefuses"},
	{"pipeline/store/rename.go", `		if err := d.setAside(ctx, tx, repo.ID, to); err != nil {`, `		if err := error(nil); err != nil {`, "TestRename"},
	{"pipeline/work/advance.go", "} else if paused {\n", "} else if paused && false {\n", "TestPauseBetweenPhases"},
}
