package markdown

import (
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	box := func(n int, ticked bool) string { return map[bool]string{true: "[X]", false: "[_]"}[ticked] }
	for _, tc := range []struct{ in, want string }{
		{"# A *b* `c<d`", "<h1>A <em>b</em> <code>c&lt;d</code></h1>\n"},
		{"a <img src=x onerror=alert(1)>", "<p>a &lt;img src=x onerror=alert(1)&gt;</p>\n"},
		{"[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"},
		{"[x](https://a.b/?q=1&r=2)", "<p><a href=\"https://a.b/?q=1&amp;r=2\">x</a></p>\n"},
		{"[x](https://a.b/\"onclick=alert(1))", "<p><a href=\"https://a.b/&#34;onclick=alert(1\">x</a>)</p>\n"},
		{"<details onclick=x><summary>s</summary>", "<details><summary>s</summary>\n"},
		{"- [ ] a\n- [x] b\n  more\n- c", "<ul>\n<li class=\"task\">[_] a</li>\n<li class=\"task\">[X] b more</li>\n<li>c</li>\n</ul>\n"},
		{"````suggestion\n```\n````", "<pre class=\"code suggestion\"><code>```\n</code></pre>\n"},
		{"x <!-- forge:key -->", "<p>x </p>\n"},
		{"> [!TIP]\n> a", "<blockquote class=\"alert tip\">\n<strong>Tip</strong>\n<p>a</p>\n</blockquote>\n"},
		{"> a\n> b", "<blockquote>\n<p>a\nb</p>\n</blockquote>\n"},
	} {
		if got := string(HTML(tc.in, box)); got != tc.want {
			t.Errorf("HTML(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

// Nothing of a text may become a tag but the few that are allowed.
func FuzzHTML(f *testing.F) {
	f.Add("# a\n- [ ] <b>\n```x\n<script>\n```\n|a|\n|-|\n> <details open>")
	f.Add("`a` **b** [c](https://d) <summary onclick=e>")
	f.Fuzz(func(t *testing.T, text string) {
		out := string(HTML(text, func(int, bool) string { return "" }))
		for _, bad := range []string{"<script", "<img", "<iframe", "<a onclick", "<details o ", "href=\"javascript"} {
			if strings.Contains(strings.ToLower(out), bad) {
				t.Errorf("HTML(%q) has %q", text, bad)
			}
		}
	})
}
