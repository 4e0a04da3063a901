package githubtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// labelOps are the operations on labels.
var labelOps = map[string]handler{
	"issues/list-labels-for-repo": func(c *call) answer {
		return listing(c, c.repo.labels, func(l *label) any { return c.s.shapeLabel(c.repo, l) })
	},
	"issues/create-label":         createLabel,
	"issues/get-label":            withLabel(func(c *call, l *label) answer { return ok(c.s.shapeLabel(c.repo, l)) }),
	"issues/update-label":         withLabel(updateLabel),
	"issues/delete-label":         withLabel(deleteLabel),
	"issues/list-labels-on-issue": withIssue(func(c *call, i *issue) answer { return labelsOf(c, i) }),
	"issues/add-labels":           withIssue(addLabels),
	"issues/set-labels":           withIssue(setLabels),
	"issues/remove-label":         withIssue(removeLabel),
}

func withLabel(next func(*call, *label) answer) handler {
	return func(c *call) answer {
		if l := c.repo.findLabel(c.vars["name"]); l != nil {
			return next(c, l)
		}
		return notFound()
	}
}

func labelsOf(c *call, i *issue) answer {
	return listing(c, i.labels, func(l *label) any { return c.s.shapeLabel(c.repo, l) })
}

func createLabel(c *call) answer {
	var req struct{ Name, Color, Description string }
	if a := c.decode(&req); a != nil {
		return *a
	}
	switch {
	case strings.TrimSpace(req.Name) == "":
		return invalidField("Label", "name", "missing_field", "")
	case c.repo.findLabel(req.Name) != nil:
		return invalidField("Label", "name", "already_exists", "")
	case len(req.Description) > 100:
		return invalidField("Label", "description", "custom", "description is too long (maximum is 100 characters)")
	case req.Color != "" && !colour(req.Color):
		return invalidField("Label", "color", "invalid", "")
	}
	l := c.s.ensureLabel(c.repo, req.Name)
	l.description = req.Description
	if req.Color != "" {
		l.color = strings.ToLower(req.Color)
	}
	return created(c.s.shapeLabel(c.repo, l))
}

func colour(text string) bool {
	return len(text) == 6 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}

func updateLabel(c *call, l *label) answer {
	var req struct {
		NewName     *string `json:"new_name"`
		Name        *string `json:"name"`
		Color       *string `json:"color"`
		Description *string `json:"description"`
	}
	if a := c.decode(&req); a != nil {
		return *a
	}
	if req.NewName == nil {
		req.NewName = req.Name
	}
	if req.Color != nil && !colour(*req.Color) {
		return invalidField("Label", "color", "invalid", "")
	}
	if req.NewName != nil {
		if other := c.repo.findLabel(*req.NewName); other != nil && other != l {
			return invalidField("Label", "name", "already_exists", "")
		}
		l.name = *req.NewName
	}
	if req.Color != nil {
		l.color = strings.ToLower(*req.Color)
	}
	if req.Description != nil {
		l.description = *req.Description
	}
	return ok(c.s.shapeLabel(c.repo, l))
}

func deleteLabel(c *call, l *label) answer {
	for _, i := range c.repo.issueList() {
		if i.hasLabel(l) {
			c.s.removeLabel(i, c.actor, l.name)
		}
	}
	c.repo.labels = slices.DeleteFunc(slices.Clone(c.repo.labels), func(x *label) bool { return x == l })
	return noContent()
}

// labelNames reads {"labels": […]}, or the bare list that go-github sends.
func (c *call) labelNames() ([]string, *answer) {
	var bare []any
	if json.Unmarshal(c.body, &bare) == nil {
		return names(bare), nil
	}
	var req struct{ Labels []any }
	if a := c.decode(&req); a != nil {
		return nil, a
	}
	return names(req.Labels), nil
}

func addLabels(c *call, i *issue) answer {
	list, a := c.labelNames()
	if a != nil {
		return *a
	}
	if slices.ContainsFunc(list, func(n string) bool { return strings.TrimSpace(n) == "" || len(n) > 50 }) {
		return invalidField("Label", "name", "invalid", "")
	}
	for _, name := range list {
		c.s.addLabel(i, c.actor, name)
	}
	return labelsOf(c, i)
}

func (c *call) setLabels(i *issue, list []string) {
	for _, l := range slices.Clone(i.labels) {
		if !slices.ContainsFunc(list, func(n string) bool { return strings.EqualFold(n, l.name) }) {
			c.s.removeLabel(i, c.actor, l.name)
		}
	}
	for _, name := range list {
		c.s.addLabel(i, c.actor, name)
	}
}

func setLabels(c *call, i *issue) answer {
	list, a := c.labelNames()
	if a != nil {
		return *a
	}
	c.setLabels(i, list)
	return labelsOf(c, i)
}

func removeLabel(c *call, i *issue) answer {
	if !c.s.removeLabel(i, c.actor, c.vars["name"]) {
		return fail(http.StatusNotFound, "Label does not exist")
	}
	return labelsOf(c, i)
}
