package production

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/pipeline/config"
)

var everything = config.Production{Tell: true, Ask: true, Issue: true, Run: true, Revert: true, RollBack: true}

// stage is a bad deployment with what is known of it, on which all answers are allowed.
func stage() (*Incident, Scene) {
	i := trouble(KindAnomaly, metric(0.004, 0.07))
	i.Correlated, i.Firing, i.Severity = received, []string{i.Group}, SeverityCritical
	i.Suspects = []Suspect{{Deployment: 2, Commit: sha(2), Pull: 42, Run: 7, Score: 0.9}}
	i.Acts = []Act{{Answer: AnswerIssue, State: ActDone, Number: 50, At: received}}
	at := func(n, minutes int) Deployment {
		d := deployed(n, minutes).Deployment
		d.Created = d.At.Add(-time.Minute)
		return d
	}
	return i, Scene{Settings: everything, Now: received.Add(5 * time.Minute), Incidents: []*Incident{i}, Deployments: []Deployment{at(2, 3), at(1, 300)}}
}

// Each limit keeps the answers from being given that it is for, and no other; no
// setting lifts it. What a person may choose in spite of it, that person may.
func TestLimitsOfAnswers(t *testing.T) {
	t.Parallel()
	other := func(s *Scene, a Act, change ...func(*Incident)) {
		o := &Incident{ID: 3, Environment: "production", State: StateResolved, Acts: []Act{a}}
		for _, c := range change {
			c(o)
		}
		s.Incidents = append(s.Incidents, o)
	}
	for _, tt := range []struct {
		name         string
		change       func(*Incident, *Scene)
		auto, chosen string // what is allowed, beside the issue, which is there
		why          string // in the reason of one that is not
	}{
		{"all is clear", func(*Incident, *Scene) {}, "rollback revert run ask", "rollback revert run", ""},
		{"switched off", func(_ *Incident, s *Scene) { s.Settings = config.Production{} }, "", "rollback revert run", ""},
		{"another environment", func(_ *Incident, s *Scene) { s.Settings.Environments = []string{"staging"} }, "", "rollback revert run", ""},
		{"it only takes back", func(i *Incident, _ *Scene) {
			i.Suspects[0].Back, i.Suspects[0].Against = "it takes back “x” and does nothing else", "it takes back “x”"
		}, "ask", "revert run", "does nothing else"},
		{"it takes something back, too", func(i *Incident, _ *Scene) { i.Suspects[0].Undoes = "“x”" }, "run ask", "rollback revert run", ""},
		{"something tells against the one before", func(i *Incident, s *Scene) {
			other(s, Act{}, func(o *Incident) {
				o.Acts, o.Suspects = nil, []Suspect{{Deployment: 1, Score: 0.69, Against: "it brought nothing"}}
			})
		}, "rollback revert run ask", "rollback revert run", ""},
		{"ask alone", func(_ *Incident, s *Scene) { s.Settings = config.Production{Ask: true} }, "ask", "rollback revert run", ""},
		{"a warning", func(i *Incident, _ *Scene) { i.Severity = SeverityWarning }, "ask", "rollback revert run", ""},
		{"suspected, not certain", func(i *Incident, _ *Scene) { i.Suspects[0].Score = 0.69 }, "ask", "rollback revert run", ""},
		{"hardly suspected", func(i *Incident, _ *Scene) { i.Suspects[0].Score = 0.39 }, "ask", "run", "nothing is suspected"},
		{"nothing suspected", func(i *Incident, _ *Scene) { i.Suspects = nil }, "ask", "run", "no deployment is suspected"},
		{"it recovers", func(i *Incident, _ *Scene) { i.State = StateRecovering }, "ask", "rollback revert run", ""},
		{"it is over", func(i *Incident, _ *Scene) { i.State = StateResolved }, "", "", "the incident is resolved"},
		{"a storm", func(i *Incident, _ *Scene) { i.Storm = true }, "ask", "rollback revert run", ""},
		{"flapping", func(i *Incident, s *Scene) {
			for n := range 4 {
				i.Changes = append(i.Changes, s.Now.Add(-time.Duration(n)*time.Minute))
			}
		}, "ask", "rollback revert run", ""},
		{"muted", func(i *Incident, s *Scene) { i.Muted = s.Now.Add(time.Minute) }, "", "rollback revert run", ""},
		{"a newer deployment", func(i *Incident, s *Scene) {
			s.Deployments = append(s.Deployments, Deployment{ID: 3, Environment: "production", Commit: sha(3), Created: received, State: "pending"})
		}, "revert run ask", "revert run", "deployment 3 was made after"},
		{"a newer one elsewhere", func(i *Incident, s *Scene) {
			s.Deployments = append(s.Deployments, Deployment{ID: 3, Environment: "staging", Commit: sha(3), Created: received, State: "pending"})
		}, "rollback revert run ask", "rollback revert run", ""},
		{"rolled back half an hour ago", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRollBack, State: ActDone, By: "ann", At: s.Now.Add(-30 * time.Minute), Number: 1})
		}, "revert run ask", "revert run", "within the hour"},
		{"being rolled back for another incident", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRollBack, State: ActBegun, At: s.Now.Add(-time.Minute)})
		}, "revert run ask", "revert run", "within the hour"},
		{"rolled back by itself this day", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRollBack, State: ActDone, At: s.Now.Add(-20 * time.Hour)})
		}, "revert run ask", "rollback revert run", ""},
		{"rolled back elsewhere", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRollBack, State: ActDone, At: s.Now.Add(-time.Minute)}, func(o *Incident) { o.Environment = "staging" })
		}, "rollback revert run ask", "rollback revert run", ""},
		{"somebody rolled back not long ago", func(i *Incident, s *Scene) {
			s.Deployments = append(s.Deployments, Deployment{ID: 0, Environment: "production", Task: TaskRollBack, Created: s.Now.Add(-50 * time.Minute)})
		}, "revert run ask", "revert run", "within the hour"},
		{"the suspect is a roll-back", func(i *Incident, s *Scene) {
			s.Deployments[0].Task, s.Deployments[0].Created = TaskRollBack, s.Now.Add(-2*time.Hour)
			s.Deployments[1].Created = s.Now.Add(-5 * time.Hour)
		}, "revert run ask", "revert run", "is a roll-back"},
		{"the suspect brought back what ran before", func(i *Incident, s *Scene) {
			s.Deployments = append(s.Deployments, deployed(0, 500).Deployment)
			s.Deployments[0].Commit, s.Deployments[2].Commit = sha(9), sha(9)
		}, "ask", "revert run", "brought back"},
		{"the same commit was deployed twice, with nothing between", func(i *Incident, s *Scene) {
			s.Deployments = append(s.Deployments, deployed(0, 500).Deployment)
			s.Deployments[1].Commit = sha(2)
		}, "rollback revert run ask", "rollback revert run", ""},
		{"the first deployment ever", func(i *Incident, s *Scene) { s.Deployments = s.Deployments[:1] }, "revert run ask", "revert run", "no deployment before it"},
		{"the one before was bad, too", func(i *Incident, s *Scene) {
			other(s, Act{}, func(o *Incident) { o.Acts, o.Suspects = nil, []Suspect{{Deployment: 1, Score: 0.5}} })
		}, "revert run ask", "revert run", "no deployment before it"},
		{"the one before was blamed wrongly", func(i *Incident, s *Scene) {
			other(s, Act{}, func(o *Incident) {
				o.Acts, o.Suspects, o.State = nil, []Suspect{{Deployment: 1, Score: 0.9}}, StateDismissed
			})
		}, "rollback revert run ask", "rollback revert run", ""},
		{"the same commit was there before", func(i *Incident, s *Scene) { s.Deployments[1].Commit = sha(2) }, "revert run ask", "revert run",
			"no deployment before it"},
		{"deployed a week ago", func(i *Incident, s *Scene) {
			for n := range s.Deployments {
				s.Deployments[n].At, s.Deployments[n].Created = s.Deployments[n].At.Add(-8*24*time.Hour), s.Deployments[n].Created.Add(-8*24*time.Hour)
			}
		}, "revert run ask", "revert run", "older than a week"},
		{"rolled back before", func(i *Incident, s *Scene) {
			i.Acts = append(i.Acts, Act{Answer: AnswerRollBack, State: ActDone, At: received.Add(-3 * time.Hour)})
		}, "revert run ask", "revert run", "it was done before"},
		{"a roll-back that was refused", func(i *Incident, s *Scene) {
			i.Acts = append(i.Acts, Act{Answer: AnswerRollBack, State: ActRefused, Why: "no permission"})
		}, "revert run ask", "revert run", "it was tried: no permission"},
		{"a revert that was refused", func(i *Incident, s *Scene) {
			i.Acts = append(i.Acts, Act{Answer: AnswerRevert, State: ActRefused, Why: "conflicts"})
		}, "rollback run ask", "rollback revert run", ""},
		{"no issue", func(i *Incident, s *Scene) { i.Acts, s.Settings.Issue = nil, false }, "rollback revert ask", "issue rollback revert", "no issue that a run"},
		{"neither issue nor pull request", func(i *Incident, s *Scene) { i.Acts, s.Settings.Issue, i.Suspects[0].Pull = nil, false, 0 },
			"rollback revert", "issue rollback revert", ""},
		{"two runs this day", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRun, State: ActDone, At: s.Now.Add(-time.Hour)})
			other(s, Act{Answer: AnswerRun, State: ActDone, At: s.Now.Add(-23 * time.Hour)})
		}, "rollback revert ask", "rollback revert run", ""},
		{"two reverts this day", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRevert, State: ActDone, At: s.Now.Add(-time.Hour)})
			other(s, Act{Answer: AnswerRevert, State: ActBegun, At: s.Now.Add(-23 * time.Hour)})
		}, "rollback run ask", "rollback revert run", ""},
		{"a fix of an incident did it, by its issue", func(i *Incident, s *Scene) {
			i.Suspects[0].Issue = 44
			other(s, Act{Answer: AnswerIssue, State: ActDone, Number: 44})
		}, "ask", "rollback revert run", ""},
		{"a fix of an incident did it, by its run", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRun, State: ActDone, Number: 7, At: s.Now.Add(-100 * time.Hour)})
		}, "ask", "rollback revert run", ""},
		{"a revert did it", func(i *Incident, s *Scene) { other(s, Act{Answer: AnswerRevert, State: ActDone, Number: 42}) }, "ask", "rollback revert run", ""},
		{"a roll-back did it", func(i *Incident, s *Scene) {
			other(s, Act{Answer: AnswerRollBack, State: ActDone, Number: 2, At: s.Now.Add(-100 * time.Hour)})
		}, "ask", "rollback revert run", ""},
	} {
		i, s := stage()
		tt.change(i, &s)
		var auto, chosen, whys []string
		for range Answers {
			v, by, ok := s.Next(i)
			if !ok {
				break
			}
			if by != "" || v.Why != "" {
				t.Errorf("%s: next is %+v by %q", tt.name, v, by)
			}
			auto = append(auto, string(v.Answer))
			i.Acts = append(i.Acts, Act{Answer: v.Answer, State: ActDone, Number: 1000, At: s.Now})
		}
		i, s = stage()
		tt.change(i, &s)
		for _, v := range s.Judge(i) {
			if v.Why == "" {
				chosen = append(chosen, string(v.Answer))
			}
			whys = append(whys, v.Why)
		}
		if got := strings.Join(auto, " "); got != tt.auto {
			t.Errorf("%s: by itself %q, want %q", tt.name, got, tt.auto)
		}
		if got := strings.Join(chosen, " "); got != tt.chosen {
			t.Errorf("%s: to choose %q, want %q (%q)", tt.name, got, tt.chosen, whys)
		}
		if !slices.ContainsFunc(whys, func(w string) bool { return strings.Contains(w, tt.why) }) {
			t.Errorf("%s: the reasons are %q, want %q", tt.name, whys, tt.why)
		}
	}
}

// A roll-back goes to what ran before, and not across what cannot be undone so.
func TestAimOfRollBack(t *testing.T) {
	t.Parallel()
	i, s := stage()
	v, _, _ := s.Next(i)
	if v.Answer != AnswerRollBack || v.Aim.To != sha(1) || v.Aim.From != sha(2) || v.Aim.Deployment != 2 {
		t.Errorf("%+v", v)
	}
	if len(v.Aim.Over) != 0 {
		t.Errorf("%+v", v)
	}
	failed, blamed := deployed(7, 200).Deployment, deployed(6, 100).Deployment
	failed.At, failed.State, failed.Created, blamed.Created = time.Time{}, "failure", received.Add(-200*time.Minute), received.Add(-101*time.Minute)
	i, s = stage()
	s.Deployments = append(s.Deployments, blamed, failed)
	s.Incidents = append(s.Incidents, &Incident{ID: 3, Environment: "production", State: StateResolved, Suspects: []Suspect{{Deployment: 6, Score: 0.9}}})
	if v, _, _ := s.Next(i); v.Aim.To != sha(1) || !slices.Equal(v.Aim.Over, []string{sha(7), sha(6)}) {
		t.Errorf("over what ran and what failed in between: %+v", v)
	}
	_, s = stage()
	for k := range s.Deployments { // GitHub's times are in seconds
		s.Deployments[k].At = s.Deployments[len(s.Deployments)-1].At
	}
	if to, why := s.healthyBefore(s.Deployments[slices.IndexFunc(s.Deployments, func(d Deployment) bool { return d.ID == 2 })]); to.Commit != sha(1) {
		t.Errorf("in the same second: %+v, %s", to, why)
	}
	_, s = stage()
	s.Settings.Irreversible = []string{"terraform/**"}
	for _, tt := range []struct {
		files []string
		want  bool
	}{
		{nil, true}, {[]string{"cart/cart.go", "README.md"}, true}, {[]string{"cart/cart.go", "db/migrations/0007_users.sql"}, false},
		{[]string{"app/migrations/0002.py"}, false},
		{[]string{"schema.sql"}, false}, {[]string{"db/migrate/2026_x.rb"}, false}, {[]string{"terraform/a/main.tf"}, false}, {make([]string, 500), false},
		{[]string{"Terraform/a/main.tf"}, false}, {[]string{"Data/Migrations/20260101_Init.cs"}, false}, {[]string{"X.SQL"}, false}, // letter case
		{[]string{"src/main/resources/db/changelog/changes.xml"}, false}, {[]string{"db/changelog.yaml"}, false}, {[]string{"db.changelog-1.0.xml"}, false},
		{[]string{"db/schema.rb"}, false}, {[]string{"db/structure.sql"}, false}, {[]string{"db/animals_schema.rb"}, false},
		{[]string{"db/animals_migrate/1_x.rb"}, false}, {[]string{"prisma/schema.prisma"}, false}, {[]string{"schema.prisma"}, false},
		{[]string{"shop/migrations/0001_initial.py"}, false}, {[]string{"alembic/versions/1a2b_x.py"}, false}, {[]string{"alembic.ini"}, true},
		{[]string{"db/migration/V2__Users.java"}, false}, {[]string{"src/V2__Users.kt"}, false}, {[]string{"migrations/000001_users.up.sql"}, false},
		{[]string{"db/goose/00001_users.go"}, false}, {[]string{"CHANGELOG.md"}, true}, {[]string{"docs/changelog/2026.md"}, true}, {[]string{"schema.go"}, true},
		{[]string{"api/schema.rb"}, true}, {[]string{"internal/versions/versions.go"}, true}, {[]string{"view2__x.go"}, true},
	} {
		if why := s.Crosses(tt.files); (why == "") != tt.want {
			t.Errorf("%.3q: %q", tt.files, why)
		}
	}
}

// Only what was attributed to a run, cured and is over teaches, once; a dismissal takes
// it back.
func TestLesson(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Incident)
		want   Lesson
	}{
		{"cured", func(*Incident) {}, LessonEscaped},
		{"it goes on", func(i *Incident) { i.State = StateRecovering }, ""},
		{"taught", func(i *Incident) { i.Taught = true }, ""},
		{"nothing was done", func(i *Incident) { i.Acts = i.Acts[:1] }, ""},
		{"the roll-back was refused", func(i *Incident) { i.Acts[1].State = ActRefused }, ""},
		{"suspected alone", func(i *Incident) { i.Suspects[0].Score = 0.6 }, ""},
		{"not of Forge", func(i *Incident) { i.Suspects[0].Run = 0 }, ""},
		{"a storm", func(i *Incident) { i.Storm = true }, ""},
		{"dismissed before", func(i *Incident) { i.State = StateDismissed }, ""},
		{"dismissed after", func(i *Incident) { i.State, i.Taught = StateDismissed, true }, LessonTakenBack},
	} {
		i, _ := stage()
		i.State = StateResolved
		i.Acts = append(i.Acts, Act{Answer: AnswerRollBack, State: ActDone})
		tt.change(i)
		if got := i.Lesson(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The log of answers folds to how far they are: begun, done once, refused, declined.
func TestActsFold(t *testing.T) {
	t.Parallel()
	i, _ := stage()
	i.Acts = nil
	seq := i.Seq
	on := func(typ EventType, d EventData) {
		seq++
		i.Apply(Event{Seq: seq, Type: typ, At: received, Data: d})
	}
	on(EventChosen, EventData{Answer: AnswerRevert, By: "ann"})
	if i.Chosen == nil || i.Chosen.By != "ann" {
		t.Fatalf("%+v", i.Chosen)
	}
	on(EventBegun, EventData{Answer: AnswerRollBack, Aim: &Aim{To: sha(1)}})
	if i.Chosen == nil || i.Act(AnswerRollBack).State != ActBegun {
		t.Errorf("another answer settles the choice: %+v", i.Acts)
	}
	on(EventBegun, EventData{Answer: AnswerRevert, By: "ann", Aim: &Aim{Pull: 42}})
	on(EventDone, EventData{Answer: AnswerRevert, Number: 43})
	on(EventRefused, EventData{Answer: AnswerRollBack, Why: "no"})
	on(EventRefused, EventData{Answer: AnswerRun, Why: "never begun"})
	on(EventChosen, EventData{Answer: AnswerIssue, By: "bob"})
	on(EventDeclined, EventData{Answer: AnswerIssue, By: "bob", Why: "no"})
	var got []string
	for _, a := range i.Acts {
		got = append(got, fmt.Sprintf("%s %s %d %d", a.Answer, a.State, a.Aim.Pull, a.Number))
	}
	if strings.Join(got, "; ") != "rollback refused 0 0; revert done 42 43; run refused 0 0" || i.Chosen != nil || i.Declined == nil || i.Declined.By != "bob" {
		t.Errorf("%q, %+v, %+v", got, i.Chosen, i.Declined)
	}
}
