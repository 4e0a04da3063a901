package recall

import (
	"path"
	"strings"

	"forge/pipeline"
)

// What is looked up as a whole shares the dictionary with the words; the mark in
// front keeps them apart, since no word begins with one.
const (
	markFile     = "file:"
	markFolder   = "folder:"
	markCategory = "category:"
	markTag      = "tag:"
)

// maxCount is the highest count of a word in a learning that is told apart.
const maxCount = 255

// document is a learning as the index sees it.
type document struct {
	terms  []string // in the order of their first appearance
	counts map[string]int
	length int // in words, the doubled ones twice
}

func (d *document) add(term string, n int) {
	if d.counts[term] == 0 {
		d.terms = append(d.terms, term)
	}
	d.counts[term] = min(d.counts[term]+n, maxCount)
}

func (d *document) addWords(s string, n int) {
	eachTerm(s, func(term, _ string) {
		d.add(term, n)
		d.length += n
	})
}

// mark adds what is looked up as a whole; it makes the learning no longer.
func (d *document) mark(kind, value string) {
	if term := kind + value; d.counts[term] == 0 {
		d.add(term, 1)
	}
}

// documentOf takes a learning apart. Its first line, which says what it is about,
// counts twice, as tags do.
func documentOf(l pipeline.Learning) *document {
	d := &document{counts: make(map[string]int, 16+len(l.Content)/6)}
	first, rest, _ := strings.Cut(l.Content, "\n")
	d.addWords(first, 2)
	d.addWords(rest, 1)
	d.addWords(l.Context, 1)
	d.addWords(l.Category, 1)
	for _, p := range l.Paths {
		d.addWords(p, 1)
		d.place(p, true)
	}
	for _, t := range l.Tags {
		d.addWords(t, 2)
		d.mark(markTag, strings.ToLower(t))
	}
	if l.Category != "" {
		d.mark(markCategory, strings.ToLower(l.Category))
	}
	for _, p := range placesIn(l.Context) {
		d.place(p, false)
	}
	d.length = max(d.length, 1)
	return d
}

// place notes a file or folder that the learning is about. A name with an
// extension may be either; known is for paths that are said to be files.
func (d *document) place(p string, known bool) {
	clean := path.Clean(p)
	isFolder := strings.HasSuffix(p, "/") || clean == "."
	isFile := !isFolder && (known || strings.Contains(strings.TrimLeft(path.Base(clean), "."), "."))
	if isFile {
		d.mark(markFile, clean)
		d.mark(markFolder, path.Dir(clean))
	}
	if isFolder || !isFile || !known {
		d.mark(markFolder, clean)
	}
}

// placesIn finds files and folders in a text that says when a learning matters:
// words with a slash in it, and items of a list that are one word, so that
// "cmd, server/events" is two folders and "when the server starts" is none.
func placesIn(context string) []string {
	var out []string
	for item := range strings.FieldsFuncSeq(context, func(r rune) bool { return r == ',' || r == ';' || r == '\n' }) {
		words := strings.Fields(item)
		for _, w := range words {
			w = strings.Trim(w, "\"'`()[]<>:!?")
			if w != "." {
				w = strings.TrimRight(w, ".")
			}
			if w != "" && w != "/" && !strings.Contains(w, "://") && (strings.Contains(w, "/") || len(words) == 1) {
				out = append(out, w)
			}
		}
	}
	return out
}
