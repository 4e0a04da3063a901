package dashboard

import (
	"fmt"
	"net/http"
	"time"

	"forge/pipeline/store"
)

// serversData is the list of all servers on the database.
type serversData struct {
	Rows []store.Peer
	Now  time.Time
	Runs int // that somebody works on
}

// Free is what a server's disk has left.
func (serversData) Free(p store.Peer) string {
	return fmt.Sprintf("%.1f GB", float64(p.FreeDisk)/(1<<30))
}

// servers shows all servers with what they work on. It names machines: who does not see
// everything does not see it.
func (p *Pages) servers(w http.ResponseWriter, r *http.Request, v Viewer) error {
	if _, all := v.Repos(); !all {
		return store.ErrNotFound
	}
	d := serversData{Now: p.Now()}
	var err error
	if d.Rows, err = p.DB.Peers(r.Context(), d.Now); err != nil {
		return err
	}
	for _, row := range d.Rows {
		d.Runs += len(row.Runs)
	}
	return p.render(w, r, v, "servers.html", page{Title: "Servers", Nav: "/doctor", Data: d})
}
