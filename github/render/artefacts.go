package render

import (
	"fmt"
	"strings"

	"forge/pipeline/role"
)

// itemsShown is how many items of a role's artefact stand in a pull request.
const itemsShown = 15

// artefacts are what roles wrote before the plan, folded.
func (v Renderer) artefacts() string {
	var b strings.Builder
	for _, who := range role.All() {
		a := role.Of(v.Run.Artefacts, who)
		if a == nil {
			continue
		}
		fmt.Fprintf(&b, "By the %s: %s\n\n", who.Person(), v.line(a.Body, 600))
		for _, i := range a.Items[:min(len(a.Items), itemsShown)] {
			kind := ""
			if i.Kind != "" {
				kind = " (" + v.line(i.Kind, 20) + ")"
			}
			fmt.Fprintf(&b, "- **%s**%s: %s\n", i.ID, kind, v.line(i.Text, 300))
		}
		if more := len(a.Items) - itemsShown; more > 0 {
			fmt.Fprintf(&b, "- and %d more\n", more)
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return Folded("Written before the plan", strings.TrimSpace(b.String()))
}
