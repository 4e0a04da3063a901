package deps

import (
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// keyword is an argument of setup() that names requirements.
var keyword = lazyregexp.New(`(?m)^[^#\n]*?\b(install_requires|tests_require|extras_require)\s*=\s*`)

// setupScript reads what a setup.py asks for, as far as it stands there in so many words:
// it is a program, and is not run.
func (f *finder) setupScript(p *Project, lists map[string]list) error {
	name := path.Join(p.Dir, "setup.py")
	if !f.has[name] {
		return nil
	}
	text, err := f.read(name)
	if err != nil {
		return err
	}
	var out []string
	for _, m := range keyword.FindAllSubmatchIndex(text, -1) {
		said := string(text[m[1]:])
		if string(text[m[2]:m[3]]) != "extras_require" {
			all, _ := literals(said)
			out = append(out, all...)
			continue
		}
		for rest, ok := strings.CutPrefix(said, "{"); ok; {
			var extra string
			if extra, rest, ok = literal(rest); !ok {
				break
			}
			if rest, ok = strings.CutPrefix(blank(rest), ":"); !ok {
				break
			}
			all, after := literals(blank(rest))
			if after == "" {
				break
			}
			if testGroup.MatchString(extra) {
				out = append(out, all...)
			}
			rest, ok = strings.CutPrefix(blank(after), ",")
		}
	}
	if len(out) > 0 {
		p.Inputs = append(p.Inputs, name)
		lists[name] = list{text: p.fromRegistries(strings.Join(out, "\n") + "\n")}
	}
	return nil
}

// literals are the texts of a list at the front, and what follows it; nothing when there is
// anything else in it.
func literals(said string) (out []string, rest string) {
	end := map[bool]string{true: "]", false: ")"}[strings.HasPrefix(said, "[")]
	if said == "" || !slices.Contains([]string{"[", "("}, said[:1]) {
		return nil, ""
	}
	for rest = said[1:]; ; {
		if after, ok := strings.CutPrefix(blank(rest), end); ok {
			return out, after
		}
		text, after, ok := literal(rest)
		if !ok || strings.ContainsAny(text, "\\\n") {
			return nil, ""
		}
		out = append(out, text)
		after = blank(after)
		if rest, ok = strings.CutPrefix(after, ","); !ok && !strings.HasPrefix(after, end) {
			return nil, ""
		} else if !ok {
			rest = after
		}
	}
}

// literal is a text in quotation marks at the front, and what follows it.
func literal(said string) (text, rest string, ok bool) {
	said = blank(said)
	if said == "" || said[0] != '"' && said[0] != '\'' || strings.HasPrefix(said, `"""`) || strings.HasPrefix(said, "'''") {
		return "", "", false
	}
	return strings.Cut(said[1:], said[:1])
}

// blank leaves out spaces and comments at the front.
func blank(said string) string {
	for {
		said = strings.TrimLeft(said, " \t\r\n")
		if !strings.HasPrefix(said, "#") {
			return said
		}
		_, said, _ = strings.Cut(said, "\n")
	}
}
