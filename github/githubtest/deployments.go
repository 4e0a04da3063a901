package githubtest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
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
	payload     any
	creator     *account
	created     time.Time
	updated     time.Time
	statuses    []obj
}

// deploymentOps are the operations on deployments.
var deploymentOps = map[string]handler{
	"repos/list-deployments": func(c *call) answer {
		q := c.r.URL.Query()
		list := slices.DeleteFunc(slices.Clone(c.repo.deployments), func(d *deployment) bool {
			return q.Get("environment") != "" && d.environment != q.Get("environment") || q.Get("sha") != "" && d.sha != q.Get("sha") ||
				q.Get("ref") != "" && d.ref != q.Get("ref") || q.Get("task") != "" && d.task != q.Get("task")
		})
		slices.Reverse(list)
		return listing(c, list, func(d *deployment) any { return c.s.shapeDeployment(d) })
	},
	"repos/create-deployment": createDeployment,
	"repos/list-deployment-statuses": func(c *call) answer {
		for _, d := range c.repo.deployments {
			if d.id == c.number("deployment_id") {
				list := slices.Clone(d.statuses)
				slices.Reverse(list)
				return listing(c, list, func(o obj) any { return o })
			}
		}
		return notFound()
	},
}

func createDeployment(c *call) answer {
	var req struct {
		Ref         string
		Task        string
		AutoMerge   *bool     `json:"auto_merge"`
		Contexts    *[]string `json:"required_contexts"`
		Payload     any
		Environment string
		Description string
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	sha, ref := req.Ref, req.Ref
	if branch := c.repo.refs["refs/heads/"+ref]; branch != "" {
		sha = branch
	}
	sha, found := c.s.resolve(c.repo, sha)
	switch {
	case req.Ref == "":
		return invalidField("Deployment", "ref", "missing_field", "")
	case !found:
		return fail(http.StatusUnprocessableEntity, "No ref found for: "+ref)
	case req.AutoMerge == nil || *req.AutoMerge: // GitHub would merge the default branch into it
		return fail(http.StatusConflict, "this GitHub merges nothing for a deployment: send auto_merge: false")
	case req.Contexts == nil || len(*req.Contexts) > 0: // GitHub would look at the commit's checks
		return fail(http.StatusConflict, "this GitHub looks at no checks for a deployment: send required_contexts: []")
	}
	if req.Payload == nil {
		req.Payload = obj{}
	}
	d := c.s.newDeployment(c.repo, c.actor, deployment{sha: sha, ref: ref, task: cmp.Or(req.Task, "deploy"),
		environment: cmp.Or(req.Environment, "production"),
		description: req.Description, payload: req.Payload})
	return created(c.s.shapeDeployment(d))
}

// newDeployment makes a deployment, and tells of it.
func (s *Server) newDeployment(r *repository, by *account, d deployment) *deployment {
	d.id, d.repo, d.creator, d.created, d.updated = s.id(), r, by, s.now(), s.now()
	d.node = s.register("DE", d.id, &d)
	r.deployments = append(r.deployments, &d)
	s.emit(r, "deployment", "created", by, obj{"deployment": s.shapeDeployment(&d), "workflow": nil, "workflow_run": nil})
	return &d
}

// Deployed is a deployment as it stands there.
type Deployed struct {
	ID                                       int64
	SHA, Environment, Task, Creator, Payload string
}

// Deployments lists those of a repository, oldest first.
func (s *Server) Deployments(repo string) (out []Deployed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.repos[strings.ToLower(repo)]; r != nil {
		for _, d := range r.deployments {
			out = append(out, Deployed{d.id, d.sha, d.environment, d.task, d.creator.login, fmt.Sprint(d.payload)})
		}
	}
	return out
}

// Deploy makes a deployment of a branch or a commit, as a workflow or a program of the
// repository does, and returns its number.
func (p *Person) Deploy(repo, environment, ref string) (id int64, err error) {
	err = p.act("deploy "+ref, repo, func(a *account, r *repository) error {
		sha := ref
		if branch := r.refs["refs/heads/"+ref]; branch != "" {
			sha = branch
		}
		sha, found := p.s.resolve(r, sha)
		switch {
		case !r.can(a, "write"):
			return fmt.Errorf("this needs the role write, %s has %s", a.login, r.role(a))
		case strings.TrimSpace(environment) == "":
			return errors.New("there is no environment")
		case !found:
			return fmt.Errorf("there is no commit %s", ref)
		}
		id = p.s.newDeployment(r, a, deployment{sha: sha, ref: ref, task: "deploy", environment: environment, payload: obj{}}).id
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
		status := obj{
			"id": sid, "node_id": p.s.register("DES", sid, d), "state": state, "creator": p.s.shapeUser(a), "description": description, "environment": d.environment,
			"target_url": "", "created_at": stamp(p.s.now()), "updated_at": stamp(p.s.now()), "url": fmt.Sprintf("%s/statuses/%d", api, sid), "deployment_url": api,
			"repository_url": p.s.api(r),
		}
		d.statuses = append(d.statuses, status)
		p.s.emit(r, "deployment_status", "created", a, obj{"deployment": p.s.shapeDeployment(d), "workflow": nil, "workflow_run": nil, "deployment_status": status})
		return nil
	})
}

func (s *Server) shapeDeployment(d *deployment) obj {
	api := fmt.Sprintf("%s/deployments/%d", s.api(d.repo), d.id)
	return obj{
		"url": api, "id": d.id, "node_id": d.node, "sha": d.sha, "ref": d.ref, "task": d.task, "payload": d.payload,
		"original_environment": d.environment, "environment": d.environment,
		"description": orNil(d.description), "creator": s.shapeUser(d.creator), "created_at": stamp(d.created), "updated_at": stamp(d.updated),
		"statuses_url":   api + "/statuses",
		"repository_url": s.api(d.repo),
	}
}
