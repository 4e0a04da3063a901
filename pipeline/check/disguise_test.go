package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Covers T8: what looks like a comment, and is code, is told; odd but honest files are not.
func TestDisguised(t *testing.T) {
	t.Parallel()
	const looks, other = "holds characters that make it look like other code than it is", "by which it is other code than it looks"
	for _, c := range []struct {
		what, file, was, is, want string
	}{
		{"a lone carriage return", "a.py", "x = 1\n", "# the sum\rif t: x = 2\nx = 1\n", looks},
		{"after a form feed", "a.py", "x = 1\n", "# the sum\x0c\rif t: x = 2\nx = 1\n", looks},
		{"a line separator", "a.js", "let x;\n", "// the sum\u2028if (t) x = 2;\nlet x;\n", looks},
		{"in Ruby", "a.rb", "x = 1\n", "# the sum\rx = 2 if t\nx = 1\n", looks},
		{"a turned comment", "a.js", "let x;\n", "/* \u202e } \u2066if (t)\u2069 */\nlet x;\n", looks},
		{"UTF-7", "a.py", "x = 1\n", "# coding: utf-7\nx = 1\n", other},
		{"escapes", "a.py", "#!/usr/bin/python3\nx = 1\n", "#!/usr/bin/python3\n# vim: set fileencoding=unicode_escape :\nx = 1\n", other},
		{"a line that moves up", "a.py", "#!/usr/bin/python3\n\n# coding: utf-7\nx = 1\n", "#!/usr/bin/python3\n# coding: utf-7\nx = 1\n", other},
		{"as it was before", "a.py", "# coding: utf-7\nx = 1\n", "# coding: utf-7\nx = 2\n", ""},
		{"on the third line", "a.py", "x = 1\n", "x = 1\ny = 2\n# coding: utf-7\n", ""},
		{"UTF-8 and Latin-1", "a.py", "x = 1\n", "# -*- coding: utf-8 -*-\n# coding: iso-8859-15\nx = 1\n", ""},
		{"lines of Windows", "a.py", "x = 1\r\n", "x = 1\r\n# y\r\ny = 2\r\n", ""},
		{"Go ends no line there", "a.go", "package a\n", "package a\n\n// a\rb\n", ""},
		{"a document", "a.md", "a\n", "a\u2028b\n", ""},
		{"Arabic", "a.py", "x = 1\n", "x = 'مرحبا\u200f'\n", ""},
	} {
		old, now := strings.SplitAfter(c.was, "\n"), strings.SplitAfter(c.is, "\n")
		old, now = old[:len(old)-1], now[:len(now)-1]
		text := fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1,%d +1,%d @@\n-%s+%s",
			c.file, len(old), len(now), strings.Join(old, "-"), strings.Join(now, "+"))
		p, err := parsePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		ch := &checker{patch: p}
		ch.disguised(nil, func(name string) ([]byte, bool) { return []byte(c.is), name == c.file })
		var got []string
		for _, f := range ch.reached {
			got = append(got, f.Message)
		}
		if len(got) > 1 || c.want == "" && len(got) > 0 || c.want != "" && !slices.ContainsFunc(got, func(m string) bool { return strings.Contains(m, c.want) }) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
