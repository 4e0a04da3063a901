package cases_test

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/pipeline"
	"forge/pipeline/command"
)

// TestCases plays what was seen to go wrong, and what people do at any moment, on the
// local GitHub: one script for each case; testdata/README.md has the language.
func TestCases(t *testing.T) { playCases(t, "testdata/*.txtar") }

func playCases(t *testing.T, pattern string) {
	t.Parallel()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			playScript(t, ar)
		})
	}
}

// script is a case that is being played.
type script struct {
	*servertest.Server
	pushes map[string]map[string]string // what people push, by name
	begun  *pipeline.Run                // stands for the newest one until one is told of

	mu   sync.Mutex
	when map[string][][]string // commands for the first event of a kind
}

func playScript(t *testing.T, ar *txtar.Archive) {
	s := &script{pushes: map[string]map[string]string{}, when: map[string][][]string{}}
	o, lines := s.read(t, ar)
	o.On = func(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) { s.react(ts, run, e) }
	s.Server = servertest.New(t, o)
	for _, words := range lines {
		s.do(words)
	}
}

var (
	tapeSection = regexp.MustCompile(`^(?:[a-z-]+/)?[a-z]+(?:\.[a-z]+)? (?:\*|\d+)(?:@\d+)?/\d+$`)
	scriptWord  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)
)

// read takes a case apart: what the server is made of, and what happens then.
func (s *script) read(t *testing.T, ar *txtar.Archive) (o servertest.Options, lines [][]string) {
	t.Helper()
	o.Files, o.Env = map[string]string{}, map[string]string{}
	tape := txtar.Parse([]byte(servertest.GreeterTape))
	for _, f := range ar.Files {
		kind, rest, _ := strings.Cut(f.Name, "/")
		switch {
		case tapeSection.MatchString(f.Name):
			tape.Files = slices.DeleteFunc(tape.Files, func(old txtar.File) bool { return old.Name == f.Name })
			tape.Files = append(tape.Files, f)
		case f.Name == "issue.md":
			title, body, _ := strings.Cut(string(f.Data), "\n")
			o.Title, o.Body = title, strings.TrimSpace(body)
		case kind == "repo":
			o.Files[rest] = string(f.Data)
		case kind == "push":
			name, file, _ := strings.Cut(rest, "/")
			if s.pushes[name] == nil {
				s.pushes[name] = map[string]string{}
			}
			s.pushes[name][file] = string(f.Data)
		default:
			t.Fatalf("a section %q means nothing", f.Name)
		}
	}
	o.Tape = string(txtar.Format(tape))
	for line := range strings.SplitSeq(string(ar.Comment), "\n") {
		words := scriptWords(t, line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "env":
			name, value, _ := strings.Cut(words[1], "=")
			o.Env[name] = value
		case words[0] == "author":
			o.Author = words[1]
		case words[0] == "at":
			s.when[words[1]] = append(s.when[words[1]], words[2:])
		default:
			lines = append(lines, words)
		}
	}
	return o, lines
}

func scriptWords(t *testing.T, line string) []string {
	t.Helper()
	if strings.HasPrefix(line, "#") {
		return nil
	}
	words := scriptWord.FindAllString(line, -1)
	for i, w := range words {
		if !strings.HasPrefix(w, `"`) {
			continue
		}
		text, err := strconv.Unquote(w)
		if err != nil {
			t.Fatalf("%s: %s: %v", line, w, err)
		}
		words[i] = text
	}
	return words
}

// react does what the script wants done at the first event of a kind, or at the first
// one of a phase: "phase.completed" or "phase.completed/review"; "gate.shown" is when the
// first question stands on GitHub, where people can answer it.
func (s *script) react(ts *servertest.Server, run *pipeline.Run, e pipeline.Event) {
	keys := []string{string(e.Type)}
	if e.Data.Phase != nil {
		keys = append(keys, keys[0]+"/"+string(e.Data.Phase.Phase))
	}
	if p := e.Data.Publication; e.Type == pipeline.EventPublishCompleted && p != nil {
		for key := range p.Artefacts {
			if strings.HasPrefix(key, "gate/") {
				keys = append(keys, "gate.shown")
			}
		}
	}
	for _, key := range keys {
		s.mu.Lock()
		list := s.when[key]
		delete(s.when, key)
		s.mu.Unlock()
		for _, words := range list {
			(&script{Server: ts, pushes: s.pushes}).at(run).do(words)
		}
		if len(list) > 0 { // what was done is kept before the run goes on
			ctx, cancel := context.WithTimeout(ts.T.Context(), 5*time.Second)
			_ = ts.GitHub.Settle(ctx) // a server that is stopped takes nothing
			cancel()
		}
	}
}

// at is the script for commands at a moment: the run is as it stands then, whether
// that is published or not.
func (s *script) at(run *pipeline.Run) *script {
	copied := *run
	s.begun = &copied
	return s
}

// do carries out one line.
func (s *script) do(words []string) {
	s.T.Helper()
	s.T.Log(strings.Join(words, " "))
	if f := scriptCommands[words[0]]; f != nil {
		f(s, words[1:])
		return
	}
	if len(words) < 2 || scriptDeeds[words[1]] == nil {
		s.T.Fatalf("%q: there is no such command, and nobody can do that", words)
	}
	if err := scriptDeeds[words[1]](s, s.GitHub.As(words[0]), words[2:]); err != nil {
		s.T.Fatalf("%q: %v", words, err)
	}
}

// scriptDeeds are what people do on GitHub.
var scriptDeeds = map[string]func(s *script, who *githubtest.Person, args []string) error{
	"label": func(s *script, who *githubtest.Person, args []string) error {
		return who.Label(servertest.Repo, s.Issue, strings.Join(append(args, "forge")[:1], ""))
	},
	"comment": func(s *script, who *githubtest.Person, args []string) error {
		_, err := who.Comment(servertest.Repo, s.Issue, args[0])
		return err
	},
	"open": func(s *script, who *githubtest.Person, args []string) (err error) { // another issue, which the script is about from now on
		if s.Issue, err = who.OpenIssue(servertest.Repo, args[0], strings.Join(args[1:], " ")); err == nil {
			err = who.Label(servertest.Repo, s.Issue, "forge")
		}
		return err
	},
	"retitle": func(s *script, who *githubtest.Person, args []string) error {
		return who.EditIssue(servertest.Repo, s.Issue, args[0], args[1])
	},
	"push":  func(s *script, who *githubtest.Person, args []string) error { return s.push(who, args, false) },
	"force": func(s *script, who *githubtest.Person, args []string) error { return s.push(who, args, true) },
	"review": func(s *script, who *githubtest.Person, args []string) error { // EVENT BODY [PATH LINE COMMENT]
		rv := githubtest.Review{Event: args[0], Body: args[1]}
		if len(args) == 5 {
			rv.Path, rv.Comment = args[2], args[4]
			rv.Line, _ = strconv.Atoi(args[3])
		}
		return who.Review(servertest.Repo, s.pull().Number, rv)
	},
	"reply": func(s *script, who *githubtest.Person, args []string) error {
		return who.Reply(servertest.Repo, s.thread(args[0]).Comments[0].ID, args[1])
	},
	"resolve": func(s *script, who *githubtest.Person, args []string) error {
		return who.Resolve(servertest.Repo, s.thread(args[0]).Comments[0].ID)
	},
	"commits": func(s *script, who *githubtest.Person, args []string) error {
		return who.CommitSuggestion(servertest.Repo, s.thread(args[0]).Comments[0].ID)
	},
	"says": func(s *script, who *githubtest.Person, args []string) error {
		_, err := who.Comment(servertest.Repo, s.pull().Number, args[0])
		return err
	},
	"merge": func(s *script, who *githubtest.Person, args []string) error {
		return who.Merge(servertest.Repo, s.pull().Number)
	},
	"close": func(s *script, who *githubtest.Person, args []string) error { // or opens it again
		return who.Close(servertest.Repo, s.pull().Number)
	},
	"deletes": func(s *script, who *githubtest.Person, args []string) error {
		return who.DeleteBranch(servertest.Repo, s.branch(args[0]))
	},
	"draft": func(s *script, who *githubtest.Person, args []string) error {
		return who.SetDraft(servertest.Repo, s.pull().Number, args[0] == "true")
	},
	"retarget": func(s *script, who *githubtest.Person, args []string) error {
		return who.Retarget(servertest.Repo, s.pull().Number, args[0])
	},
	"unlabel": func(s *script, who *githubtest.Person, args []string) error {
		return who.Unlabel(servertest.Repo, s.Issue, "forge")
	},
}

// branch is a branch by its name; "run" is the run's.
func (s *script) branch(name string) string {
	if name == "run" {
		return s.runs().Branch
	}
	return name
}

// push pushes the files of a section to a branch: BRANCH NAME.
func (s *script) push(who *githubtest.Person, args []string, force bool) error {
	p := githubtest.Push{Branch: s.branch(args[0]), Message: "By hand: " + args[1], Files: map[string]*string{}, Force: force}
	for file, text := range s.pushes[args[1]] {
		p.Files[file] = &text
	}
	if len(p.Files) == 0 {
		return fmt.Errorf("there is no section push/%s", args[1])
	}
	_, err := who.PushFiles(servertest.Repo, p)
	return err
}

// scriptCommands are what is waited for, and what must be seen.
var scriptCommands = map[string]func(s *script, args []string){
	"role":    func(s *script, args []string) { s.Must(s.GitHub.SetPermission(servertest.Repo, args[0], args[1])) },
	"until":   (*script).doUntil,
	"says":    func(s *script, args []string) { s.Says(args[0]) },
	"silent":  func(s *script, args []string) { s.contains("comments", s.Comments(), "!", args[0]) },
	"outcome": func(s *script, args []string) { s.Outcome(args[0], args[1]) },
	"check":   (*script).doCheck,
	"body": func(s *script, args []string) {
		s.soon(func() bool { return args[0] == "!" || strings.Contains(s.pull().Body, args[0]) })
		s.contains("the pull request's body", s.pull().Body, args...)
	},
	"reviews": func(s *script, args []string) { s.contains("the reviews", s.reviews(), args...) },
	"thread":  (*script).doThread,
	"replied": (*script).doReplied,
	"threads": func(s *script, args []string) { s.equal("threads", len(s.pull().Threads), args[0]) },
	"pulls": func(s *script, args []string) {
		pulls, err := s.GitHub.Pulls(servertest.Repo)
		s.Must(err)
		s.equal("pull requests", len(pulls), args[0])
	},
	"merges": func(s *script, args []string) { // the modules that were merged, in any order, each onto a head that stayed green
		s.GreenMerges()
		var got []string
		events, err := s.Forge.DB.Events(s.T.Context(), s.runs().ID, 0)
		s.Must(err)
		for _, e := range events {
			if p, u := e.Data.Phase, e.Data.Update; e.Type == pipeline.EventPhaseCompleted && p.Phase == pipeline.PhaseMerge && len(u.Conflicts) == 0 {
				got = append(got, p.Part)
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(args))
		s.equal("merged modules", strings.Join(got, " "), strings.Join(want, " "))
	},
	"issue":  (*script).doIssue,
	"branch": (*script).doBranch,
	"kept": func(s *script, args []string) { // a file of the branch of documents
		text, err := s.GitHub.File(servertest.Repo, "forge/documents", s.runs().Branch+"/"+args[0])
		s.Must(err)
		s.contains(args[0], text, args[1:]...)
	},
	"draft": func(s *script, args []string) { s.equal("draft", s.pull().Draft, args[0]) },
	"run":   (*script).doRun,
	"file": func(s *script, args []string) {
		text, err := s.GitHub.File(servertest.Repo, s.pull().Head, args[0])
		s.Must(err)
		s.contains(args[0], text, args[1:]...)
	},
}

// doIssue wants exactly one issue with a title, that says or does not say ("!") some words.
func (s *script) doIssue(args []string) {
	s.T.Helper()
	var found []githubtest.Issue
	for n := 1; n < 30; n++ {
		if is, err := s.GitHub.Issue(servertest.Repo, n); err == nil && strings.Contains(is.Title, args[0]) {
			found = append(found, is)
		}
	}
	if len(found) != 1 {
		s.T.Fatalf("%d issues are titled %q, want one: %+v", len(found), args[0], found)
	}
	s.contains("the issue "+args[0], found[0].Body, args[1:]...)
}

// doBranch waits until the branch of a module is there or gone.
func (s *script) doBranch(args []string) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), 60*time.Second)
	defer cancel()
	there := false
	for ctx.Err() == nil {
		head, err := s.GitHub.Head(servertest.Repo, s.runs().Branch+"--"+args[0])
		if there = err == nil && head != ""; there == (args[1] == "there") {
			return
		}
		wait, stop := context.WithTimeout(ctx, 100*time.Millisecond)
		_ = s.GitHub.Wait(wait, func() bool { return false }) // until something happens there
		stop()
	}
	s.T.Errorf("the branch of %s is there: %v, want %s", args[0], there, args[1])
}

// runs is the newest run.
func (s *script) runs() *pipeline.Run {
	return cmp.Or(s.Run(), s.begun)
}

// doUntil waits: STATE [GUARD] [KEY=VALUE…], with the keys of doRun. A tape that does
// not fit ends it at once.
func (s *script) doUntil(args []string) {
	s.T.Helper()
	there, fault := false, ""
	run, _ := s.Within(5*time.Minute, func(r *pipeline.Run) bool {
		there = string(r.State) == args[0]
		for _, a := range args[1:] {
			key, want, ok := strings.Cut(a, "=")
			if !ok {
				key, want = "guard", a
			}
			there = there && s.of(r, key) == want
		}
		if fault = ""; r.Fault != nil {
			fault, _, _ = strings.Cut(r.Fault.Message, "its last message is")
		}
		return there || r.State == pipeline.StateWaiting && strings.HasPrefix(fault, "tape: ")
	})
	switch {
	case there:
	case run == nil:
		s.T.Fatalf("there is no run; people read:\n%s", s.Comments())
	default:
		s.T.Fatalf("it does not come to %q, but is %s (guard %q) after %d iterations; fault %q; people read:\n%s", args, run.State, s.of(run, "guard"), len(run.Iterations), fault, s.Comments())
	}
}

// doRun wants KEY=VALUE of the run.
func (s *script) doRun(args []string) {
	s.T.Helper()
	for _, a := range args {
		key, want, _ := strings.Cut(a, "=")
		if got := s.of(s.runs(), key); got != want {
			s.T.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}

// of is what scripts can ask of a run.
func (s *script) of(r *pipeline.Run, key string) string {
	switch key {
	case "guard":
		if g := r.Gate(); g != nil && g.Guard != nil {
			return string(g.Guard.Name)
		}
		return ""
	case "id":
		return fmt.Sprint(r.ID)
	case "state":
		return string(r.State)
	case "gates":
		return fmt.Sprint(len(r.Gates))
	case "reopened":
		return fmt.Sprint(len(r.Reopened))
	case "iterations":
		return fmt.Sprint(len(r.Iterations))
	case "calls":
		return fmt.Sprint(r.Usage.Calls)
	case "findings":
		return fmt.Sprint(len(r.Findings))
	case "plans":
		return fmt.Sprint(1 + len(r.PastPlans))
	case "closed":
		return fmt.Sprint(r.Closed != "")
	case "flaky":
		return fmt.Sprint(len(r.Current().Tests.Flaky))
	}
	s.T.Fatalf("a run has no %q that scripts can ask for", key)
	return ""
}

// doCheck wants the check run on the newest head to have a conclusion, "running" for
// none, and to say or not to say ("!") some words.
func (s *script) doCheck(args []string) {
	s.T.Helper()
	var c githubtest.CheckRun
	conclusion := "not there"
	s.soon(func() bool {
		for _, c = range s.pull().Checks {
			if c.Name == command.Slug && c.App == "" {
				if conclusion = c.Conclusion; c.Status != "completed" {
					conclusion = "running"
				}
				return conclusion == args[0]
			}
		}
		return false
	})
	if conclusion != args[0] {
		s.T.Errorf("the check is %s: %s: %s; want %s", conclusion, c.Title, c.Summary, args[0])
	}
	s.contains("the check", c.Title+"\n"+c.Summary, args[1:]...)
}

// doThread wants the thread that begins with some words to be "open" or "resolved",
// and to say or not to say ("!") others.
func (s *script) doThread(args []string) {
	s.T.Helper()
	t := s.thread(args[0])
	if t.Resolved != (args[1] == "resolved") {
		s.T.Errorf("the thread %q is resolved=%v, want %s", args[0], t.Resolved, args[1])
	}
	var text strings.Builder
	for _, c := range t.Comments {
		text.WriteString(c.Author + ": " + c.Body + "\n")
	}
	s.contains("the thread "+args[0], text.String(), args[2:]...)
}

// doReplied waits until a thread says something.
func (s *script) doReplied(args []string) {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), 60*time.Second)
	defer cancel()
	var said []githubtest.Comment
	if err := s.GitHub.Wait(ctx, func() bool {
		said = s.thread(args[0]).Comments
		return slices.ContainsFunc(said, func(c githubtest.Comment) bool { return strings.Contains(c.Body, args[1]) })
	}); err != nil {
		s.T.Fatalf("nobody says %q in the thread %q: %+v", args[1], args[0], said)
	}
}

// thread finds a thread by words of its first comment, or by "PATH: WORDS".
func (s *script) thread(words string) githubtest.Thread {
	s.T.Helper()
	path, rest, inFile := strings.Cut(words, ": ")
	for _, t := range s.pull().Threads {
		if strings.Contains(t.Comments[0].Body, words) || inFile && t.Path == path && strings.Contains(t.Comments[0].Body, rest) {
			return t
		}
	}
	s.T.Fatalf("no thread says %q: %+v", words, s.pull().Threads)
	return githubtest.Thread{}
}

// pull is the newest pull request.
func (s *script) pull() githubtest.Pull {
	s.T.Helper()
	pulls, err := s.GitHub.Pulls(servertest.Repo)
	s.Must(err)
	if len(pulls) == 0 {
		s.T.Fatal("there is no pull request")
	}
	return pulls[len(pulls)-1]
}

func (s *script) reviews() string {
	var b strings.Builder
	for _, r := range s.pull().Reviews {
		b.WriteString(r.Body + "\n")
	}
	return b.String()
}

// contains wants all words in a text; after "!", none.
// soon waits a while for what is shown on GitHub: a run is told of before all of it is.
func (s *script) soon(so func() bool) {
	ctx, cancel := context.WithTimeout(s.T.Context(), 10*time.Second)
	defer cancel()
	_ = s.GitHub.Wait(ctx, so) // what is wrong then is said by who asked
}

func (s *script) contains(what, text string, words ...string) {
	s.T.Helper()
	want := true
	for _, w := range words {
		if w == "!" {
			want = false
			continue
		}
		if strings.Contains(text, w) != want {
			s.T.Errorf("%s: contains %q is %v:\n%s", what, w, !want, text)
		}
	}
}

func (s *script) equal(what string, got any, want string) {
	s.T.Helper()
	if fmt.Sprint(got) != want {
		s.T.Errorf("%s: %v, want %s", what, got, want)
	}
}
