package deps

import (
	"maps"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// ToolScript is a shell script that prints a line of a name, a tab and a version for each tool that there is,
// of a name such as node@DIR for each below directories of toolchains: DIR/bin of one, and of many
// in it, as version managers keep them.
func ToolScript(toolchains []string) string {
	script := `v() { printf '%s\t%s\n' "$1" "$(printf %s "$2" | head -n 1)"; }
t() { case $1 in go) v "go$2" "$(go env GOVERSION)";; gradle) v "gradle$2" found;; mvn) v "mvn$2" "$(mvn -v 2>/dev/null)";; *) v "$1$2" "$($1 --version 2>/dev/null)";; esac; }
pip() { if p=$(python3 -m pip --version 2>/dev/null); then v "pip$1" "$p"; fi; }
all="go node npm python3 cargo ruby bundle php java dotnet gradle mvn"
for t in $all; do command -v $t >/dev/null && t $t; done; pip
if command -v composer >/dev/null && p=$(COMPOSER_HOME=/tmp composer --version --no-ansi --no-plugins 2>/dev/null); then v composer "$p"; fi
PATH=$PATH:/usr/sbin
if command -v bash >/dev/null; then
for t in redis-server memcached mysqld; do command -v $t >/dev/null && t $t; done
for p in /usr/lib/postgresql/*/bin; do [ -x $p/initdb ] && v postgres "$($p/postgres --version)"; done; fi
`
	for _, dir := range toolchains {
		at := quote(dir)
		script += "for b in " + at + "/bin " + at + "/*/bin " + at + `/*/*/bin; do [ -d "$b" ] || continue
for t in $all; do if [ -x "$b/$t" ]; then (PATH=$b:$PATH; t $t "@$b"; [ $t != python3 ] || pip "@$b"); fi; done; done
`
	}
	return script + "true"
}

// escapes are what a terminal shows as colours: Maven's version comes in them.
var escapes = lazyregexp.New(`\x1b\[[0-9;]*[A-Za-z]`)

// ParseTools reads what [ToolScript] printed.
func ParseTools(out string) map[string]string {
	tools := map[string]string{}
	for line := range strings.Lines(out) {
		if name, version, ok := strings.Cut(strings.TrimSpace(escapes.ReplaceAllString(line, "")), "\t"); ok && version != "" {
			tools[name] = version
		}
	}
	return tools
}

// Choose picks the toolchains that a repository gets, as directories of programs, and says
// which tools it has then: the server's own where they do, else the newest that its files ask
// for, and the newest of those that the server does not have otherwise.
func Choose(wants []Want, tools map[string]string) (bins []string, chosen map[string]string) {
	chosen = map[string]string{}
	at := map[string][]string{} // directories by tool
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if tool, dir, ok := strings.Cut(name, "@"); ok {
			at[tool] = append(at[tool], dir)
		} else {
			chosen[name] = tools[name]
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(at)) {
		wanted := slices.DeleteFunc(slices.Clone(wants), func(w Want) bool { return w.Tool != tool })
		fits := func(said string) bool {
			return !slices.ContainsFunc(wanted, func(w Want) bool { fits, known := w.fits(said); return known && !fits })
		}
		if chosen[tool] != "" && fits(chosen[tool]) {
			continue
		}
		best := ""
		for _, dir := range at[tool] {
			said := tools[tool+"@"+dir]
			if (fits(said) || chosen[tool] == "" && len(wanted) == 0) && (best == "" || readVersion(said).compare(readVersion(tools[tool+"@"+best])) > 0) {
				best = dir
			}
		}
		if best == "" || slices.Contains(bins, best) {
			continue
		}
		bins = append(bins, best)
		for name, said := range tools {
			if other, dir, _ := strings.Cut(name, "@"); dir == best {
				chosen[other] = said
			}
		}
	}
	return bins, chosen
}
