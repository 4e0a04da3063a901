package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// How much of a log is shown at once.
const (
	eventsShown = 100
	dataShown   = 64 << 10 // bytes of what an event carries
)

// eventsData is the log of a run.
type eventsData struct {
	store.RunRow
	Events []eventRow
	Types  []typeCount
	Type   pipeline.EventType
	All    int
	First  string // addresses
	Next   string
}

type typeCount struct {
	Type pipeline.EventType
	N    int
}

// eventRow is an event as it is kept.
type eventRow struct {
	Seq    int64
	Time   time.Time
	Type   pipeline.EventType
	Source string
	Brief  string
	Data   string
	Cut    int // bytes of Data that are not shown
}

func (p *Pages) events(w http.ResponseWriter, r *http.Request, v Viewer) error {
	row, err := p.row(r, v)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	after, err := natural(q, "after", 0)
	if err != nil {
		return err
	}
	d := eventsData{RunRow: row, Type: pipeline.EventType(q.Get("type"))}
	types, counts, err := p.DB.LogTypes(r.Context(), row.ID)
	if err != nil {
		return err
	}
	for i, t := range types {
		d.Types = append(d.Types, typeCount{t, counts[i]})
		d.All += counts[i]
	}
	if d.Type != "" && !slices.Contains(types, d.Type) {
		return badInput(fmt.Sprintf("Run %d has no event of the type %q.", row.ID, text.Clip(string(d.Type), titleShown)))
	}
	list, err := p.DB.Log(r.Context(), row.ID, int64(after), d.Type, eventsShown+1)
	if err != nil {
		return err
	}
	if after > 0 {
		d.First = pageAt(q, "after", 0)
	}
	if len(list) > eventsShown {
		list = list[:eventsShown]
		d.Next = pageAt(q, "after", int(list[eventsShown-1].Seq))
	}
	for _, e := range list {
		d.Events = append(d.Events, showEvent(e))
	}
	return p.render(w, r, v, "run_events.html", page{Title: fmt.Sprintf("Events of run %d", row.ID), Nav: "/runs", Live: fmt.Sprintf("run/%d", row.ID), Data: d})
}

// showEvent lays out what an event carries. What is no JSON is shown as it is.
func showEvent(e store.LogEntry) eventRow {
	row := eventRow{Seq: e.Seq, Time: e.Time, Type: e.Type, Source: e.Source, Brief: text.Clip(string(e.Data[:min(len(e.Data), 4*titleShown)]), titleShown)}
	if row.Brief == "{}" {
		row.Brief = ""
	}
	var b bytes.Buffer
	if json.Indent(&b, e.Data, "", "  ") != nil {
		b.Reset()
		b.Write(e.Data)
	}
	row.Data = string(bytes.ToValidUTF8(b.Bytes()[:min(b.Len(), dataShown)], []byte("\uFFFD")))
	row.Cut = max(0, b.Len()-dataShown)
	return row
}

// natural reads a number of an address; without one it is def.
func natural(q url.Values, name string, def int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badInput(name + "= takes a number.")
	}
	return n, nil
}

// pageAt is the address of the page of a list that begins at another place.
func pageAt(q url.Values, name string, at int) string {
	next := url.Values{}
	for k := range q {
		if v := q.Get(k); v != "" && k != name {
			next.Set(k, v)
		}
	}
	if at > 0 {
		next.Set(name, strconv.Itoa(at))
	}
	return "?" + next.Encode()
}
