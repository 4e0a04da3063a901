package markdown

import (
	"strings"
	"testing"
)

func TestHTML(t *testing.T) {
	box := func(n int, ticked bool) string { return map[bool]string{true: "[X]", false: "[_]"}[ticked] }
	for _, tc := range []struct{ in, want string }{
		{"# A *b* `c<d`", "<h1>A <em>b</em> <code>c&lt;d</code></h1>\n"},
		{"a <img src=x onerror=alert(1)>", "<p>a &lt;img src=&#34;x&#34; onerror=&#34;alert(1)&#34;&gt;</p>\n"},
		{"[x](javascript:alert(1))", "<p><a href=\"\">x</a></p>\n"},
		{"[x](https://a.b/?q=1&r=2)", "<p><a href=\"https://a.b/?q=1&amp;r=2\">x</a></p>\n"},
		{"<details open onclick=x><summary>s</summary>\n\n**a**\n\n</details>", "<details open=\"\"><summary>s</summary>\n<p><strong>a</strong></p>\n</details>"},
		{"- [ ] a\n- [x] b\n  more\n- c", "<ul>\n<li class=\"task\">[_] a</li>\n<li class=\"task\">[X] b<br>\nmore</li>\n<li>c</li>\n</ul>\n"},
		{"````suggestion\n```\n````", "<pre><code class=\"language-suggestion\">```\n</code></pre>\n"},
		{"x <!-- forge:key -->", "<p>x </p>\n"},
		{"x<br>y <sub>z</sub>", "<p>x<br>y <sub>z</sub></p>\n"},
		{"> [!TIP]\n> a `b`", "<blockquote class=\"alert tip\"><p><strong>Tip</strong></p>\n<p>a <code>b</code></p>\n</blockquote>\n"},
		{"> a\n> b", "<blockquote>\n<p>a<br>\nb</p>\n</blockquote>\n"},
		{"|a|b|\n|-|-|\n|c `x\\|y`|d|", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>c <code>x|y</code></td>\n<td>d</td>\n</tr>\n</tbody>\n</table>\n"},
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
		for _, bad := range []string{"<script", "<img o", "<iframe", "<a onclick", "<details o ", "href=\"javascript", "src=\"javascript"} {
			if strings.Contains(strings.ToLower(out), bad) {
				t.Errorf("HTML(%q) has %q", text, bad)
			}
		}
	})
}

func TestBoxes(t *testing.T) {
	text := "- [ ] a\n\n> 1. [x] b\n\n```\n- [ ] code\n```\n"
	if got := Boxes(text); len(got) != 2 || text[got[0]] != ' ' || text[got[1]] != 'x' {
		t.Errorf("%v", got)
	}
}

func TestSuggestion(t *testing.T) {
	for in, want := range map[string]string{
		"why:\r\n\r\n```suggestion\r\na\r\n  b\r\n```\r\n": "a\n  b\n",
		"````suggestion\n```\n````":                        "```\n", "```suggestion\n```": "", "```suggestion\na": "a\n",
	} {
		if got, ok := Suggestion(in); !ok || got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if _, ok := Suggestion("```go\nsuggestion\n```"); ok {
		t.Error("another block is taken for one")
	}
}
