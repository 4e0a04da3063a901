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

// document is a learning as the index sees it. A term may be there many times:
// its counts are added up when the terms have their numbers, which are cheaper to
// compare.
type document struct {
	terms  []string
	counts []uint8 // of the terms, by their place
	length int     // in words, the doubled ones twice
}

func (d *document) addWords(s string, n uint8) {
	eachTerm(s, func(term, _ string) {
		d.terms, d.counts = append(d.terms, term), append(d.counts, n)
		d.length += int(n)
	})
}

// mark adds what is looked up as a whole; it makes the learning no longer.
func (d *document) mark(kind, value string) {
	d.terms, d.counts = append(d.terms, kind+value), append(d.counts, 1)
}

// documentOf takes a learning apart. Its first line, which says what it is about,
// counts twice, as tags do.
func documentOf(l pipeline.Learning) *document {
	room := 16 + len(l.Content)/5
	d := &document{terms: make([]string, 0, room), counts: make([]uint8, 0, room)}
	first, rest, _ := strings.Cut(l.Content, "\n")
	d.addWords(first, 2)
	d.addWords(rest, 1)
	d.addWords(l.Context, 1)
	d.addWords(string(l.Category), 1)
	for _, p := range l.Paths {
		d.addWords(p, 1)
		d.place(p, true)
	}
	for _, t := range l.Tags {
		d.addWords(t, 2)
		d.mark(markTag, strings.ToLower(t))
	}
	if l.Category != "" {
		d.mark(markCategory, strings.ToLower(string(l.Category)))
	}
	for _, p := range placesIn(l.Context) {
		d.place(p, false)
	}
	d.length = max(d.length, 1)
	return d
}

// place notes a file or folder that the learning is about. A name does not say
// which it is: one with an extension is taken for a file, and for a folder too
// where it is not known to be a file; one without, for a folder, and for a file too
// where it is known to be one, as people write both in a list of paths.
func (d *document) place(p string, known bool) {
	clean := path.Clean(p)
	isFolder := strings.HasSuffix(p, "/") || clean == "."
	extension := strings.Contains(strings.TrimLeft(path.Base(clean), "."), ".")
	if !isFolder && (known || extension) {
		d.mark(markFile, clean)
		d.mark(markFolder, path.Dir(clean))
	}
	if isFolder || !known || !extension {
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
