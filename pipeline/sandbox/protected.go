package sandbox

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"forge/pipeline/glob"
	"forge/pipeline/workspace"
)

//go:embed protected.txt
var protectedFile string

// protectedPaths are those of protected.txt. A change to one needs an explicit opt-in by the
// operator.
var protectedPaths = sync.OnceValue(func() (globs []string) {
	for line := range strings.Lines(protectedFile) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			globs = append(globs, line)
		}
	}
	return globs
})

// unprotected are the exceptions among them that cannot do harm: git itself and
// editors only read them as lists of names.
var unprotected = []string{"**/.gitignore", "**/.gitkeep"}

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

// checkProtected refuses a protected path. Extra globs protect more; one that names
// a directory protects all that is in it. Allow opts in. Names are compared without
// case, since GitHub's checkout on macOS and Windows does not distinguish them.
func checkProtected(name string, extra, allow []string) error {
	lower := strings.ToLower(name)
	for _, pattern := range allow {
		if matchGlob(strings.ToLower(pattern), lower) {
			return nil
		}
	}
	for _, pattern := range extra {
		if matchOver(strings.Trim(strings.ToLower(pattern), "/"), lower) {
			return &workspace.ProtectedError{Path: name, Rule: pattern, Repository: true}
		}
	}
	for _, pattern := range unprotected {
		if matchGlob(pattern, lower) {
			return nil
		}
	}
	for _, rule := range protectedPaths() {
		if matchGlob(strings.ToLower(rule), lower) {
			return &workspace.ProtectedError{Path: name, Rule: rule}
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
		return fmt.Errorf("path %q: %w", name, errPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || len(part) > 255 || isDotGit(part) {
			return fmt.Errorf("path %q: %w", name, errPath)
		}
		for _, c := range part {
			if c < ' ' || c == 0x7f {
				return fmt.Errorf("path %q has a control character: %w", name, errPath)
			}
		}
	}
	return nil
}

// isDotGit reports whether some file system takes the name for ".git": without
// case, with characters that HFS+ ignores, in NTFS' short form, or with what NTFS
// drops at the end.
func isDotGit(part string) bool {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, strings.ToLower(part))
	clean, _, _ = strings.Cut(clean, ":")
	clean = strings.TrimRight(clean, ". ")
	return clean == ".git" || clean == "git~1"
}
