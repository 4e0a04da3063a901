package deps

import (
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// The files that say what belongs to a commit and is kept elsewhere.
const (
	modulesFile    = ".gitmodules"
	attributesFile = ".gitattributes"
)

var submodule = lazyregexp.New(`(?m)^\s*path\s*=\s*"?(.+?)"?\s*$`)

// NotFetched says what of a commit agents and tests do not see, because it is kept
// elsewhere than in the repository itself, one line for each.
func NotFetched(files map[string][]byte) (lines []string) {
	say := func(names []string, before, after string) {
		if len(names) > 0 {
			said := strings.ReplaceAll(text.Clip(strings.Join(names, ", "), 120), "`", "'")
			lines = append(lines, before+said+after)
		}
	}
	var names []string
	for _, m := range submodule.FindAllSubmatch(files[modulesFile], -1) {
		names = append(names, string(m[1]))
	}
	say(names, "submodules are not fetched: empty for agents and tests is ", " (`"+modulesFile+"`)")
	names = nil
	for line := range strings.Lines(string(files[attributesFile])) {
		if f := strings.Fields(line); len(f) > 1 && f[0][0] != '#' && strings.Contains(line, "filter=lfs") {
			names = append(names, f[0])
		}
	}
	say(names, "files of Git LFS are not fetched: a pointer for agents and tests is ", " (`"+attributesFile+"`)")
	return lines
}
