// Package edit reads changes of files out of what a model wrote as it pleased: whole files
// or parts of them in fenced blocks, blocks of SEARCH and REPLACE, and patches.
package edit

import (
	"path"
	"slices"
	"strings"
)

// Block is a piece of code in an answer.
type Block struct {
	Path string // of its file, as far as the answer says; "" where it does not
	Lang string // the language that the block is marked with, in lower case
	Old  string // what Text takes the place of; "": Text is a file, or definitions of it
	Text string
	Open bool // the answer ended in the middle of it
}

// Read finds the blocks of an answer. Known are the files that it may be about.
func Read(answer string, known []string) (out []Block) {
	var prose []string
	lines := strings.Split(strings.ReplaceAll(answer, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		fence, info := fenceOf(lines[i])
		if fence == "" {
			if n, b := searchAt(lines[i:]); n > 0 {
				b.Path = header(prose, known)
				out = append(out, b)
				i += n - 1
				continue
			}
			if strings.TrimSpace(lines[i]) != "" {
				prose = append(prose, lines[i])
			}
			continue
		}
		from := i + 1
		for i = from; i < len(lines) && !closes(lines[i], fence); i++ {
		}
		b := Block{Text: joined(lines[from:i]), Open: i == len(lines)}
		b.Lang, b.Path = ofInfo(info, known)
		if b.Path == "" {
			b.Path, b.Text = ofFirstLine(b.Text, known)
		}
		if b.Path == "" {
			b.Path = header(prose, known)
		}
		out = append(out, b.parts(known)...)
		prose = nil
	}
	return out
}

func joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// fenceOf is the fence that a line opens a block with, and what stands behind it.
func fenceOf(line string) (fence, info string) {
	line = strings.TrimSpace(line)
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(line, c); len(line)-len(rest) >= 3 && !strings.Contains(rest, "`") {
			return line[:len(line)-len(rest)], strings.TrimSpace(rest)
		}
	}
	return "", ""
}

func closes(line, fence string) bool {
	f, info := fenceOf(line)
	return strings.HasPrefix(f, fence) && info == ""
}

// ofInfo reads what stands behind a fence: "python", "python calc.py", "python:calc.py",
// "calc.py", "go title=\"calc.go\"".
func ofInfo(info string, known []string) (lang, file string) {
	words := strings.FieldsFunc(info, func(r rune) bool { return strings.ContainsRune(" \t:=\"'{}(),", r) })
	for i, w := range words {
		if p := pathOf(w, known); p != "" {
			return lang, p
		}
		if i == 0 {
			lang = strings.ToLower(w)
		}
	}
	return lang, ""
}

// ofFirstLine takes away a comment on the first line that names a file, and nothing else.
func ofFirstLine(text string, known []string) (file, rest string) {
	first, rest, _ := strings.Cut(text, "\n")
	said := strings.TrimSpace(first)
	for _, mark := range []string{"#", "//", "--", "/*", "<!--", ";"} {
		inner, ok := strings.CutPrefix(said, mark)
		if !ok {
			continue
		}
		inner = strings.TrimSuffix(strings.TrimSuffix(inner, "*/"), "-->")
		words := strings.FieldsFunc(inner, func(r rune) bool { return strings.ContainsRune(" \t:`*", r) })
		if n := len(words); n == 1 || n == 2 && slices.Contains([]string{"file", "path", "filename"}, strings.ToLower(words[0])) {
			if p := pathOf(words[n-1], known); p != "" {
				return p, rest
			}
		}
	}
	return "", text
}

// header is the one file that the line before a block names.
func header(prose, known []string) string {
	if len(prose) == 0 {
		return ""
	}
	line := prose[len(prose)-1]
	words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t`*:#\"'()[],", r) })
	found := ""
	for _, w := range words {
		p := pathOf(strings.TrimRight(w, ".!?"), known)
		if p == "" || p == found {
			continue
		}
		if found != "" {
			return ""
		}
		found = p
	}
	if found != "" && !slices.Contains(known, found) && len(words) > 3 {
		return "" // a sentence that speaks of some other file
	}
	return found
}

// pathOf is the file that a word names: a known one, by its end, or what looks like a file.
func pathOf(word string, known []string) string {
	word = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(word, "./"), "a/"), "b/")
	if word == "" || strings.HasPrefix(word, "/") || strings.Contains(word, "..") {
		return ""
	}
	found := ""
	for _, k := range known {
		switch {
		case k == word:
			return k
		case strings.HasSuffix(k, "/"+word), strings.HasSuffix(word, "/"+k):
			if found != "" {
				return ""
			}
			found = k
		}
	}
	ext := path.Ext(word)
	if found == "" && len(ext) > 1 && len(ext) <= 6 && ext != word && !strings.ContainsAny(word, "<>()|;$&") && isLetter(ext[1]) && !strings.HasSuffix(word, ".") {
		return path.Clean(word)
	}
	return found
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// parts are the changes that a block's text consists of: it may hold blocks of SEARCH and
// REPLACE, or be a patch.
func (b Block) parts(known []string) (out []Block) {
	lines := strings.Split(b.Text, "\n")
	for i := range lines {
		if n, part := searchAt(lines[i:]); n > 0 {
			part.Path, part.Lang = b.Path, b.Lang
			out = append(out, part)
		}
	}
	if len(out) > 0 {
		return out
	}
	if hunks := b.hunks(known); len(hunks) > 0 {
		return hunks
	}
	return []Block{b}
}

// searchAt reads the block of SEARCH and REPLACE that begins at the first line; n is how many
// lines it has, 0 where there is none.
func searchAt(lines []string) (n int, b Block) {
	is := func(i int, mark string) bool { return strings.HasPrefix(strings.TrimSpace(lines[i]), mark) }
	if !is(0, "<<<<<<<") {
		return 0, b
	}
	middle := 0
	for i := 1; i < len(lines); i++ {
		switch {
		case is(i, "======="):
			middle = i
		case is(i, ">>>>>>>") && middle > 0:
			return i + 1, Block{Old: joined(lines[1:middle]), Text: joined(lines[middle+1 : i])}
		}
	}
	return 0, b
}

// hunks reads a patch: each hunk with the lines that it leaves as they are.
func (b Block) hunks(known []string) (out []Block) {
	var was, is strings.Builder
	file, in := b.Path, false
	end := func() {
		if in && was.String() != is.String() && was.Len() > 0 {
			out = append(out, Block{Path: file, Lang: b.Lang, Old: was.String(), Text: is.String()})
		}
		was.Reset()
		is.Reset()
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(b.Text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "+++ "):
			name, _, _ := strings.Cut(strings.TrimSpace(line[4:]), "\t") // a time may follow
			if p := pathOf(name, known); p != "" {
				file = p
			}
		case strings.HasPrefix(line, "--- ") && !in, strings.HasPrefix(line, "diff "):
			end()
			in = false
		case strings.HasPrefix(line, "@@"):
			end()
			in = true
		case !in:
		case strings.HasPrefix(line, "-"):
			was.WriteString(line[1:] + "\n")
		case strings.HasPrefix(line, "+"):
			is.WriteString(line[1:] + "\n")
		case !strings.HasPrefix(line, `\`):
			line = strings.TrimPrefix(line, " ")
			was.WriteString(line + "\n")
			is.WriteString(line + "\n")
		}
	}
	end()
	return out
}
