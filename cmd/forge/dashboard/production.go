package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"forge/cmd/forge/incidents"
	"forge/cmd/forge/shipping"
	"forge/learn/production"
	"forge/pipeline/command"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// What the page of production lists at most.
const (
	deploymentsShown = 30
	incidentsShown   = 50
	measuredDays     = 30
	measuredMost     = 2000
)

// productionData is what runs where, and what goes wrong.
type productionData struct {
	Running     []production.Deployment
	Deployments []production.Deployment
	Incidents   []*production.Incident
	Shipping    []*shipping.Ship
	All, Forge  production.Measures
}

// Both are the measures side by side.
func (d productionData) Both() []production.Measures { return []production.Measures{d.All, d.Forge} }

// Health says what an environment's incidents say of it.
func (d productionData) Health(repo, environment string) string {
	worst := "no incident"
	for _, i := range d.Incidents {
		if i.Repo != repo || i.Environment != environment || !i.State.Active() {
			continue
		}
		if i.Severity == production.SeverityCritical {
			return "critical"
		}
		worst = "warning"
	}
	return worst
}

// production shows what runs where, and what goes wrong there.
func (p *Pages) production(w http.ResponseWriter, r *http.Request, v Viewer) error {
	list, all := v.Repos()
	if all {
		list = nil
	} else {
		list = append([]string{}, list...) // never nil
	}
	now := p.Now()
	var d productionData
	f := store.DeploymentFilter{Repos: list, Since: now.AddDate(0, -6, 0), Limit: measuredMost}
	var err error
	if d.Deployments, err = incidents.Deployments(r.Context(), p.DB, f); err != nil {
		return err
	}
	if d.Incidents, err = incidents.Read(r.Context(), p.DB, store.IncidentFilter{Repos: list, Limit: measuredMost}); err != nil {
		return err
	}
	if d.Shipping, err = shipping.OnItsWay(r.Context(), p.DB, list); err != nil {
		return err
	}
	d.Running = production.Running(d.Deployments)
	d.All, d.Forge = production.Measure(d.Deployments, d.Incidents, now, measuredDays)
	d.Deployments = d.Deployments[:min(len(d.Deployments), deploymentsShown)]
	slices.SortStableFunc(d.Incidents, func(a, b *production.Incident) int { // what goes on is never cut off by what is over
		return cmp.Compare(over(a), over(b))
	})
	d.Incidents = d.Incidents[:min(len(d.Incidents), incidentsShown)]
	return p.render(w, r, v, "production.html", page{Title: "Production", Nav: "/production", Live: "production", Data: d})
}

func over(i *production.Incident) int {
	if i.State.Active() {
		return 0
	}
	return 1
}

// incidentData is one incident.
type incidentData struct {
	*production.Incident
	Log      []incidentRow
	Commands []string // that answer it
}

// Frames are those of the last stack that was seen.
func (d incidentData) Frames() []production.Frame {
	if e := d.Last.Error; e != nil && len(e.Stack) > 0 {
		return e.Stack
	}
	return d.OwnFrames()
}

// Act says how far an answer is.
func (incidentData) Act(a production.Act) string { return incidents.ActLine(a) }

type incidentRow struct {
	At   time.Time
	Type production.EventType
	What string
}

// Sure says how sure a suspicion is, in per cent.
func (incidentData) Sure(score float64) string { return fmt.Sprintf("%.0f %%", 100*score) }

func (p *Pages) incident(w http.ResponseWriter, r *http.Request, v Viewer) error {
	id, err := strconv.ParseInt(mux.Vars(r)["id"], 10, 64)
	if err != nil {
		return store.ErrNotFound
	}
	row, err := p.DB.Incident(r.Context(), id)
	if err != nil {
		return err
	}
	if !Sees(v, row.Repo) {
		return store.ErrNotFound
	}
	one, err := incidents.Folded(row)
	if err != nil {
		return err
	}
	log, err := incidents.Log(r.Context(), p.DB, id)
	if err != nil {
		return err
	}
	d := incidentData{Incident: one}
	for _, words := range []string{"rollback", "revert", "issue", "run", "mute 2h", "dismiss WHY"} {
		d.Commands = append(d.Commands, command.Write(p.Slug, fmt.Sprintf("incident %d %s", id, words)))
	}
	for n := len(log) - 1; n >= 0 && len(d.Log) < 200; n-- {
		d.Log = append(d.Log, incidentRow{log[n].At, log[n].Type, text.Clip(incidents.EventLine(log[n]), 200)})
	}
	return p.render(w, r, v, "incident.html", page{Title: fmt.Sprintf("Incident %d", id), Nav: "/production", Live: "production", Data: d})
}
