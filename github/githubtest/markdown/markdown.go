// Package markdown shows the Markdown of issues and comments on the local GitHub's pages.
package markdown

import (
	"fmt"
	"html"
	"html/template"
	"strings"

	"forge/pipeline/lazyregexp"
)

// HTML renders the Markdown that bots and people write: enough of it to read
// comfortably. Everything is escaped; the only HTML let through is details,
// summary and br. box renders the nth task-list box.
func HTML(text string, box func(n int, ticked bool) string) template.HTML {
	text = htmlComment.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	r := &renderer{box: box}
	r.blocks(strings.Split(text, "\n"))
	return template.HTML(r.out.String()) //nolint:gosec // built from escaped parts
}

var htmlComment = lazyregexp.New(`(?s)<!--.*?(?:-->|$)`)

type renderer struct {
	out   strings.Builder
	box   func(int, bool) string
	boxes int
	depth int
}

var (
	heading   = lazyregexp.New(`^(#{1,6})\s+(.*?)\s*#*$`)
	rule      = lazyregexp.New(`^ {0,3}(?:-{3,}|\*{3,}|_{3,})\s*$`)
	item      = lazyregexp.New(`^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$`)
	task      = lazyregexp.New(`^\[([ xX])\]\s+(.*)$`)
	divider   = lazyregexp.New(`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`)
	htmlBlock = lazyregexp.New(`^\s*</?(?:details|summary)\b[^>]*>`)
)

// maxDepth bounds nested quotes.
const maxDepth = 8

func (r *renderer) blocks(lines []string) {
	r.depth++
	defer func() { r.depth-- }()
	for i := 0; i < len(lines); {
		line := lines[i]
		fence, info := Fence(line)
		switch {
		case strings.TrimSpace(line) == "":
			i++
		case fence != "":
			i = r.code(lines, i, fence, info)
		case heading.MatchString(line):
			m := heading.FindStringSubmatch(line)
			fmt.Fprintf(&r.out, "<h%d>%s</h%d>\n", len(m[1]), inline(m[2]), len(m[1]))
			i++
		case rule.MatchString(line):
			r.out.WriteString("<hr>\n")
			i++
		case htmlBlock.MatchString(line):
			r.out.WriteString(htmlLine(line) + "\n")
			i++
		case strings.HasPrefix(line, ">") && r.depth < maxDepth:
			i = r.quote(lines, i)
		case item.MatchString(line):
			i = r.list(lines, i)
		case strings.Contains(line, "|") && i+1 < len(lines) && divider.MatchString(lines[i+1]) && strings.Contains(lines[i+1], "-"):
			i = r.table(lines, i)
		default:
			i = r.paragraph(lines, i)
		}
	}
}

func (r *renderer) code(lines []string, i int, fence, info string) int {
	class := "code"
	if info == "suggestion" {
		class = "code suggestion"
	}
	fmt.Fprintf(&r.out, "<pre class=%q><code>", class)
	for i++; i < len(lines); i++ {
		if f, rest := Fence(lines[i]); rest == "" && len(f) >= len(fence) && f[0] == fence[0] {
			i++
			break
		}
		r.out.WriteString(html.EscapeString(lines[i]) + "\n")
	}
	r.out.WriteString("</code></pre>\n")
	return i
}

// alerts are GitHub's highlighted quotes, by their first line.
var alerts = map[string]string{"[!NOTE]": "Note", "[!TIP]": "Tip", "[!IMPORTANT]": "Important", "[!WARNING]": "Warning", "[!CAUTION]": "Caution"}

func (r *renderer) quote(lines []string, i int) int {
	var inner []string
	for ; i < len(lines) && strings.HasPrefix(lines[i], ">"); i++ {
		inner = append(inner, strings.TrimPrefix(strings.TrimPrefix(lines[i], ">"), " "))
	}
	kind := ""
	if len(inner) > 0 {
		kind = alerts[strings.TrimSpace(inner[0])]
	}
	if kind == "" {
		r.out.WriteString("<blockquote>\n")
	} else {
		r.out.WriteString(`<blockquote class="alert ` + strings.ToLower(kind) + `">` + "\n<strong>" + kind + "</strong>\n")
		inner = inner[1:]
	}
	r.blocks(inner)
	r.out.WriteString("</blockquote>\n")
	return i
}

func (r *renderer) list(lines []string, i int) int {
	r.out.WriteString("<ul>\n")
	for i < len(lines) {
		m := item.FindStringSubmatch(lines[i])
		if m == nil {
			break
		}
		text := m[2]
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "  ") && !item.MatchString(lines[i]); i++ {
			text += " " + strings.TrimSpace(lines[i])
		}
		class := ""
		if len(m[1]) > 1 {
			class = ` class="deeper"`
		}
		if t := task.FindStringSubmatch(text); t != nil {
			fmt.Fprintf(&r.out, "<li class=\"task\">%s %s</li>\n", r.box(r.boxes, t[1] != " "), inline(t[2]))
			r.boxes++
			continue
		}
		fmt.Fprintf(&r.out, "<li%s>%s</li>\n", class, inline(text))
	}
	r.out.WriteString("</ul>\n")
	return i
}

func cells(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
	return strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
}

func (r *renderer) table(lines []string, i int) int {
	row := func(tag, line string) {
		r.out.WriteString("<tr>")
		for _, c := range cells(line) {
			fmt.Fprintf(&r.out, "<%s>%s</%s>", tag, inline(strings.ReplaceAll(strings.TrimSpace(c), "\x00", "|")), tag)
		}
		r.out.WriteString("</tr>\n")
	}
	r.out.WriteString("<table>\n")
	row("th", lines[i])
	for i += 2; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
		row("td", lines[i])
	}
	r.out.WriteString("</table>\n")
	return i
}

func (r *renderer) paragraph(lines []string, i int) int {
	start := i
	for i++; i < len(lines); i++ {
		f, _ := Fence(lines[i])
		if strings.TrimSpace(lines[i]) == "" || f != "" || heading.MatchString(lines[i]) || item.MatchString(lines[i]) ||
			htmlBlock.MatchString(lines[i]) || strings.HasPrefix(lines[i], ">") {
			break
		}
	}
	fmt.Fprintf(&r.out, "<p>%s</p>\n", inline(strings.Join(lines[start:i], "\n")))
	return i
}

var tagged = lazyregexp.New(`</?(?:details|summary|br)\b[^>]*>`)

// htmlLine lets the allowed tags through, without their attributes.
func htmlLine(line string) string {
	var b strings.Builder
	for {
		at := tagged.FindStringIndex(line)
		if at == nil {
			break
		}
		b.WriteString(inline(line[:at[0]]))
		tag := line[at[0]:at[1]]
		end := strings.IndexAny(tag, " />")
		if strings.HasPrefix(tag, "</") {
			end = 2 + strings.IndexAny(tag[2:], " />")
		}
		open := ""
		if strings.HasPrefix(tag, "<details open") {
			open = " open"
		}
		b.WriteString(tag[:end] + open + ">")
		line = line[at[1]:]
	}
	b.WriteString(inline(line))
	return b.String()
}

var (
	codeSpan = lazyregexp.New("`+[^`]+`+")
	link     = lazyregexp.New(`\[([^\]]*)\]\((https?://[^\s)]+|#[\w-]+|/[^\s)]*)\)`)
	bareURL  = lazyregexp.New(`(^|[\s(])(https?://[^\s<)]+)`)
	bold     = lazyregexp.New(`\*\*([^*]+)\*\*`)
	italic   = lazyregexp.New(`(^|[\s(])[*_]([^*_\s][^*_]*)[*_]([\s.,:;!?)]|$)`)
	strike   = lazyregexp.New(`~~([^~]+)~~`)
)

// inline renders one run of text. Code spans are set aside first.
func inline(text string) string {
	var codes []string
	text = strings.ReplaceAll(text, "\x01", "")
	text = codeSpan.ReplaceAllStringFunc(text, func(c string) string {
		codes = append(codes, "<code>"+html.EscapeString(strings.TrimSpace(strings.Trim(c, "`")))+"</code>")
		return fmt.Sprintf("\x01%d\x01", len(codes)-1)
	})
	text = html.EscapeString(text)
	text = strings.NewReplacer("&lt;br&gt;", "<br>", "&lt;br/&gt;", "<br>", "&lt;sub&gt;", "<sub>", "&lt;/sub&gt;", "</sub>", "&#39;", "'").Replace(text)
	text = link.ReplaceAllString(text, `<a href="$2">$1</a>`)
	text = bareURL.ReplaceAllString(text, `$1<a href="$2">$2</a>`)
	text = bold.ReplaceAllString(text, "<strong>$1</strong>")
	text = italic.ReplaceAllString(text, "$1<em>$2</em>$3")
	text = strike.ReplaceAllString(text, "<del>$1</del>")
	for i, c := range codes {
		text = strings.Replace(text, fmt.Sprintf("\x01%d\x01", i), c, 1)
	}
	return text
}

// Fence splits "```go" into its marks and its info string; the marks are
// empty when the line is no fence.
func Fence(line string) (marks, info string) {
	trimmed := strings.TrimLeft(line, " ")
	for _, ch := range []string{"`", "~"} {
		if n := len(trimmed) - len(strings.TrimLeft(trimmed, ch)); n >= 3 && len(line)-len(trimmed) < 4 {
			return trimmed[:n], strings.TrimSpace(trimmed[n:])
		}
	}
	return "", "\x00" // never an info string
}
