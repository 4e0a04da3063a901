package githubtest

import (
	"strings"
)

// labelOps are the operations on labels.
var labelOps = map[string]handler{
	"issues/create-label": createLabel,
	"issues/get-label":    withLabel(func(c *call, l *label) answer { return ok(c.s.shapeLabel(c.repo, l)) }),
}

func withLabel(next func(*call, *label) answer) handler {
	return func(c *call) answer {
		if l := c.repo.findLabel(c.vars["name"]); l != nil {
			return next(c, l)
		}
		return notFound()
	}
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
