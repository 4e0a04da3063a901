package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gorilla/mux"

	"forge/pipeline/record"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

const (
	deliveriesShown = 50
	payloadShown    = 64 << 10 // bytes
	payloadMargin   = 16 << 10 // bytes beyond, so that a secret at the end is seen whole: longer than any key
)

var deliveryStates = []record.DeliveryState{record.DeliveryDead, record.DeliveryWaiting, record.DeliveryDone}

// deliveriesData is the list of deliveries.
type deliveriesData struct {
	Choice        choice
	States        []record.DeliveryState
	State         record.DeliveryState
	Backlog       store.Backlog
	All           bool // those that nothing follows from, too
	Rows          []record.Delivery
	Newest, Older string // addresses
	Dead, Waiting string // addresses of the lists of these
	Other         string // address of the list with those that nothing follows from, or without them
}

func (p *Pages) deliveries(w http.ResponseWriter, r *http.Request, v Viewer) error {
	ctx, q := r.Context(), r.URL.Query()
	repos, _, err := p.visible(ctx, v)
	if err != nil {
		return err
	}
	list, all := v.Repos()
	if !all {
		list = append([]string{}, list...) // never nil: those of no repository are for people who see everything
	}
	d := deliveriesData{Choice: choice{Repo: q.Get("repo"), Repos: repos}, States: deliveryStates, State: record.DeliveryState(q.Get("state")),
		All: q.Get("all") != ""}
	if d.State != "" && !slices.Contains(deliveryStates, d.State) {
		return badInput("There is no state " + strconv.Quote(string(d.State)) + ".")
	}
	if repo := d.Choice.Repo; repo != "" {
		if !Sees(v, repo) {
			return notFound("There is no delivery of " + repo + ", or you do not see it.")
		}
		if !slices.Contains(repos, repo) { // it has deliveries without a run, maybe
			d.Choice.Repos = append(slices.Clone(repos), repo)
		}
		list = []string{repo}
	}
	f := store.DeliveryFilter{State: d.State, Repos: list, Limit: deliveriesShown + 1, SkipQuiet: !d.All}
	if before := q.Get("before"); before != "" {
		if f.Before, err = strconv.ParseInt(before, 10, 64); err != nil || f.Before < 1 {
			return badInput("before= takes the number of a delivery.")
		}
		d.Newest = pageURL(q, 0)
	}
	if d.Backlog, err = p.DB.Backlog(ctx, list); err != nil {
		return err
	}
	if d.Rows, err = p.DB.Deliveries(ctx, f); err != nil {
		return err
	}
	if len(d.Rows) > deliveriesShown {
		d.Rows = d.Rows[:deliveriesShown]
		d.Older = pageURL(q, d.Rows[deliveriesShown-1].ID)
	}
	other := url.Values{}
	for _, k := range []string{"repo", "state"} {
		if v := q.Get(k); v != "" {
			other.Set(k, v)
		}
	}
	if !d.All {
		other.Set("all", "1")
	}
	d.Other = "?" + other.Encode()
	d.Dead, d.Waiting = stateURL(d.Choice.Repo, record.DeliveryDead), stateURL(d.Choice.Repo, record.DeliveryWaiting)
	return p.render(w, r, v, "deliveries.html", page{Title: "Deliveries", Nav: "/deliveries", Live: "deliveries", Data: d})
}

func stateURL(repo string, s record.DeliveryState) string {
	q := url.Values{"state": {string(s)}}
	if repo != "" {
		q.Set("repo", repo)
	}
	return "?" + q.Encode()
}

// deliveryAt finds the delivery that an address names, if the viewer sees it, and
// whether they may still change what becomes of it. A delivery that belongs to no
// repository, such as an installation, is shown only to those who see everything.
func (p *Pages) deliveryAt(r *http.Request, v Viewer) (d *record.Delivery, mayWrite bool, err error) {
	if d, err = p.DB.Delivery(r.Context(), mux.Vars(r)["guid"]); err != nil {
		return nil, false, err
	}
	_, all := v.Repos()
	switch {
	case d.Repo == "" && !all, d.Repo != "" && !Sees(v, d.Repo):
		return nil, false, store.ErrNotFound
	case d.Repo == "":
		return d, true, nil
	}
	if mayWrite, err = v.MayWrite(r.Context(), d.Repo); err != nil {
		return nil, false, fmt.Errorf("ask whether %s may write to %s: %w", v.Actor().Login, d.Repo, err)
	}
	return d, mayWrite, nil
}

// deliveryData is one delivery.
type deliveryData struct {
	*record.Delivery
	MayWrite bool
	Size     int    // of the payload, in bytes
	Text     string // the payload as it is shown; empty for those who may not
	Cut      bool   // there is more of it
}

func (p *Pages) delivery(w http.ResponseWriter, r *http.Request, v Viewer) error {
	found, mayWrite, err := p.deliveryAt(r, v)
	if err != nil {
		return err
	}
	d := deliveryData{Delivery: found, MayWrite: mayWrite, Size: len(found.Payload)}
	if mayWrite {
		d.Text, d.Cut = showPayload(found.Payload)
	}
	live := "deliveries"
	if d.State == record.DeliveryDone { // nothing changes it any more
		live = ""
	}
	return p.render(w, r, v, "delivery.html", page{Title: "Delivery " + d.GUID, Nav: "/deliveries", Live: live, Data: d})
}

func (p *Pages) retryDelivery(w http.ResponseWriter, r *http.Request, v Viewer) error {
	d, mayWrite, err := p.deliveryAt(r, v)
	if err != nil {
		return err
	}
	if !mayWrite {
		return &problem{http.StatusForbidden, "To have a delivery handled again takes write access to " + d.Repo + "."}
	}
	text := "It waits to be handled again, with all its attempts."
	switch err := p.Redrive(r.Context(), d.GUID); {
	case errors.Is(err, store.ErrConflict):
		text = "It has been handled meanwhile: there is nothing to do again."
	case err != nil:
		return err
	default:
		p.Log.Info("a delivery is to be handled again", "delivery", d.GUID, "repo", d.Repo, "actor", v.Actor().Login, "actor_id", v.Actor().ID)
		p.Notify("deliveries", d.Repo)
	}
	done(w, r, "/deliveries/"+url.PathEscape(d.GUID), text)
	return nil
}

// showPayload is a payload as people read it: indented, without what looks like a
// secret, at most 64 KB. cut says that there is more.
func showPayload(payload []byte) (words string, cut bool) {
	words, cut = indent(payload, payloadShown+payloadMargin)
	words = legible(text.Scrub(strings.ToValidUTF8(words, "\uFFFD")))
	if len(words) > payloadShown {
		words, cut = strings.ToValidUTF8(words[:payloadShown], ""), true
	}
	return words, cut
}

// indent sets a JSON text out on lines, and stops after about limit bytes: what is
// nested deeply is many times larger than it was sent. What is no JSON stays readable.
func indent(src []byte, limit int) (string, bool) {
	var b strings.Builder
	depth, quoted, escaped := 0, false, false
	newline := func() {
		b.WriteByte('\n')
		b.WriteString(strings.Repeat("  ", min(depth, 50)))
	}
	for i, c := range src {
		if b.Len() >= limit {
			return b.String(), true
		}
		if quoted {
			b.WriteByte(c)
			quoted = escaped || c != '"'
			escaped = c == '\\' && !escaped
			continue
		}
		switch c {
		case '"':
			quoted = true
			b.WriteByte(c)
		case '{', '[':
			depth++
			b.WriteByte(c)
			if i+1 < len(src) && src[i+1] != c+2 { // in ASCII, the bracket that closes it
				newline()
			}
		case '}', ']':
			depth = max(0, depth-1)
			if i > 0 && src[i-1] != c-2 {
				newline()
			}
			b.WriteByte(c)
		case ',':
			b.WriteByte(c)
			newline()
		case ':':
			b.WriteString(": ")
		case ' ', '\n', '\r', '\t':
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), false
}
