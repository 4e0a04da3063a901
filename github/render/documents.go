package render

import (
	"strings"
	"unicode/utf8"
)

// Documents is the one comment that holds what a run leaves in writing, newest first.
// What does not fit is named.
func (v Renderer) Documents(docs []Document) string {
	var parts, left []string
	room := MaxText - 3000
	for i := len(docs) - 1; i >= 0; i-- {
		d := docs[i]
		text := Folded(v.line(d.Title, 100)+" · "+code(d.Path), v.block(d.Body, 25_000))
		if n := utf8.RuneCountInString(text); n <= room {
			room -= n
			parts = append(parts, text)
			continue
		}
		left = append(left, code(d.Path))
	}
	if len(left) > 0 {
		parts = append(parts, "Not shown here, for want of room: "+strings.Join(left[:min(len(left), 40)], ", ")+". `documents: branch` keeps all of them.")
	}
	return v.body("documents", "## Documents", strings.Join(parts, "\n\n"))
}

// Document is one of them as a file.
func (v Renderer) DocumentFile(d Document) string {
	return "# " + v.line(d.Title, 100) + "\n\n" + v.block(d.Body, 400_000) + "\n"
}

// Tree is the address of a folder as it stands at a commit.
func (v Renderer) Tree(sha, folder string) string { return v.repoURL("tree/" + sha + "/" + folder) }

// documentsLink leads from the pull request to the documents.
func (v Renderer) documentsLink() string {
	var out []string
	if a := v.Run.Published.Artefacts["documents"]; a.URL != "" {
		out = append(out, "[Documents]("+a.URL+"): the specification, how each iteration was validated, and what came of it.")
	}
	if v.Run.Published.Late != "" {
		out = append(out, "What the documents say by now could not be written; Forge tries again, and the server's log says why.")
	}
	return strings.Join(out, " ")
}
