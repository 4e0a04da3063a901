package text

import "strings"

// FrontMatter splits a text into the YAML between two lines of three dashes at its
// very beginning, and the rest. Without both lines all of it is the rest.
func FrontMatter(text string) (yaml, rest string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	inner, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text
	}
	yaml, rest, ok = strings.Cut("\n"+inner, "\n---")
	if end, _, _ := strings.Cut(rest, "\n"); !ok || strings.TrimSpace(end) != "" {
		return "", text
	}
	return strings.TrimPrefix(yaml, "\n"), strings.TrimLeft(strings.TrimPrefix(rest, " "), "\n")
}
