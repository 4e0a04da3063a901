package githubtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// deployment is a commit that somebody brings to an environment.
type deployment struct {
	id          int64
	node        string
	repo        *repository
	sha, ref    string
	task        string
	environment string
	description string
	creator     *account
	created     time.Time
	updated     time.Time
}

// Deploy makes a deployment of a branch or a commit, as a workflow or a program of the
// repository does, and returns its number.
func (p *Person) Deploy(repo, environment, ref string) (id int64, err error) {
	err = p.act("deploy "+ref, repo, func(a *account, r *repository) error {
		sha := ref
		if branch := r.refs["refs/heads/"+ref]; branch != "" {
			sha = branch
		}
		list, err := p.s.gitLog(r, "-1", sha)
		switch {
		case !r.can(a, "write"):
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		case strings.TrimSpace(environment) == "":
			return errors.New("there is no environment")
		case err != nil || len(list) != 1:
			return fmt.Errorf("there is no commit %s", ref)
		}
		d := &deployment{id: p.s.id(), repo: r, sha: list[0].SHA, ref: ref, task: "deploy", environment: environment, creator: a, created: p.s.now(), updated: p.s.now()}
		d.node = p.s.register("DE", d.id, d)
		r.deployments = append(r.deployments, d)
		id = d.id
		p.s.emit(r, "deployment", "created", a, obj{"deployment": p.s.shapeDeployment(d), "workflow": nil, "workflow_run": nil})
		return nil
	})
	return id, err
}

var deploymentStates = []string{"error", "failure", "inactive", "in_progress", "queued", "pending", "success"}

// DeploymentStatus says how a deployment goes.
func (p *Person) DeploymentStatus(repo string, id int64, state, description string) error {
	return p.act(fmt.Sprintf("set the status of deployment %d", id), repo, func(a *account, r *repository) error {
		n := slices.IndexFunc(r.deployments, func(d *deployment) bool { return d.id == id })
		switch {
		case !r.can(a, "write"):
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		case n < 0:
			return errors.New("there is no such deployment")
		case !slices.Contains(deploymentStates, state):
			return fmt.Errorf("there is no state %q", state)
		}
		d := r.deployments[n]
		d.updated = p.s.now()
		sid := p.s.id()
		api := fmt.Sprintf("%s/deployments/%d", p.s.api(r), d.id)
		p.s.emit(r, "deployment_status", "created", a, obj{
			"deployment": p.s.shapeDeployment(d), "workflow": nil, "workflow_run": nil,
			"deployment_status": obj{
				"id": sid, "node_id": p.s.register("DES", sid, d), "state": state, "creator": p.s.shapeUser(a), "description": description, "environment": d.environment,
				"target_url": "", "created_at": stamp(p.s.now()), "updated_at": stamp(p.s.now()), "url": fmt.Sprintf("%s/statuses/%d", api, sid), "deployment_url": api,
				"repository_url": p.s.api(r),
			},
		})
		return nil
	})
}

func (s *Server) shapeDeployment(d *deployment) obj {
	api := fmt.Sprintf("%s/deployments/%d", s.api(d.repo), d.id)
	return obj{
		"url": api, "id": d.id, "node_id": d.node, "sha": d.sha, "ref": d.ref, "task": d.task, "payload": obj{}, "original_environment": d.environment, "environment": d.environment,
		"description": orNil(d.description), "creator": s.shapeUser(d.creator), "created_at": stamp(d.created), "updated_at": stamp(d.updated), "statuses_url": api + "/statuses",
		"repository_url": s.api(d.repo),
	}
}
