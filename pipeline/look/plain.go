package look

import (
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

var (
	// A value of the environment that is put into a variable, a field or an argument by name, as it is or
	// with another in its place where it is not set. Its name says what it sets.
	configured = lazyregexp.New(`^\s*(?:(?:export|const|let|var|val|private|static|final|self|this|String)[\s.]+)*([\w.@$>-]+)\s*(?::=|[:=])\s*` +
		`(?:(?:int|float|Integer|Float|Number|String|\(int\)|Path)\(?)?(?:os\.(?:environ|getenv|Getenv)|process\.env|ENV|getenv|System\.getenv|env)` +
		`(?:\.fetch|\.get)?(?:[\[(]\s*["']|\.)(?:\w+_)` +
		`(?:URLS?|URI|DSN|HOSTS?|PORT|ADDR(?:ESS)?|TOKEN|KEY|SECRET|PASSWORD|USERNAME|DIR|PATH|FILE|TIMEOUT|REGION|BUCKET|LEVEL|ENDPOINT|DATABASE)["']?` +
		`(?:\s*,\s*["']?[\w./:@-]*["']?)?[\])]*(?:\s*(?:\|\||\?\?|\?:|or)\s*["']?[\w./:@-]*["']?)?\)?[,;]?$`)
	interfaceOf = lazyregexp.New(`\bPHP_SAPI\b|\bphp_sapi_name\(`)
)

// configures reports whether a line only takes a setting from the environment, which decides nothing in the lines
// that the change adds to the file.
func configures(lines []point.Line, at int) bool {
	m := configured.FindStringSubmatch(lines[at].Text)
	if m == nil {
		return false
	}
	name := m[1][strings.LastIndexAny(m[1], ".@$>")+1:]
	for i, l := range lines {
		if i != at && decidedBy(withoutProse(l.Text), name, "") {
			return false
		}
	}
	return true
}

// asBefore reports whether a program's line asks how PHP was started where one asked that before.
func asBefore(f *File, line string) bool {
	if !strings.HasPrefix(f.Name, "bin/") && !strings.Contains(f.Name, "/bin/") || f.New || !interfaceOf.MatchString(line) {
		return false
	}
	for _, gone := range f.Gone {
		if interfaceOf.MatchString(gone) {
			return !php.kinds[point.Place].MatchString(interfaceOf.ReplaceAllString(line, ""))
		}
	}
	return false
}
