package delivery

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/pipeline"
	"forge/pipeline/command"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

const forgeID = 4242 // the App's own account

var update = flag.Bool("update", false, "write the golden files anew")

// Each file of testdata/notice holds an event, its payload, and the notice that
// it must become. Covers S20, lessons 1 and 18.
func TestRead(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/notice/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i+1 < len(ar.Files); i += 2 {
				in, want := ar.Files[i], &ar.Files[i+1]
				event, _, _ := strings.Cut(in.Name, ".")
				n, err := Read(event, in.Data, Options{BotID: forgeID, AppID: 31})
				if err != nil {
					t.Fatalf("%s: %v", in.Name, err)
				}
				raw, _ := json.MarshalIndent(brief(n), "", "  ")
				if *update {
					want.Data = append(raw, '\n')
				}
				if diff := cmp.Diff(strings.TrimSpace(string(want.Data)), string(raw)); diff != "" {
					t.Errorf("Read(%s) (-want +got):\n%s", in.Name, diff)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// brief drops the empty parts of a notice, and names the help instead of holding it: a new
// command changes none of the cases.
func brief(n pipeline.Notice) map[string]any {
	n.Command.Error = strings.Replace(n.Command.Error, command.Help(command.Slug), "(the help)", 1)
	raw, _ := json.Marshal(n)
	var m map[string]any
	json.Unmarshal(raw, &m)
	for _, k := range []string{"repo", "task", "command"} {
		if s, _ := json.Marshal(m[k]); !strings.ContainsAny(string(s), "123456789") && !strings.Contains(string(s), `":"`) || isZero(m[k]) {
			delete(m, k)
		}
	}
	return m
}

func isZero(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		for _, e := range x {
			if !isZero(e) {
				return false
			}
		}
		return true
	case string:
		return x == ""
	case float64:
		return x == 0
	case bool:
		return !x
	}
	return v == nil
}

func TestReadMalformed(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "{", "[]", `{"issue":[]}`, `{"sender":{"id":"x"}}`, `{"sender":{"id":` + strings.Repeat("9", 1000) + `}}`} {
		if n, err := Read("issues", []byte(in), Options{}); err == nil || len(err.Error()) > 500 {
			t.Errorf("Read(issues, %q) = %+v, %v, want a short error", in, n, err)
		} else if !strings.Contains(err.Error(), `"issues"`) {
			t.Errorf("Read(issues, %q): error %q does not name the event", in, err)
		}
	}
}

func TestParseCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		ok   bool
		want command.Line
	}{
		{"/forge status", true, command.Line{Name: "status"}},
		{"  /Forge  STOP  ", true, command.Line{Name: "stop"}},
		{"/forge", true, command.Line{Name: "help"}},
		{"\n\n/forge accept\r\ngood\r\nenough\r\n", true, command.Line{Name: "accept", Text: "good\nenough"}},
		{"/forge continue", true, command.Line{Name: "continue"}},
		{"/forge continue 3", true, command.Line{Name: "continue", Args: "3"}},
		{"/forge continue 3 with a channel\nplease", true, command.Line{Name: "continue", Args: "3", Text: "with a channel\nplease"}},
		{"/forge choose Use the cache", true, command.Line{Name: "choose", Args: "Use the cache"}},
		{"/forge cancel\nToo big for a demo.", true, command.Line{Name: "cancel", Text: "Too big for a demo."}},
		{"/forge Approve ALL \nThank you!", true, command.Line{Name: "approve", Args: "all", Text: "Thank you!"}},
		{"/forge raise 5", true, command.Line{Name: "raise", Args: "5"}},
		{"/forge dismiss F1 this is not a bug", true, command.Line{Name: "dismiss", Args: "F1", Text: "this is not a bug"}},
		{"> Is the note wanted?\n\n/forge approve", true, command.Line{Name: "approve"}},
		{" \n> one\n> > two\n>\n/forge stop\nnow", true, command.Line{Name: "stop", Text: "now"}},
		{"> one\r\n\r\n> two\r\n\r\n/forge stop\r\n> three", true, command.Line{Name: "stop", Text: "> three"}},
		{"> /forge stop\n\n> /forge accept\n", false, command.Line{}},
		{"> /forge stop\n\nNo.\n/forge accept", false, command.Line{}},
		{"> one\n\n    /forge stop", false, command.Line{}},
		{"／forge accept", true, command.Line{Name: "accept"}}, // as input methods of East Asia write it
		{"/forge　continue　2", true, command.Line{Name: "continue", Args: "2"}},
		{"/forge memory", true, command.Line{Name: "memory"}},
		{"/forge memory error texts", true, command.Line{Name: "memory", Text: "error texts"}},
		{"/forge remember Wrap errors\nall of them", true, command.Line{Name: "remember", Text: "Wrap errors\nall of them"}},
		{"/forge forget 9 10 11", true, command.Line{Name: "forget", Args: "9 10 11"}},
		{"/forge forget #9, 10 and #11: out of date", true, command.Line{Name: "forget", Args: "9 10 11", Text: "out of date"}},
		{"/forge forget 12: no longer true", true, command.Line{Name: "forget", Args: "12", Text: "no longer true"}},
		{"/forge forget 12：已过时", true, command.Line{Name: "forget", Args: "12", Text: "已过时"}},
		{"/forge forget 12 because it is out of date", true, command.Line{Name: "forget", Args: "12", Text: "it is out of date"}},
		{"/forge forget 12 and 13.", true, command.Line{Name: "forget", Args: "12 13"}},
		{"/forge forget #12: out of date\nreally", true, command.Line{Name: "forget", Args: "12", Text: "out of date\nreally"}},
		{"/forge forget 12\nout of date", true, command.Line{Name: "forget", Args: "12", Text: "out of date"}},
		{"/forge forget 12\n\nThis isn't true any more since 1.22.", true, command.Line{Name: "forget", Args: "12", Text: "This isn't true any more since 1.22."}},
		{"/forge forget 12\nWe don't do this anymore", true, command.Line{Name: "forget", Args: "12", Text: "We don't do this anymore"}},
		{"/forge forget 12\nIt is wrong.\nThanks!", true, command.Line{Name: "forget", Args: "12", Text: "It is wrong.\nThanks!"}},
		{"/forge forget 12\nGilt nicht mehr.", true, command.Line{Name: "forget", Args: "12", Text: "Gilt nicht mehr."}},
		{"/forge forget 12\nCe n'est plus vrai", true, command.Line{Name: "forget", Args: "12", Text: "Ce n'est plus vrai"}},
		{"/forge forget 12\nEsto ya no es así", true, command.Line{Name: "forget", Args: "12", Text: "Esto ya no es así"}},
		{"/forge forget 12\nもう使っていません。", true, command.Line{Name: "forget", Args: "12", Text: "もう使っていません。"}},
		{"/forge forget 12\n已过时", true, command.Line{Name: "forget", Args: "12", Text: "已过时"}},
		{"/forge forget 12\n> keep it\nOut of date.", true, command.Line{Name: "forget", Args: "12", Text: "> keep it\nOut of date."}},
		{"> /forge stop", false, command.Line{}},
		{"    /forge stop", false, command.Line{}},
		{"```\n/forge stop\n```", false, command.Line{}},
		{"\t/forge stop", false, command.Line{}},
		{"please /forge stop", false, command.Line{}},
		{"first\n/forge stop", false, command.Line{}},
		{"/forgery", false, command.Line{}},
		{"`/forge stop`", false, command.Line{}},
		{"", false, command.Line{}},
	} {
		got, ok := ParseCommand(c.body, "forge")
		if diff := cmp.Diff(c.want, got); ok != c.ok || diff != "" {
			t.Errorf("parseCommand(%q) = %v, want %v (-want +got):\n%s", c.body, ok, c.ok, diff)
		}
	}
	for body, want := range map[string]string{
		"/forge contineu 3":                     "Did you mean `/forge continue`?",
		"/forge staus":                          "Did you mean `/forge status`?",
		"/forge xyzzyxyzzy":                     "There is no command \"xyzzyxyzzy\".\n\nForge understands",
		"/forge continue x":                     "takes a number from 1 to 20, got \"x\"",
		"/forge continue 21":                    "got \"21\"",
		"/forge continue 0":                     "got \"0\"",
		"/forge continue -1":                    "got \"-1\"",
		"/forge choose":                         "takes words",
		"/forge remember":                       "takes words",
		"/forge forget":                         "takes the number of a learning, got \"\"",
		"/forge forget me":                      "got \"me\"",
		"/forge forget 0":                       "got \"0\"",
		"/forge forget 12 2 of 3 do not use it": "the line goes on after `/forge forget 12 2` with \"of 3 do not use it\"",
		"/forge forget 12: should we?":          "ask something",
		"/forge forget 12 nope, wrong number":   "the reason behind a colon: `/forge forget 12: it is out of date`",
		"/forge forget 12 I am not sure":        "may turn it around",
		"/forge forget 12, it later":            "may turn it around",
		"/forge forget 12 保持":                   "may turn it around",
		"/forge forget 12 .. or 13":             "may turn it around",
		"/forge forget 12 becausenot":           "may turn it around",
		"/forge forget 12abc":                   "got \"12abc\"",
		"/forge forget 12\nReally?":             "ask something",
		"/forge memroy":                         "Did you mean `/forge memory`?",
		"/forge continue 1e9":                   "got \"1e9\"",
		"/forge  accept not yet":                "the line goes on after `/forge accept` with \"not yet\"",
		"/forge approve if the tests pass":      "Nothing was done",
		"/forge accept?":                        "the line goes on after `/forge accept` with \"?\"",
		"/forge cancel not worth it":            "Nothing was done",
		"/forge approve, all":                   "Nothing was done",
		"/forge auth accept nicht":              "the line goes on after `/forge auth accept`",
		"/forge later accept":                   "the line goes on after `/forge later`",
		"> one\n/forge accept":                  "`/forge accept` stands directly below a quotation",
	} {
		if got, ok := ParseCommand(body, "forge"); !ok || !strings.Contains(got.Error, want) {
			t.Errorf("parseCommand(%q): error %q, want %q in it", body, got.Error, want)
		}
	}
	if _, ok := ParseCommand("/forge stop", "robot"); ok {
		t.Error("parseCommand takes another prefix than its own")
	}
	if c, ok := ParseCommand("/robot stop", "robot"); !ok || c.Name != "stop" {
		t.Errorf("parseCommand with another prefix: %+v %v", c, ok)
	}
}

func TestTicked(t *testing.T) {
	t.Parallel()
	const open = "text\n- [ ] `/forge accept` — take it\n- [ ] `/forge cancel` — no\n"
	for _, c := range []struct{ to, want string }{
		{strings.Replace(open, "[ ]", "[x]", 1), "/forge accept"},
		{strings.Replace(open, "- [ ] `/forge cancel", "- [X] `/forge cancel", 1), "/forge cancel"},
		{strings.ReplaceAll(open, "[ ]", "[x]"), ""},
		{open, ""},
		{open + "more", ""},
		{strings.Replace(open, "[ ] `/forge accept", "[x] `/forge cancel", 1), ""},
		{strings.Replace(open, "text", "- [x] `/forge stop`", 1), ""},
	} {
		if got := ticked(open, c.to); got != c.want {
			t.Errorf("ticked to %q = %q, want %q", c.to, got, c.want)
		}
	}
	if got := ticked(strings.Replace(open, "[ ]", "[x]", 1), open); got != "" {
		t.Errorf("unticking = %q, want nothing", got)
	}
}

func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/notice/*.txtar")
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i := 0; i < len(ar.Files); i += 2 {
			event, _, _ := strings.Cut(ar.Files[i].Name, ".")
			f.Add(event, ar.Files[i].Data)
		}
	}
	f.Fuzz(func(t *testing.T, event string, raw []byte) {
		n, err := Read(event, raw, Options{BotID: forgeID})
		if err != nil {
			return
		}
		if n.Kind == "" || n.Why == "" {
			t.Errorf("Read(%q, %q) has no outcome: %+v", event, raw, n)
		}
		if n.Actor.Bot && (n.Kind == pipeline.NoticeStart || n.Kind == pipeline.NoticeCommand || n.Kind == pipeline.NoticeFeedback) {
			t.Errorf("Read(%q, %q): a bot starts something: %+v", event, raw, n)
		}
		if n.Actor.ID == forgeID && n.Kind != pipeline.NoticeNone && n.Kind != pipeline.NoticeChecks && n.Kind != pipeline.NoticeInstallation && !n.Own {
			t.Errorf("Read(%q, %q): Forge reacts to itself: %+v", event, raw, n)
		}
	})
}
