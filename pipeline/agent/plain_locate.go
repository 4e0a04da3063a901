package agent

import (
	"cmp"
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"forge/pipeline"
	"forge/pipeline/agent/edit"
	"forge/pipeline/testname"
	"forge/pipeline/text"
)

// What a request in the plain form holds at most, in bytes.
const (
	maxShownFiles = 24 << 10
	maxWhole      = 12 << 10 // of one file; of a larger one the definitions are shown that the task names
	maxShownTest  = 6 << 10
	mostFiles     = 4
	mostShown     = 2
	mostSearches  = 12
)

// located is what a task is about, found without a model.
type located struct {
	files []string        // to be changed, the likeliest first
	shown []string        // tests, to be read
	tests map[string]bool // of shown
	names []string        // that the task and its failing tests speak of
}

// show is a file as the request holds it.
func (l located) show(content string) string {
	if len(content) <= maxWhole {
		return content
	}
	return edit.Excerpt(content, l.names)
}

// locate finds the files that a task is about: those that it names, that declare or use the
// names in it, that its failing tests are of, and those whose names have its words in them.
func (p *phase) locate(ctx context.Context) located {
	run := p.job.Run
	task := strings.Join(append([]string{run.Task.Title, run.Task.Body}, run.Notes...), "\n")
	score := map[string]int{}
	code := map[string]bool{}
	for _, f := range p.job.Tree {
		code[f] = !testname.IsData(f)
	}
	add := func(file string, n int) {
		if code[file] {
			score[file] += n
		}
	}
	words, named := text.KeyWords(task), fileWords(task)
	for _, f := range p.job.Tree {
		if strings.Contains(task, f) || len(path.Base(f)) > 4 && slices.Contains(named, path.Base(f)) {
			add(f, 100)
		}
		if n := text.Common(text.KeyWords(strings.TrimSuffix(f, path.Ext(f))), words); n > 0 {
			add(f, 3*n)
		}
	}
	names := identifiers(task)
	for _, name := range names[:min(len(names), mostSearches)] {
		p.hits(ctx, name, func(file, line string) {
			if add(file, 1); edit.Declared(line) == name {
				add(file, 15)
			}
		})
	}
	failures := p.aboutTask(ctx)
	fb := feedback{}
	if len(run.Iterations) > 1 {
		fb = openFeedback(run)
		failures = append(slices.Clip(fb.failures), failures...)
	}
	for _, f := range failures {
		if source, ok := p.source(ctx, f.File); ok {
			names = append(names, identifiers(testSource(source, f))...)
		}
		p.ofFailure(ctx, f, add)
	}
	for _, f := range fb.findings {
		add(f.File, 20)
	}
	for _, it := range run.Iterations {
		if it.Impl != nil {
			for _, f := range it.Impl.Files {
				add(f, 30)
			}
		}
	}
	if len(score) == 0 { // as many words as names: what little there is, is searched for
		for _, word := range rarest(task) {
			p.hits(ctx, word, func(file, _ string) { add(file, 1) })
		}
	}
	return p.chosenOf(ctx, score, names)
}

// hits searches for a word and shows where it stands.
func (p *phase) hits(ctx context.Context, word string, show func(file, line string)) {
	if p.job.Workspace == nil {
		return
	}
	found, err := p.job.Workspace.Search(ctx, `\b`+regexp.QuoteMeta(word)+`\b`, "", maxHits)
	if err != nil {
		return // what is not found is not there
	}
	for _, hit := range found {
		if m := hitAt.FindStringSubmatch(hit); m != nil {
			show(m[1], m[2])
		}
	}
}

// ofFailure counts the files that a failing test is of: its own, those that its output names,
// the one that it is called by, and those that it imports.
func (p *phase) ofFailure(ctx context.Context, f pipeline.Failure, add func(string, int)) {
	add(f.File, 40)
	source, _ := p.source(ctx, f.File)
	stem := strings.TrimSuffix(path.Base(f.File), path.Ext(f.File))
	stem = strings.TrimSuffix(strings.TrimPrefix(stem, "test_"), "_test")
	imported := importedBy(source)
	for _, t := range p.job.Tree {
		base := strings.TrimSuffix(path.Base(t), path.Ext(t))
		switch {
		case testname.IsFile(t) || path.Ext(t) != path.Ext(f.File):
			continue
		case strings.Contains(f.Error, path.Base(t)+":"), strings.Contains(f.Error, t):
			add(t, 10)
		}
		if base == stem {
			add(t, 12)
		}
		if path.Ext(t) == ".go" && path.Dir(t) == path.Dir(f.File) {
			add(t, 4)
		}
		if imported[base] {
			add(t, 10)
		}
	}
}

// importedBy are the words in a file's imports, one of which names a file that it uses.
func importedBy(source string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "import ") || strings.HasPrefix(line, "from ") || strings.Contains(line, "require(") {
			for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return !isName(r) }) {
				out[w] = true
			}
		}
	}
	return out
}

func isName(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// chosenOf takes the best files that there is room for, and tests beside them.
func (p *phase) chosenOf(ctx context.Context, score map[string]int, names []string) located {
	l := located{tests: map[string]bool{}, names: names}
	var all []string
	for f := range score {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
	best, size := 0, 0
	for _, f := range all {
		content, ok := p.source(ctx, f)
		switch {
		case !ok:
		case testname.IsFile(f):
			if len(l.shown) < mostShown && score[f] >= 15 {
				l.shown = append(l.shown, f)
				l.tests[f] = true
			}
		case len(l.files) == mostFiles, score[f]*3 < best, size+len(l.show(content)) > maxShownFiles:
		default:
			best = max(best, score[f])
			size += len(l.show(content))
			l.files = append(l.files, f)
		}
	}
	return l
}

// fileWords are the words of a text that may be names of files.
func fileWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("`'\"()[]{},;:/", r) })
}

// identifiers are the names in a text that look like code: in backticks, with a call's
// bracket, with an underscore, a dot or a capital inside.
func identifiers(s string) (out []string) {
	add := func(name string) {
		if len(name) > 1 && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	quoted := false
	for i, piece := range strings.Split(s, "`") {
		quoted = i%2 == 1 && len(piece) < 200
		for len(piece) > 0 {
			start := strings.IndexFunc(piece, isName)
			if start < 0 {
				break
			}
			piece = piece[start:]
			end := strings.IndexFunc(piece, func(r rune) bool { return !isName(r) })
			if end < 0 {
				end = len(piece)
			}
			word := piece[:end]
			piece = piece[end:]
			called := strings.HasPrefix(piece, "(")
			dotted := len(piece) > 1 && piece[0] == '.' && isName(rune(piece[1]))
			inner := strings.IndexFunc(strings.TrimLeftFunc(word, unicode.IsUpper), unicode.IsUpper) >= 0
			if letter := rune(word[0]); unicode.IsDigit(letter) {
				continue
			}
			if quoted || called || dotted && len(word) > 2 || strings.Contains(strings.Trim(word, "_"), "_") || inner {
				add(word)
			}
		}
	}
	return out
}

// rarest are the longest words of a text.
func rarest(s string) []string {
	words := text.Words(s)
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	words = slices.DeleteFunc(slices.Compact(words), func(w string) bool { return len(w) < 5 })
	return words[:min(len(words), mostSearches)]
}
