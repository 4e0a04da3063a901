package repositories

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/scanner"
)

// flips replace a token that decides something.
var flips = map[string]string{
	"==": "!=", "!=": "==", "===": "!==", "!==": "===", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&",
	"and": "or", "or": "and", "true": "false", "false": "true", "True": "False", "False": "True",
}

// wrongs are the ways in which a commit's code is slightly wrong: one comparison or constant
// of the lines that it adds is another. Tests are as the commit has them.
func wrongs(c commit) (out []commit) {
	for _, name := range slices.Sorted(maps.Keys(c.Change)) {
		text := c.Change[name]
		if text == nil || c.Tests[name] || !slices.Contains([]string{".go", ".py", ".js", ".ts", ".java", ".rs"}, path.Ext(name)) {
			continue
		}
		before := map[string]bool{}
		for line := range strings.Lines(c.Files[name]) {
			before[strings.TrimSpace(line)] = true
		}
		lines := strings.SplitAfter(*text, "\n")
		for i, line := range lines {
			if before[strings.TrimSpace(line)] {
				continue
			}
			for _, other := range flipped(line) {
				wrong := c
				changed := strings.Join(lines[:i], "") + other + strings.Join(lines[i+1:], "")
				wrong.Change = maps.Clone(c.Change)
				wrong.Change[name] = &changed
				wrong.Wrong = fmt.Sprintf("%s:%d: %s", name, i+1, strings.TrimSpace(other))
				out = append(out, wrong)
			}
		}
	}
	return out
}

// flipped are a line of code with one token changed, once for each token that decides.
func flipped(line string) (out []string) {
	code := strings.TrimSpace(line)
	if code == "" || strings.HasPrefix(code, "//") || strings.HasPrefix(code, "#") || strings.HasPrefix(code, "*") || strings.HasPrefix(code, "/*") ||
		strings.HasPrefix(code, `"""`) || strings.HasPrefix(code, "import ") || strings.HasPrefix(code, "from ") {
		return nil
	}
	for _, t := range tokens(line) {
		word := line[t[0]:t[1]]
		other := flips[word]
		if strings.ContainsAny(word, "<>=!&|") && !(strings.HasSuffix(line[:t[0]], " ") && strings.HasPrefix(line[t[1]:], " ")) {
			continue // brackets of types, say
		}
		if other == "" && word[0] >= '0' && word[0] <= '9' && !strings.ContainsAny(word, "xXbBoO") {
			other = "7" + word
		}
		if other != "" {
			out = append(out, line[:t[0]]+other+line[t[1]:])
		}
	}
	return out
}

// tokens are where the words, numbers and operators of a line begin and end, outside of texts
// and remarks.
func tokens(line string) (out [][2]int) {
	var s scanner.Scanner
	s.Init(strings.NewReader(line))
	s.Error = func(*scanner.Scanner, string) {} // of another language than Go
	s.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanFloats | scanner.ScanStrings | scanner.ScanRawStrings | scanner.ScanComments
	quoted := false
	for tok := s.Scan(); tok != scanner.EOF; tok = s.Scan() {
		from, to := s.Position.Offset, s.Pos().Offset
		if tok == '\'' { // a text in languages other than Go
			quoted = !quoted
		}
		if tok == '#' && !quoted {
			return out
		}
		if quoted {
			continue
		}
		if n := len(out); tok > 0 && n > 0 && out[n-1][1] == from && strings.ContainsRune("=&|", tok) && strings.ContainsAny(line[out[n-1][0]:from], "=!<>&|") {
			out[n-1][1] = to
			continue
		}
		out = append(out, [2]int{from, to})
	}
	return out
}
