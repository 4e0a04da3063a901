package change

import (
	"fmt"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/written"
)

// maxSummary caps the summary of one file, in bytes.
const maxSummary = 6 << 10

// summary tells the patch of a file that a machine wrote in few words: text, or why
// nobody can read it, or neither, when it is a file like others.
//
// Nothing runs a lock file, so its name is enough. A generated file is code, and
// whoever writes the code under review chooses its name: it must say at its top that
// it is generated, and have said so at the base or bear a generator's name.
func (f *File) summary(content string, known bool) (text, unread string) {
	switch {
	case written.Lock(f.Path):
		return f.lockSummary(), ""
	case written.Squeezed(f.Path) && f.average() > 110:
		return "", "minified: nobody can read it"
	case !known || !written.Marker().MatchString(top(content)):
		return "", ""
	case written.Named(f.Path), f.From != "" && written.Marker().MatchString(top(strings.Join(f.before(splitLines(content)), "\n"))):
		return f.generatedSummary(), ""
	}
	return "", ""
}

// top is where a generator's mark stands.
func top(content string) string {
	lines := strings.SplitN(content, "\n", 21)
	return strings.Join(lines[:min(20, len(lines))], "\n")
}

// average is the mean length of the lines that were added.
func (f *File) average() int {
	n, sum := 0, 0
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.op == '+' {
				n++
				sum += len(l.text)
			}
		}
	}
	return sum / max(1, n)
}

var (
	// entry matches the lines of lock files that name something: a package, a version,
	// an address, a switch.
	entry    = lazyregexp.New(`(?i)^[\s"',{\[-]*(?:name|version|resolved|resolution|source|url|registry|tarball|path|link|branch|rev|ref|hasInstallScript|requiresBuild|git)\b|^\S+ v\d\S*|^[\s"'/]*@?[\w./@~^<>=|* -]+["']?\s*(?::\s*\{?|\{)\s*$|^\s*\[\[?\w|^\s{2,4}[\w.-]+ \([^)]*\)|^[\w.:-]+:[\w.-]+:\S+=|^["']?@?[\w./-]+@[^:]+["']?:`)
	digestOf = lazyregexp.New(`\b(?:sha\d+[-:][A-Za-z0-9+/=]{20,}|h1:[A-Za-z0-9+/=]{20,}|[0-9a-f]{40,})`)
	host     = lazyregexp.New(`\b(?:[a-z0-9+.-]+)://(?:[^\s/"'@]*@)?([^\s/"':)]+)`)
)

// lockSummary lists what a lock file's patch adds and takes away, without the
// digests, and every host that it names.
func (f *File) lockSummary() string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(f.head(), "\n") + " — a lock file: the entries that changed, without digests\n")
	var shown []string
	hosts := map[string]bool{}
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.op == ' ' {
				continue
			}
			if m := host.FindStringSubmatch(l.text); m != nil && l.op == '+' {
				hosts[m[1]] = true
			}
			if text := digestOf.ReplaceAllString(l.text, "…"); entry.MatchString(text) {
				if s := string(l.op) + strings.TrimSpace(text); !slices.Contains(shown[max(0, len(shown)-4):], s) {
					shown = append(shown, s)
				}
			}
		}
	}
	b.WriteString(list(shown, "entries"))
	if len(hosts) > 0 {
		names := []string{}
		for h := range hosts {
			names = append(names, h)
		}
		slices.Sort(names)
		fmt.Fprintf(&b, "hosts that added lines name: %s\n", strings.Join(names[:min(len(names), 50)], ", "))
	}
	return b.String()
}

// definition is a line of generated code that names something, or brings it in.
var definition = lazyregexp.New(`^\s*(?:export\s+|public\s+|static\s+|async\s+|pub\s+)*(?:func|def|class|type|interface|struct|enum|message|service|rpc|const|var|let|function|CREATE|ALTER|DROP|import|from|use|require|#include)\b`)

// generatedSummary lists what a generated file's patch defines.
func (f *File) generatedSummary() string {
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(f.head(), "\n") + " — generated: the definitions that changed\n")
	var shown []string
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.op != ' ' && definition.MatchString(l.text) {
				shown = append(shown, string(l.op)+clipLine(strings.TrimSpace(l.text)))
			}
		}
	}
	b.WriteString(list(shown, "definitions"))
	return b.String()
}

// list writes lines up to the cap, and how many are left out.
func list(lines []string, what string) string {
	var b strings.Builder
	for i, l := range lines {
		l = clipLine(l)
		if b.Len()+len(l) > maxSummary {
			fmt.Fprintf(&b, "… and %d more %s\n", len(lines)-i, what)
			break
		}
		b.WriteString(l + "\n")
	}
	if len(lines) == 0 {
		fmt.Fprintf(&b, "(no %s changed)\n", what)
	}
	return b.String()
}
