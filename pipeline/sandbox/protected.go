package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"forge/pipeline/glob"
	"forge/pipeline/workspace"

	"golang.org/x/text/unicode/norm"
)

//go:embed protected.txt
var protectedFile string

// protectedPaths are those of protected.txt, and the names with a dot in front that are open. A
// change to one needs an explicit opt-in by the operator.
var protectedPaths = sync.OnceValues(func() (globs, open []string) {
	into := &globs
	for line := range strings.Lines(protectedFile) {
		switch line = strings.TrimSpace(line); {
		case line == "open:":
			into = &open
		case line != "" && !strings.HasPrefix(line, "#"):
			*into = append(*into, line)
		}
	}
	return globs, open
})

// owned tells a refusal whose the path is.
func owned(err error, owners map[string]string) error {
	var p *workspace.ProtectedError
	if errors.As(err, &p) && p.Repository && owners[p.Rule] != "" {
		own := *p
		own.Owner = owners[p.Rule]
		return &own // in its own words
	}
	return err
}

// taken refuses a file that is another one's, and a directory that holds one.
func taken(name string, files map[string]string) error {
	name = path.Clean(name)
	if owner := files[name]; owner != "" {
		return &workspace.ProtectedError{Path: name, Rule: name, Repository: true, Owner: owner}
	}
	for file, owner := range files {
		if strings.HasPrefix(file, name+"/") {
			return &workspace.ProtectedError{Path: file, Rule: file, Repository: true, Owner: owner}
		}
	}
	return nil
}

// dotNames is the rule about names that begin with a dot.
const dotNames = "**/.*/**"

// checkProtected refuses a protected path. Extra globs protect more; one that names
// a directory protects all that is in it. Allow opts in. Names are compared as the file
// systems compare them that do so most loosely.
func checkProtected(name string, extra, allow []string) error {
	plain := folded(name)
	for _, pattern := range allow {
		if matchGlob(folded(pattern), plain) {
			return nil
		}
	}
	for _, pattern := range extra {
		if matchOver(strings.Trim(folded(pattern), "/"), plain) {
			return &workspace.ProtectedError{Path: name, Rule: pattern, Repository: true}
		}
	}
	rules, open := protectedPaths()
	for _, rule := range rules {
		if matchGlob(folded(rule), plain) {
			return &workspace.ProtectedError{Path: name, Rule: rule}
		}
	}
	for part := range strings.SplitSeq(plain, "/") {
		if strings.HasPrefix(part, ".") && !slices.ContainsFunc(open, func(pattern string) bool { return matchGlob(pattern, part) }) {
			return &workspace.ProtectedError{Path: name, Rule: dotNames}
		}
	}
	return nil
}

// matchOver reports whether a glob matches a path or a directory above it.
func matchOver(pattern, name string) bool {
	for i := range len(name) + 1 {
		if (i == len(name) || name[i] == '/') && matchGlob(pattern, name[:i]) {
			return true
		}
	}
	return false
}

// matchGlob matches a path; a glob without a slash is matched against the last
// element alone.
func matchGlob(pattern, name string) bool {
	if !strings.Contains(pattern, "/") && pattern != "**" {
		name = path.Base(name)
	}
	return glob.Match(strings.TrimPrefix(pattern, "/"), name)
}

// errPath is why a path cannot be used.
var errPath = errors.New("not a path inside the repository")

// checkPath refuses what git or a file system could take for something else:
// absolute and unclean paths, ".." and every spelling of ".git".
func checkPath(name string) error {
	if name == "" || len(name) > 4096 || strings.HasPrefix(name, "/") || strings.ContainsAny(name, "\x00\\") || path.Clean(name) != name {
		return fmt.Errorf("path %.200q: %w", name, errPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || len(part) > 255 || isDotGit(part) {
			return fmt.Errorf("path %.200q: %w", name, errPath)
		}
		for _, c := range part {
			if c < ' ' || c == 0x7f {
				return fmt.Errorf("path %.200q has a control character: %w", name, errPath)
			}
		}
	}
	return nil
}

// isDotGit reports whether some file system takes the name for ".git".
func isDotGit(part string) bool {
	name := folded(part)
	return name == ".git" || name == "git~1" // NTFS' short form
}

// folded is a path as file systems compare names: without case and without what looks alike
// (macOS), without characters that are not seen (HFS+), without the dots, blanks and streams at
// the end of an element (NTFS).
func folded(name string) string {
	parts := strings.Split(strings.ToLower(norm.NFKD.String(name)), "/")
	for i, part := range parts {
		part = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
				return -1
			}
			return r
		}, part)
		if part, _, _ = strings.Cut(part, ":"); strings.Trim(part, ".") != "" {
			part = strings.TrimRight(part, ". ")
		}
		parts[i] = part
	}
	return strings.Join(parts, "/")
}
