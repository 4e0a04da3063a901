package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// Code that looks like other code than it is passes every rule, and whoever reads it. What
// looks like a comment is looked at, too: there it hides.
var (
	turned    = lazyregexp.New("[\u202a-\u202e\u2066-\u2069]") // the direction of writing
	lineEnd   = lazyregexp.New("\r")                           // a line, where none is seen to end
	lineEndJS = lazyregexp.New("[\r\u2028\u2029]")
	encoding  = lazyregexp.New(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`) // as Python looks for it, in the first two lines
	// asRead are the encodings in which ASCII is what it looks like.
	asRead = lazyregexp.New(`(?i)^(?:utf[-_]?8(?:[-_]sig)?|(?:us[-_])?ascii|latin[-_]?1|iso[-_]?8859[-_]\d+|(?:cp|windows[-_])125\d|koi8[-_]\w)$`)
)

// disguised finds lines of the change that are other code than they look.
func (c *checker) disguised(isTest map[string]bool, read func(string) ([]byte, bool)) {
	lines := c.patch.productLines(isTest)
	for _, f := range c.patch.files {
		lang := languageOf(f.NewName)
		if lang == nil && !sourceExt.MatchString(f.NewName) {
			continue
		}
		end := lineEnd
		switch lang {
		case &jsLang:
			end = lineEndJS
		case &pyLang:
			if f.IsDelete || isTest[f.NewName] {
				break
			}
			now, _ := read(f.NewName)
			if at, name := encoded(now); name != "" {
				if _, before := encoded(textBefore(f, read)); before != name {
					c.reaches(f.NewName, at, ruleForges, "is written in "+name+", by which it is other code than it looks")
				}
			}
		}
		for _, l := range lines[f] {
			if turned.MatchString(l.Text) || lang != &goLang && end.MatchString(l.Text) {
				c.reaches(f.NewName, l, ruleForges, "holds characters that make it look like other code than it is")
				break
			}
		}
	}
}

// encoded returns an encoding that Python code names and that is not read as it looks, with
// its line.
func encoded(code []byte) (point.Line, string) {
	n := 0
	for line := range strings.Lines(string(code)) {
		if n++; n > 2 {
			break
		}
		if m := encoding.FindStringSubmatch(line); m != nil && !asRead.MatchString(m[1]) {
			return point.Line{Number: n, Text: line}, m[1]
		}
	}
	return point.Line{}, ""
}
