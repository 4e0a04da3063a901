package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/command"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// Limits on what a form may hold. A page says the answer to it in a cookie, which
// browsers keep up to 4 KB.
const (
	formBytes = 128 << 10
	wordBytes = 20_000
	saidBytes = 600
)

// commandWords are the commands that a page can give.
var commandWords = []string{"continue", "accept", "cancel", "approve", "choose", "raise", "simplify", "take-over", "later", "without",
	"stop", "resume", "retry", "reset"}

// keyForm is what a form's key looks like.
var keyForm = lazyregexp.New(`^[A-Za-z0-9_-]{8,64}$`)

// refusal is why an answer was not taken. What was written is shown again.
type refusal struct {
	Status int
	Text   string
	Form   url.Values
}

// Lost are the words that no field of the page shows again.
func (r *refusal) Lost(g *gatePanel) string {
	if g != nil && g.Words {
		return ""
	}
	return r.Form.Get("text")
}

// answer takes a person's answer to a run's question, or another command.
func (p *Pages) answer(w http.ResponseWriter, r *http.Request, v Viewer) error {
	run, events, err := p.history(r, v)
	if err != nil {
		return err
	}
	may, err := v.MayWrite(r.Context(), run.Repo.FullName())
	if err != nil {
		return fmt.Errorf("ask whether %s may write to %s: %w", v.Actor().Login, run.Repo.FullName(), err)
	}
	if !may {
		return &problem{http.StatusForbidden, fmt.Sprintf("Nothing was changed: it takes write access to %s.", run.Repo.FullName())}
	}
	r.Body = http.MaxBytesReader(w, r.Body, formBytes)
	if err := r.ParseForm(); err != nil {
		return badInput("The form could not be read: it is damaged, or over 128 KB.")
	}
	cmd, key, wrong := readAnswer(r.PostForm)
	if wrong != "" {
		return p.showRun(w, r, v, run, events, &refusal{http.StatusBadRequest, wrong, r.PostForm})
	}
	to := fmt.Sprintf("/runs/%d", run.ID)
	key = "dashboard/" + strconv.FormatInt(v.Actor().ID, 10) + "/" + key
	if slices.ContainsFunc(events, func(e pipeline.Event) bool { return strings.HasPrefix(e.ID, key+"/") }) {
		done(w, r, to, "This was sent twice, and is done once.")
		return nil
	}
	if g := run.Gate(); cmd.Gate != "" && g != nil && g.ID != cmd.Gate && !slices.ContainsFunc(run.Gates, func(g pipeline.Gate) bool { return g.ID == cmd.Gate }) {
		return p.showRun(w, r, v, run, events, &refusal{http.StatusConflict, "This answers a question that the run has never asked.", r.PostForm})
	}
	// Asked here first, without consequences: what is wrong is said beside what was
	// written. Tell asks again, for somebody may be faster.
	if change, words := run.Answer(cmd, v.Actor(), "dashboard", 0, p.Now()); len(change) == 0 {
		status := http.StatusBadRequest
		if g := run.Gate(); g == nil || cmd.Gate != "" && cmd.Gate != g.ID {
			status = http.StatusConflict
		}
		return p.showRun(w, r, v, run, events, &refusal{status, words, r.PostForm})
	}
	words, err := p.Tell(r.Context(), run.ID, key, cmd, v.Actor(), "dashboard")
	if err != nil {
		p.Log.Error("pass an answer on", "run", run.ID, "error", err)
		return p.showRun(w, r, v, run, events, &refusal{http.StatusInternalServerError,
			"Your answer could not be passed on; the server's log says why. Please send it again.", r.PostForm})
	}
	did := "Done: " + text.Clip(strings.TrimSpace(cmd.Name+" "+cmd.Args), titleShown) + "."
	done(w, r, to, text.Clip(cmp.Or(words, did), saidBytes))
	return nil
}

// readAnswer makes a command of a form, or says what is wrong with it.
func readAnswer(form url.Values) (cmd command.Line, key, wrong string) {
	key = form.Get("key")
	cmd.Name, cmd.Args, _ = strings.Cut(strings.TrimSpace(form.Get("choice")), " ")
	cmd.Gate = form.Get("gate")
	cmd.Text = strings.TrimSpace(strings.ReplaceAll(form.Get("text"), "\r\n", "\n"))
	switch {
	case !slices.Contains(commandWords, cmd.Name):
		return cmd, key, fmt.Sprintf("There is no choice %q.", text.Clip(cmd.Name, titleShown))
	case !keyForm.MatchString(key):
		return cmd, key, "This form has no key, by which a repeat is known. Load the page again, please."
	case len(cmd.Text) > wordBytes:
		return cmd, key, fmt.Sprintf("Your words are %d bytes long; at most %d are passed on.", len(cmd.Text), wordBytes)
	}
	switch cmd.Name {
	case "continue":
		cmd.Args = strings.TrimSpace(form.Get("n"))
	case "raise":
		cmd.Args = strings.TrimSpace(form.Get("usd"))
	}
	return cmd, key, ""
}

// toRun leads who reads the address of an answer to the run.
func (p *Pages) toRun(w http.ResponseWriter, r *http.Request, v Viewer) error {
	row, err := p.row(r, v)
	if err == nil {
		http.Redirect(w, r, fmt.Sprintf("/runs/%d", row.ID), http.StatusSeeOther)
	}
	return err
}
