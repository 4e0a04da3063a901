package check

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// nodeTestKeys are the parts of a package.json that say how it is tested.
var nodeTestKeys = []string{"scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "tap", "jasmine", "babel", "config", "imports"}

var (
	tomlHeader  = lazyregexp.New(`^\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$`)
	tomlTests   = lazyregexp.New(`^tool\.(?:pytest|coverage|tox|nox|unittest|hatch\.envs|pdm\.scripts|poe|taskipy|hypothesis)(?:\.|$)|^project\.entry-points\."?pytest11"?`)
	tomlAnother = lazyregexp.New(`(?m)^\s*(?:tool\s*\.\s*)?["']?pytest["']?\s*[.=]`) // the same, not as a section of its own
	iniTests    = lazyregexp.New(`^(?:tool:pytest|pytest|coverage:.*|tox(?:[:].*)?|testenv.*|nosetests|unittest|aliases|test)$`)
)

// merge returns a file of the head with the test settings of the base in it, and
// whether that is the head's file as it is. What cannot be taken apart is the
// base's as a whole (nil).
func merge(name string, before, head []byte) (merged []byte, same bool) {
	if name == "package.json" {
		return mergeJSON(before, head)
	}
	return mergeSections(name == "pyproject.toml", string(before), string(head))
}

func mergeJSON(before, head []byte) ([]byte, bool) {
	before, head = bytes.TrimPrefix(before, byteOrderMark), bytes.TrimPrefix(head, byteOrderMark)
	var old, now map[string]json.RawMessage
	if json.Unmarshal(head, &now) != nil || len(bytes.TrimSpace(before)) > 0 && json.Unmarshal(before, &old) != nil {
		return nil, bytes.Equal(before, head)
	}
	same, merged := true, false
	if scripts := mergeScripts(old["scripts"], now["scripts"]); scripts != nil {
		same = sameJSON(scripts, now["scripts"])
		now["scripts"], merged = scripts, true
	}
	for _, key := range nodeTestKeys {
		if key == "scripts" && merged || sameJSON(old[key], now[key]) {
			continue
		}
		same = false
		delete(now, key)
		if old[key] != nil {
			now[key] = old[key]
		}
	}
	out, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return nil, false // unreachable: it was just parsed
	}
	return append(out, '\n'), same
}

var npmHook = lazyregexp.New(`^(?:pre|post)|^(?:install|prepare|dependencies)$`)

// mergeScripts returns the base's scripts, and with them what the head adds and
// no script of the base runs. Nil: they are the one or the other as a whole.
func mergeScripts(before, head json.RawMessage) json.RawMessage {
	var old, now map[string]string
	if before == nil || head == nil || json.Unmarshal(before, &old) != nil || json.Unmarshal(head, &now) != nil {
		return nil
	}
	out := maps.Clone(old)
	for name, script := range now {
		if _, had := old[name]; !had && !npmHook.MatchString(name) && name != "test" {
			out[name] = script
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil // unreachable: strings alone
	}
	return data
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// section is a header with the lines after it; the first has no header.
type section struct {
	name  string
	lines []string
}

func sections(text string) []section {
	out := []section{{}}
	for line := range strings.Lines(text) {
		if m := tomlHeader.FindStringSubmatch(line); m != nil {
			out = append(out, section{name: strings.ReplaceAll(m[1], " ", "")})
		}
		last := &out[len(out)-1]
		last.lines = append(last.lines, line)
	}
	return out
}

func mergeSections(toml bool, before, head string) ([]byte, bool) {
	tests := iniTests
	if toml {
		tests = tomlTests
	}
	split := func(text string) (about, rest []string) {
		for _, s := range sections(text) {
			if tests.MatchString(s.name) {
				about = append(about, s.lines...)
			} else {
				rest = append(rest, s.lines...)
			}
		}
		return about, rest
	}
	was, oldRest := split(before)
	now, rest := split(head)
	if toml && tomlAnother.MatchString(strings.Join(rest, "")+"\n"+strings.Join(oldRest, "")) {
		return nil, before == head
	}
	same := slices.Equal(squeeze(was), squeeze(now))
	if n := len(rest); n > 0 && !strings.HasSuffix(rest[n-1], "\n") {
		rest[n-1] += "\n"
	}
	return []byte(strings.Join(append(rest, was...), "")), same
}

// squeeze leaves out empty lines and space around the others.
func squeeze(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}
