package delivery

import (
	"cmp"
	"fmt"
	"strings"

	"forge/pipeline"
)

// installation reads what became of the App's installation, and which repositories do not
// belong to it any more.
func (r reader) installation(event string) {
	d := r.d
	r.n.Kind = pipeline.NoticeInstallation
	r.n.Why = fmt.Sprintf("%s of %s: %s", strings.ReplaceAll(event, "_", " "), d.Installation.Account.Login, d.Action)
	left := d.Removed
	if event == "installation" && d.Action == "deleted" {
		left = d.Repositories
	}
	for _, repo := range left {
		r.n.Left = append(r.n.Left, repo.ID)
	}
}

// repository reads that the repository itself is called otherwise, belongs to somebody
// else, or is gone.
func (r reader) repository() {
	d := r.d
	owner, name := d.Repository.Owner.Login, d.Repository.Name
	switch d.Action {
	case "renamed":
		name = d.Changes.Repository.Name.From
	case "transferred":
		owner = cmp.Or(d.Changes.Owner.From.User.Login, d.Changes.Owner.From.Organization.Login)
	case "deleted":
		r.n.Left = append(r.n.Left, d.Repository.ID)
		owner, name = "", ""
	default:
		r.none("repository %s: nothing to do", d.Action)
		return
	}
	if owner != "" && name != "" {
		r.n.Former = owner + "/" + name
	}
	r.is(pipeline.NoticeRepository, "repository %s by %s", d.Action, d.Sender.Login)
}
