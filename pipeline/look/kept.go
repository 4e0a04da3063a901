package look

import (
	"regexp"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// What a language keeps from one call to the next: a name is the variable with what it is a part of.
const (
	variable = `(?:@@?|\$)?[A-Za-z_]\w*(?:(?:::|->|\.)\$?\w+)*`
	keywords = `^(?:(?:export|private|internal|public)\s+)*(?:let|var|val|const)\s+`
	element  = `(?:\[[^\]=]*\])?`
)

var (
	counts = lazyregexp.New(`(` + variable + `)` + element + `(?:\+\+|--|\s*[+-]=)|(?:\+\+|--)\s*(` + variable + `)` +
		`|(` + variable + `)\.(?:incrementAndGet|getAndIncrement)\(`)
	collects = lazyregexp.New(`(` + variable + `)(?:\s*\|\|=\s*\[\]\))?(?:\s*<<\s*\S|\[\]\s*=[^=])` +
		`|(` + variable + `?)(?:\.|->)(?:append|add|push|unshift|insert|offer)\(|\bappend\(\s*(` + variable + `)\s*,`)
	stores   = lazyregexp.New(`(` + variable + `)\[[^\]]+\]\s*=[^=]`)
	gathers  = lazyregexp.New(`\[\s*(?:\*|\.\.\.)|\+\s*\[`)
	assigned = lazyregexp.New(`(` + variable + `)\s*=([^=].*)`)
	oneMore  = lazyregexp.New(`[+-]\s*\d|\d\s*\+|\.(?:succ|next|pred)\b`)
	// Where variables are declared that outlive a call: at the margin, as a field, or as the
	// value of a parameter that is made once.
	atMargin  = lazyregexp.New(keywords + `.*|^[A-Za-z_][\w, ]*(?::[^=()]+)?=[^=>].*`)
	leftSide  = lazyregexp.New(`(\w+)(?:\s*:[^,]*|\s+[\w.\[\]*]+)?\s*(?:,|$)`)
	oneMoreOf = lazyregexp.New(`,\s*(\w+)\s*=[^=>]`)
	keyword   = lazyregexp.New(keywords)
	inGroup   = lazyregexp.New(`^\t(\w+(?:, \w+)*)\s`)
	aField    = lazyregexp.New(`^\s+(?:(?:private|public|protected|internal|static|volatile|transient|final|@\w+)\s+)+` +
		`(?:var\s+|val\s+|[\w<>\[\], ]+\s)(\w+)\s*[:=;]`)
	madeOnce    = lazyregexp.New(`^\s*def\s.*[(,]\s*(\w+)\s*(?::[^=,]+)?=\s*(?:\[|\{|set\(|dict\(|list\()`)
	definedHere = lazyregexp.New(`\b(?:def|function|class|object|module)\s+([A-Za-z_]\w*)`)
	ofObject    = lazyregexp.New(`^(?:@[a-zA-Z_]|\$this->|self\.|this\.)`)
	ofAll       = lazyregexp.New(`^(?:@@|\$[a-zA-Z_]\w*$|(?:self|static|[A-Z]\w*)::\$)`)
	constant    = lazyregexp.New(`^[A-Z][A-Z0-9_]*$`) // of Ruby, in which something is collected
	local       = lazyregexp.New(`^\$\w+$`)           // of PHP
)

// kept are the names of what a file's added lines count up or collect from one call to the next,
// each with an expression for where it decides.
func kept(file string, lines []point.Line) map[string]*regexp.Regexp {
	outlives := outliving(lines)
	out := map[string]*regexp.Regexp{}
	for _, l := range lines {
		for name, how := range counted(l.Text) {
			if re := decidesOf(file, name, how, outlives, runsOnce(l.Text)); re != nil && out[name] == nil {
				out[name] = re
			}
		}
	}
	return out
}

// decidesOf is an expression for where a name decides that a line counts up, or that it collects in; nil: it is of one
// call. What an object collects, and where it stands in what it reads, is honest where it is only empty or at the end.
func decidesOf(file, name string, how way, outlives map[string]bool, once bool) *regexp.Regexp {
	root, _, part := strings.Cut(name, ".")
	number := moreThanNone
	if how != counting || strings.HasSuffix(file, ".go") {
		number = several
	}
	switch {
	case strings.HasSuffix(file, ".php") && local.MatchString(name):
	case how == storing && outlives[root] && !once: // what is remembered under a key is looked up by it
		return regexp.MustCompile(decidingNumber(name, several))
	case how == storing:
	case ofAll.MatchString(name) || constant.MatchString(name) && strings.HasSuffix(file, ".rb"), (outlives[root] || part && outlives[root+"."]) && !once:
		return regexp.MustCompile(deciding(sized(name)) + `|` + decidingNumber(name, aNumber))
	case ofObject.MatchString(name) || part && strings.HasSuffix(file, ".go"): // of Go, the receiver has any name
		return regexp.MustCompile(decidingNumber(name, number))
	}
	return nil
}

// outliving are the names of variables that some lines declare and that outlive a call, and, with a dot behind, of functions
// and classes, whose members do.
func outliving(lines []point.Line) map[string]bool {
	out := map[string]bool{}
	grouped := false // in Go's var ( … )
	for _, l := range lines {
		for _, re := range []*lazyregexp.Regexp{aField, madeOnce} {
			for _, m := range re.FindAllStringSubmatch(l.Text, -1) {
				out[m[1]] = true
			}
		}
		for _, m := range definedHere.FindAllStringSubmatch(l.Text, -1) {
			out[m[1]+"."] = true
		}
		switch {
		case l.Text == "var (" || l.Text == ")":
			grouped = l.Text == "var ("
		case grouped && inGroup.MatchString(l.Text):
			declare(out, leftSide, inGroup.FindStringSubmatch(l.Text)[1])
		case atMargin.MatchString(l.Text):
			left, value, _ := strings.Cut(l.Text, "=")
			declare(out, leftSide, keyword.ReplaceAllString(left, ""))
			if !strings.ContainsAny(value, "(>[{") {
				declare(out, oneMoreOf, ","+value)
			}
		}
	}
	return out
}

func declare(names map[string]bool, re *lazyregexp.Regexp, s string) {
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		names[m[1]] = true
	}
}

// runsOnce reports whether a line stands at the margin, and opens no function.
func runsOnce(line string) bool {
	return line == strings.TrimLeft(line, " \t") && !strings.Contains(line, "=>") && !strings.Contains(line, "{")
}

// way is how a line adds to what is kept.
type way int

const (
	counting   way = iota // a number
	collecting            // in a list
	storing               // under a key
)

// counted are the names of what a line adds to.
func counted(line string) map[string]way {
	out := map[string]way{}
	for _, m := range stores.FindAllStringSubmatch(line, -1) {
		out[m[1]] = storing
	}
	for _, m := range counts.FindAllStringSubmatch(line, -1) {
		out[m[1]+m[2]+m[3]] = counting
	}
	for _, m := range collects.FindAllStringSubmatch(line, -1) {
		out[m[1]+m[2]+m[3]] = collecting
	}
	if m := assigned.FindStringSubmatch(line); m != nil && mentions(m[2], m[1][strings.LastIndexAny(m[1], ".>:@$")+1:]) {
		if gathers.MatchString(m[2]) {
			out[m[1]] = collecting
		} else if oneMore.MatchString(m[2]) {
			out[m[1]] = counting
		}
	}
	delete(out, "")
	return out
}

// sized is an expression for a name, or how much is in it.
func sized(name string) string {
	return `(?:\b(?:len|count|sizeof)\(\s*)?` + edge(name) + `\b` + element + `(?:\+\+|--)?(?:\.(?:size|length|count|len|get|load)\b(?:\(\))?)?`
}

// edge is an expression for a name at the beginning of which no other ends.
func edge(name string) string {
	if inWord(name[0]) {
		return `\b` + regexp.QuoteMeta(name)
	}
	return regexp.QuoteMeta(name)
}

const (
	aNumber      = `(?:\d+|[A-Z][A-Z0-9_]+)\b`
	moreThanNone = `(?:[1-9]\d*|[A-Z][A-Z0-9_]+)\b`
	several      = `(?:[2-9]|\d{2,})\b`
)

// decidingNumber is an expression for where a name is compared with a number, or a constant.
func decidingNumber(name, number string) string {
	set := `\(\s*` + edge(name) + `\s*=[^=()](?:[^()]|\([^()]*\))*\)\s*(?:[<>]=?|[!=]==?)\s*` + number // (n = n + 1) > 4
	return set + `|` + sized(name) + `\.(?:between\?|even\?|odd\?)` +
		`|` + sized(name) + `\s*\)?\s*(?:%\s*` + number + `|(?:[<>]=?|[!=]==?)\s*` + number + `)|` + number + `\s*(?:[<>]=?|[!=]==?)\s*(?:\+\+|--)?` + sized(name)
}

// decidedByKept reports whether what is kept from one call to the next settles a line.
func decidedByKept(kept map[string]*regexp.Regexp, line string) bool {
	for name, re := range kept {
		if strings.Contains(line, name) && re.MatchString(line) {
			return true
		}
	}
	return false
}
