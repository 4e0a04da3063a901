package pipeline

import "strings"

// moveRepository takes in what the repository is called now, and which installation may act
// there. Addresses on GitHub follow it.
func (r *Run) moveRepository(to *Repo) {
	if to == nil || to.ID != r.Repo.ID {
		return
	}
	old := "/" + r.Repo.FullName() + "/"
	r.Repo.Owner, r.Repo.Name, r.Repo.CloneURL, r.Repo.Installation = to.Owner, to.Name, to.CloneURL, to.Installation
	move := func(address string) string { return strings.Replace(address, old, "/"+r.Repo.FullName()+"/", 1) }
	r.Task.URL = move(r.Task.URL)
	if p := r.Published.Pull; p != nil {
		moved := *p
		moved.URL = move(p.URL)
		r.Published.Pull = &moved
	}
	for key, a := range r.Published.Artefacts {
		a.URL = move(a.URL)
		r.Published.Artefacts[key] = a
	}
}
