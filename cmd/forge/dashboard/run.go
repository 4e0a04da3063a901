package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// runData is the page of a run.
type runData struct {
	*pipeline.Run
	Repo       string // "owner/name"
	State      string // where it stands, in a sentence
	Links      []link
	Meters     []meter
	Gate       *gatePanel
	Commands   []button
	Modules    []moduleRow
	Line       timeline
	Issues     issueList
	Suppressed []string // what the review found and memory held back or lowered
	Tests      []testRow
	Costs      costTable
	Texts      []folded
	Waived     []waiver
	Recalls    []recallRow
	Looks      []pipeline.Reflection
	Wrong      *refusal // what was wrong with the answer just given
}

// link leads to GitHub.
type link struct{ Name, Text, URL string }

// meter shows how much of a limit is used.
type meter struct {
	Name             string
	Used, Limit      int64
	UsedText, OfText string
}

// High is from where on the limit is near.
func (m meter) High() int64 { return m.Limit * 8 / 10 }

// folded is a long text that is opened by who wants it.
type folded struct{ ID, Title, Text string }

// noRun is the answer for a run that does not exist, and for one that is not shown.
func noRun(id string) error {
	return notFound(fmt.Sprintf("There is no run %.20s, or none that you may see.", id))
}

// runID reads the run's number from the address.
func runID(r *http.Request) (int64, error) {
	text := mux.Vars(r)["id"]
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, noRun(text)
	}
	return id, nil
}

// history loads a run that the viewer sees, with its events.
func (p *Pages) history(r *http.Request, v Viewer) (*pipeline.Run, []pipeline.Event, error) {
	id, err := runID(r)
	if err != nil {
		return nil, nil, err
	}
	events, err := p.DB.Events(r.Context(), id, 0)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, noRun(strconv.FormatInt(id, 10))
	}
	if err != nil {
		return nil, nil, err
	}
	run := new(pipeline.Run)
	for _, e := range events {
		run.Apply(e)
	}
	if !Sees(v, run.Repo.FullName()) {
		return nil, nil, noRun(strconv.FormatInt(id, 10))
	}
	return run, events, nil
}

// row finds a run that the viewer sees, without its events.
func (p *Pages) row(r *http.Request, v Viewer) (store.RunRow, error) {
	id, err := runID(r)
	if err != nil {
		return store.RunRow{}, err
	}
	rows, err := p.DB.Runs(r.Context(), store.Filter{Before: id + 1, Limit: 1, Parts: true})
	if err != nil {
		return store.RunRow{}, err
	}
	if len(rows) == 0 || rows[0].ID != id || !Sees(v, rows[0].Repo) {
		return store.RunRow{}, noRun(strconv.FormatInt(id, 10))
	}
	return rows[0], nil
}

func (p *Pages) run(w http.ResponseWriter, r *http.Request, v Viewer) error {
	run, events, err := p.history(r, v)
	if err != nil {
		return err
	}
	return p.showRun(w, r, v, run, events, nil)
}

// showRun renders the page of a run, with what was wrong with an answer to it.
func (p *Pages) showRun(w http.ResponseWriter, r *http.Request, v Viewer, run *pipeline.Run, events []pipeline.Event, wrong *refusal) error {
	d := runData{Run: run, Repo: run.Repo.FullName(), State: standing(run), Links: links(run), Meters: meters(run),
		Modules: modules(run), Line: newTimeline(run, events), Issues: issues(run, events), Suppressed: suppressed(run), Tests: tests(run),
		Texts: texts(run), Waived: waivers(run), Wrong: wrong}
	d.Costs = costs(run, &d.Line)
	d.Gate, d.Commands = p.gatePanel(run, wrong), commands(run)
	var err error
	if d.Recalls, err = p.recalls(r.Context(), run.ID); err != nil {
		return err
	}
	if d.Looks, err = p.DB.Reflections(r.Context(), run.ID); err != nil {
		return err
	}
	pg := page{Title: fmt.Sprintf("Run %d: %s", run.ID, text.Clip(text.FirstLine(run.Task.Title), titleShown)), Nav: "/runs",
		Live: fmt.Sprintf("run/%d", run.ID), Data: d}
	if wrong != nil {
		pg.Live = "" // it is the answer to a form: it cannot be read again
		w = &statusWriter{w, wrong.Status}
	}
	return p.render(w, r, v, "run.html", pg)
}

// How much of texts is shown that others wrote, in characters.
const (
	titleShown = 120
	textShown  = 1200
)

// standing says in one sentence where a run stands: its summary, without what
// stands elsewhere on the page.
func standing(run *pipeline.Run) string {
	shown := *run
	shown.Gates = nil // the question has its own place
	words := shown.Summary()
	switch {
	case run.State == pipeline.StateStopped && run.StoppedBy.Login != "":
		words += " " + run.StoppedBy.Login + " stopped it."
	case run.Awaits() != "" && run.Await.Model:
		words += fmt.Sprintf(" Where that lasts until %s, a human is asked.", run.Await.Until.UTC().Format("15:04 UTC"))
	case run.Fault != nil && !run.State.Ended():
		words += fmt.Sprintf(" Its last step broke down (%s): %s", run.Fault.Class,
			text.Clip(text.FirstLine(cmp.Or(run.Fault.Operator, run.Fault.Message)), 2*titleShown))
	}
	if run.Track != nil {
		words += fmt.Sprintf(" Its track is %s.", run.Track)
	}
	return words
}

// links lead to the run's issue, pull request and branch.
func links(run *pipeline.Run) (out []link) {
	base := repoURL(run)
	switch {
	case run.Task.URL != "":
		out = append(out, link{"Issue", issueName(run), run.Task.URL})
	case run.Task.Issue > 0 && base != "":
		out = append(out, link{"Issue", issueName(run), base + "/issues/" + strconv.Itoa(run.Task.Issue)})
	}
	if of := run.Part; of != nil {
		out = append(out, link{"Module", of.Module.ID + " of run " + strconv.FormatInt(of.Run, 10), "/runs/" + strconv.FormatInt(of.Run, 10)})
	}
	if pull := run.Published.Pull; pull != nil {
		out = append(out, link{"Pull request", "#" + strconv.Itoa(pull.Number), pull.URL})
	}
	if run.Branch != "" {
		l := link{Name: "Branch", Text: run.Branch}
		if base != "" && run.Published.Head != "" {
			l.URL = base + "/tree/" + (&url.URL{Path: run.Branch}).EscapedPath()
		}
		out = append(out, l)
	}
	return out
}

func issueName(run *pipeline.Run) string {
	if run.Task.Issue == 0 {
		return "the task"
	}
	return "#" + strconv.Itoa(run.Task.Issue)
}

// repoURL is the repository's address on the web, "" for a local one.
func repoURL(run *pipeline.Run) string {
	u := strings.TrimSuffix(run.Repo.CloneURL, ".git")
	if !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
		return ""
	}
	return u
}

// commitURL is a commit's address on the web, "" when there is none.
func commitURL(run *pipeline.Run, sha string) string {
	base := repoURL(run)
	if base == "" || sha == "" {
		return ""
	}
	return base + "/commit/" + url.PathEscape(sha)
}

// meters show what a run used of its limits.
func meters(run *pipeline.Run) []meter {
	all := run.Total()
	out := []meter{{"Cost", all.MicroUSD, run.CostLimit(), all.Cost(), text.USD(run.CostLimit())}}
	if all.Unpriced > 0 { // a limit on what is not known holds nothing: the one on tokens does
		out[0].OfText = ""
	}
	if limit := run.WallLimit(); limit > 0 {
		out = append(out, meter{"Working time", run.Worked(), limit, clock(run.Worked()), clock(limit)})
	}
	if limit := run.TokenLimit(); limit > 0 {
		used := all.Input + all.Output
		out = append(out, meter{"Tokens", used, limit, tokens(used), tokens(limit)})
	}
	n := 0
	if it := run.Current(); it != nil {
		n = it.Number
	}
	return append(out, meter{"Iterations", int64(n), int64(run.MaxIterations()), strconv.Itoa(n), strconv.Itoa(run.MaxIterations())})
}

func clock(ms int64) string { return text.Clock(time.Duration(ms) * time.Millisecond) }

func tokens(n int64) string {
	switch {
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + " M"
	case n >= 1e4:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 0, 64) + " k"
	}
	return strconv.FormatInt(n, 10)
}

// texts are a run's documents: its plan, the report of each iteration, the newest
// first, what was tried, and why it stands where it stands.
func texts(run *pipeline.Run) (out []folded) {
	out = append(out, folded{"why", "Why it stands where it stands: every guard with its numbers", run.Explain()})
	for i := len(run.Iterations); i > 0; i-- {
		if text := run.Report(i); text != "" {
			out = append(out, folded{fmt.Sprintf("report-%d", i), fmt.Sprintf("Validation report, iteration %d", i), text})
		}
	}
	return append(out, folded{"scratchpad", "Scratchpad: everything that was tried", run.Scratchpad()})
}

// recallRow is a learning that a phase was given, or not given on purpose.
type recallRow struct {
	Phase     pipeline.Phase
	Iteration int
	Role      string
	Learning  int64
	Content   string
	Fate      string
}

// recallsShown is how many recalled learnings are shown.
const recallsShown = 100

// recalls lists what the run's phases remembered, in their order.
func (p *Pages) recalls(ctx context.Context, run int64) (out []recallRow, err error) {
	list, err := p.DB.Recalls(ctx, run)
	if err != nil {
		return nil, err
	}
	known := map[int64]string{}
	for _, r := range list {
		used := map[int64]bool{}
		for _, id := range r.Used {
			used[id] = true
		}
		for i, id := range append(r.Given[:len(r.Given):len(r.Given)], r.Withheld...) {
			if len(out) == recallsShown {
				return out, nil
			}
			if _, ok := known[id]; !ok {
				l, err := p.DB.Learning(ctx, id)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					return nil, err
				}
				known[id] = cmp.Or(text.Clip(l.Content, textShown), "(gone)")
			}
			row := recallRow{r.Phase, r.Iteration, string(r.Role), id, known[id], "given"}
			switch {
			case i >= len(r.Given):
				row.Fate = "left out by chance, to measure what it is worth"
			case used[id]:
				row.Fate = "given and used"
			}
			out = append(out, row)
		}
	}
	return out, nil
}

// Linked reports whether commits can be seen on the web.
func (d runData) Linked() bool { return repoURL(d.Run) != "" }

// CommitURL is a commit's address on the web.
func (d runData) CommitURL(sha string) string { return commitURL(d.Run, sha) }

// In says in how long a time will be.
func (p page) In(t time.Time) string {
	switch d := t.Sub(p.Now); {
	case d < time.Minute:
		return "any moment"
	case d < time.Hour:
		return fmt.Sprintf("in %d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("in %d h", int(d.Hours()))
	default:
		return fmt.Sprintf("in %d days", int(d.Hours()/24))
	}
}

// size is a number of bytes for people.
func size(n int) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%d KB", (n+1023)>>10)
}

// formKey is a new name for a form: sent twice, it counts once.
func formKey() string { return rand.Text() }
