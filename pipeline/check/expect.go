package check

import (
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

// spoiler changes what tests expect, by the text of their files. It need not find
// every expectation, and may take something else for one: what counts is which tests
// fail by it at the base.
type spoiler struct {
	tail string          // put at the end of each text
	used map[string]bool // files by which commands run the tests: a script's expectations stand in them
	one  int             // of each test the expectation of this number alone, from 1; 0: all
	ends map[string]bool // scripts that get an end which fails, and nothing else is changed; nil: what they expect is
}

// digits are put in front of numbers, one after the other: what goes in and what is
// expected do not grow alike. It makes them so large that no tolerance holds them.
const digits = "78945632"

const (
	doubled = `"(?:[^"\\\n]|\\.)*"`
	single  = `'(?:[^'\\\n]|\\.)*'`
	number  = `\b\d+(?:\.\d+)?\b`

	shLiteral = doubled + `|` + single + `|[\w.+-]*\w`
)

// expecting is how a language writes down what a test expects.
type expecting struct {
	literal  *lazyregexp.Regexp
	compared *lazyregexp.Regexp // a literal behind a comparison
	named    *lazyregexp.Regexp // a literal that is called expected
	row      *lazyregexp.Regexp // a row of a table; its last literal is the last thing in it
	compares *lazyregexp.Regexp // lines that hold comparisons
	remark   string             // what begins one
}

func expectingIn(literal, compares, row, remark string) *expecting {
	return &expecting{
		literal:  lazyregexp.New(literal),
		compared: lazyregexp.New(`((?:[=!]==?|\bis(?: not)?)\s*[-+]?)(` + literal + `)`),
		named:    lazyregexp.New(`(?i)(\b(?:want|expect|output|result)\w*["']?\s*(?::=|:|=)\s*[-+]?)(` + literal + `)`),
		row:      lazyregexp.New(row),
		compares: lazyregexp.New(compares),
		remark:   remark,
	}
}

var (
	goExpects = expectingIn(doubled+"|`[^`\n]*`|"+number, `^\s*(?:\}? ?else )?if\b|^\s*case\b|^\s*return\b`, `[{,]\s*[-+]?(?:`+doubled+"|`[^`\n]*`|"+number+`)\s*\}`, "//")
	pyExpects = expectingIn(doubled+`|`+single+`|`+number, `^\s*assert\b|^\s*if\b|^\s*return\b`, `^\s*(?:pytest\.param)?[(\[].*,.*(?:`+doubled+`|`+single+`|`+number+`)\s*[)\]],?\s*$`, "#")
	jsExpects = expectingIn(doubled+`|`+single+"|`[^`$\n]*`|"+number, `\bif\s*\(|\bassert|\breturn\b`, `^\s*[\[{].*,.*(?:`+doubled+`|`+single+`|`+number+`)\s*[\]}],?\s*$`, "//")

	// A shell has words without quotes, and commands for what others have calls for.
	shExpects = &expecting{
		literal:  lazyregexp.New(shLiteral),
		compared: lazyregexp.New(`((?:\s(?:=|==|!=|-eq|-ne)|=~)\s+)(` + shLiteral + `)`),
		named:    lazyregexp.New(`(?i)(\b(?:want|expect)\w*=)(` + shLiteral + `)`),
		row:      lazyregexp.New(`^\s*(?:\w*_)?(?:assert|check|expect|equals?|is|same|want|compare)\w*\s[^|;&]*(?:` + shLiteral + `)\s*(?:\|\||&&|;|$)`),
		compares: lazyregexp.New(`\[|\btest\b`),
		remark:   "#",
	}

	// asserting is a call that holds something: by any name at the beginning of a line,
	// by one that says so anywhere.
	asserting     = lazyregexp.New(`(?i)(?:^\s*(?:await\s+|return\s+)?(?:[\w.]*(?:assert|expect|check|equal|same|verify|should|must|compare|match)\w*|(?:t|test)\.(?:is|eq|deepEqual|like)|(?:self\.)?(?:eq|is)_?)|\b(?:assert\w*(?:\.\w+)*|expect|\w*equals?|check|verify|same))\s*\(`)
	declaring     = lazyregexp.New(`^\s*(?:func|def|async def|function|class|import|from|const \w+ = \(|@)\b`)
	looping       = lazyregexp.New(`^\s*(?:for|while)\b`)
	exampleOutput = lazyregexp.New(`(?i)^\s*//\s*(?:unordered )?output:`)
	exampleLine   = lazyregexp.New(`^\s*//`)
	longString    = lazyregexp.New(`"""|'''`)
	ownCall       = lazyregexp.New(`(?:^|=>\s*\{)\s*(?:await\s+)?[\w.]+(\()`) // a line that is a call may hold something by its name in this project
	loopedTable   = lazyregexp.New(`\bin\s*[\[(]`)
	eachOfTable   = lazyregexp.New(`\]\s*\.(?:forEach|map)\(|\bof\s*\[`)
	loopedRow     = lazyregexp.New(`[(\[][^()\[\]]*,\s*[-+]?(?:` + doubled + `|` + single + `|` + number + `)\s*[)\]]`)
	distance      = lazyregexp.New(`(?i)\babs\(`)
	member        = lazyregexp.New(`^\s*assert\s+(?:not\s+)?(` + doubled + `|` + single + `)(\s+(?:not\s+)?in\s)`)
)

// What tests of further languages expect. A character of Java is no text, and grows to none.
var (
	rubyExpects = func() *expecting {
		e := expectingIn(doubled+`|`+single+`|`+number, `^\s*(?:assert|refute|raise|fail|abort|if|unless|return)\b|\b(?:raise|abort|exit|fail)\b.*\b(?:if|unless)\b|\bshould\b`,
			`^\s*[\[{].*,.*(?:`+doubled+`|`+single+`|`+number+`)\s*[\]}],?\s*$`, "#")
		e.named = lazyregexp.New(`(?i)((?:\b(?:want|expected|output|result)\w*\s*=|\b(?:eq|eql|equal|be|must_\w+|contain_exactly|match_array)\b[ (])\s*[-+]?)(` + doubled + `|` + single + `|` + number + `)`)
		return e
	}()
	phpExpects = expectingIn(doubled+`|`+single+`|`+number, `\bif\s*\(|\bassert|\breturn\b`, `^\s*\[.*,.*(?:`+doubled+`|`+single+`|`+number+`)\s*\],?\s*$`, "//")
	jvmExpects = expectingIn(doubled+`|`+number, `\bif\s*\(|\bassert\b|\breturn\b`, `^\s*(?:[{]|(?:Arguments\.)?(?:of|arguments|arrayOf|listOf)\().*,.*(?:`+doubled+`|`+number+`)\s*[)}],?\s*$`, "//")

	moreExpects = map[string]*expecting{".php": phpExpects, ".java": jvmExpects, ".kt": jvmExpects, ".groovy": jvmExpects}

	// wordCall is a call of Ruby without parentheses that holds something.
	wordCall = lazyregexp.New(`^\s*(?:assert|refute)\w*\s+(\S.*)$`)
)

// spoil returns a file of tests with what it expects changed, and how many
// expectations that were.
func (p spoiler) spoil(name string, source []byte) (out []byte, n int) {
	lang := map[*language]*expecting{&goLang: goExpects, &pyLang: pyExpects, &jsLang: jsExpects, &rubyLang: rubyExpects}[languageOf(name)]
	if lang == nil {
		lang = moreExpects[strings.ToLower(path.Ext(name))]
	}
	if lang == nil && isShell(name, source) {
		lang = shExpects
	}
	if lang == nil {
		return source, 0
	}
	var b strings.Builder
	l := spoiled{e: lang, tail: p.tail}
	open, long := false, false // in the output of an example; in a text of several lines
	nth := 0                   // expectation of the test
	for line := range strings.Lines(string(source)) {
		was := line
		if decl := languageOf(name).decl; decl != nil && decl.MatchString(line) {
			nth = 0
		}
		text, end := strings.TrimRight(line, "\r\n"), line[len(strings.TrimRight(line, "\r\n")):]
		quotes := 0
		switch {
		case lang == pyExpects:
			quotes = len(longString.FindAllString(text, -1))
		case lang == goExpects:
			quotes = strings.Count(text, "`")
		}
		switch {
		case lang == goExpects && exampleOutput.MatchString(text):
			open = true
			if _, first, ok := strings.Cut(text, ":"); ok && strings.TrimSpace(first) != "" {
				text += p.tail
			}
		case open && exampleLine.MatchString(text):
			text += p.tail
		case long || quotes > 0 && lang == pyExpects || quotes%2 == 1:
			open = false
		default:
			open = false
			text = l.line(text)
		}
		if quotes%2 == 1 {
			long = !long
		}
		if line = text + end; line != was {
			if nth++; p.one == 0 || p.one == nth {
				n++
			} else {
				line = was
			}
		}
		b.WriteString(line)
	}
	return []byte(b.String()), n
}

// isShell reports whether a file is a script of a shell, by its name or its first line.
func isShell(name string, source []byte) bool {
	switch path.Ext(name) {
	case ".sh", ".bash", ".bats":
		return true
	case "":
		return shebang.Match(source)
	}
	return false
}

var shebang = lazyregexp.New(`^#!\S*[/ ](?:env )?(?:ba|da|k|z)?sh\b`)

// spoiled is a file that is being changed.
type spoiled struct {
	e       *expecting
	tail    string
	numbers int // that were changed
}

// line changes what a line expects, in the first way that applies.
func (l *spoiled) line(text string) string {
	e := l.e
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || strings.HasPrefix(trimmed, e.remark) || declaring.MatchString(text) {
		return text
	}
	loops := looping.MatchString(text)
	if table := e == pyExpects && loops && loopedTable.MatchString(text) || e == jsExpects && eachOfTable.MatchString(text); table && loopedRow.MatchString(text) {
		return loopedRow.ReplaceAllStringFunc(text, l.last)
	}
	if !loops {
		if e.compares.MatchString(text) && e.compared.MatchString(text) {
			return e.compared.ReplaceAllStringFunc(text, l.last)
		}
		if e.named.MatchString(text) {
			return e.named.ReplaceAllStringFunc(text, l.last)
		}
		if m := wordCall.FindStringSubmatchIndex(text); e == rubyExpects && m != nil {
			return text[:m[2]] + l.arguments(text[m[2]:], false)
		}
		if e == shExpects {
			return e.row.ReplaceAllStringFunc(text, l.last)
		}
		if changed := l.calls(text); changed != text {
			return changed
		}
	}
	switch {
	case e == goExpects && e.row.MatchString(text):
		return e.row.ReplaceAllStringFunc(text, l.last)
	case e.row.MatchString(text):
		return l.last(text)
	case e == pyExpects && strings.HasPrefix(trimmed, "assert ") && strings.Contains(trimmed, "=="):
		head, tail, _ := strings.Cut(text, "==")
		want, message, said := cutArgument(tail)
		if want = l.last(want); said {
			want += "," + message
		}
		return head + "==" + want
	case e == pyExpects && strings.HasPrefix(trimmed, "assert "):
		return l.claim(text)
	}
	return l.own(text)
}

// claim changes an assertion without a comparison that is known: what is looked for in
// something, how far something is from a value, what a helper of the project is given.
func (l *spoiled) claim(text string) string {
	if m := member.FindStringSubmatchIndex(text); m != nil {
		return text[:m[2]] + l.last(text[m[2]:m[3]]) + text[m[3]:]
	}
	held, message, said := cutArgument(text)
	if held = l.held(held); said {
		held += "," + message
	}
	return held
}

// held changes the last literal; where a distance is held against a tolerance, the last
// one of the distance.
func (l *spoiled) held(text string) string {
	at := distance.FindStringIndex(text)
	if at == nil {
		return l.last(text)
	}
	from, to := lastArguments(text, at[1]-1)
	if to < 0 {
		return l.last(text)
	}
	return text[:from] + l.last(text[from:to]) + text[to:]
}

// own changes the last argument of a line that is a call with several, where it is
// nothing but a literal.
func (l *spoiled) own(text string) string {
	all := ownCall.FindAllStringSubmatchIndex(text, -1)
	if all == nil {
		return text
	}
	from, to := lastArguments(text, all[len(all)-1][2])
	if to < 0 || strings.TrimRight(text[to:], "}); \t") != "" {
		return text
	}
	arg, list, more := cutArgument(text[from:to])
	if !more {
		return text
	}
	for more {
		arg, list, more = cutArgument(list)
	}
	bare := strings.TrimLeft(strings.TrimSpace(arg), "-+")
	if m := l.e.literal.FindString(bare); m == "" || m != bare {
		return text
	}
	cut := to - len(arg)
	return text[:cut] + l.last(arg) + text[to:]
}

// calls changes what the calls of a line expect that hold something.
func (l *spoiled) calls(text string) string {
	done := 0
	for done < len(text) {
		at := asserting.FindStringIndex(text[done:])
		if at == nil {
			break
		}
		from, to := lastArguments(text, done+at[1]-1)
		if to < 0 {
			break // it does not end in this line
		}
		args := l.arguments(text[from:to], done+at[1] < from)
		text = text[:from] + args + text[to:]
		done = from + len(args)
	}
	return text
}

// arguments changes those that are nothing but a literal, else the last literal of
// the last. The only one of a call is what is looked at, but behind expect(…).
func (l *spoiled) arguments(list string, chained bool) string {
	var out []string
	changed := false
	for more := true; more; {
		var arg string
		arg, list, more = cutArgument(list)
		bare := strings.TrimLeft(strings.TrimSpace(arg), "-+")
		if m := l.e.literal.FindString(bare); m != "" && m == bare && (more || len(out) > 0 || chained) {
			arg, changed = l.last(arg), true
		}
		out = append(out, arg)
	}
	if n := len(out) - 1; !changed {
		out[n] = l.held(out[n])
	}
	return strings.Join(out, ",")
}

// lastArguments returns where the arguments of a call stand whose parenthesis opens
// at a place, or those of the last call that is chained to it; to is -1 when it does
// not end in the line.
func lastArguments(text string, open int) (from, to int) {
	depth, start := 0, 0
	to = -1
	scan(text[open:], func(i int, c byte) bool {
		switch c {
		case '(', '[', '{':
			if depth == 0 {
				start = i + 1
			}
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				from, to = open+start, open+i
				return chain.MatchString(text[open+i+1:])
			}
		}
		return depth >= 0
	})
	return from, to
}

// chain is a call on what another call returned.
var chain = lazyregexp.New(`^(?:\s*(?:\.|\??->)\s*\w+)+\s*\(`)

// cutArgument cuts a list of arguments at its first comma.
func cutArgument(s string) (arg, rest string, more bool) {
	depth, at := 0, -1
	scan(s, func(i int, c byte) bool {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ',':
			if depth == 0 {
				at = i
				return false
			}
		}
		return true
	})
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+1:], true
}

// scan visits the bytes of a line that are in no text, until f returns false.
func scan(s string, f func(i int, c byte) bool) {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '"' || c == '\'' || c == '`' {
			for i++; i < len(s) && s[i] != c; i++ {
				if s[i] == '\\' {
					i++
				}
			}
			continue
		}
		if !f(i, s[i]) {
			return
		}
	}
}

// last changes the last literal of a text.
func (l *spoiled) last(text string) string {
	all := l.e.literal.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return text
	}
	at := all[len(all)-1]
	lit := text[at[0]:at[1]]
	if c := lit[0]; c == '"' || c == '\'' || c == '`' {
		lit = lit[:len(lit)-1] + l.tail + lit[len(lit)-1:]
	} else {
		lit = digits[l.numbers%len(digits):][:1] + lit
		l.numbers++
	}
	return text[:at[0]] + lit + text[at[1]:]
}
