// Package markdown reads the Markdown of issues and comments as GitHub does, for the pages
// and the buttons of the local GitHub.
package markdown

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	markup "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// HTML renders a text. Of its own HTML it lets through details, summary, br and sub,
// without attributes but open. box renders the nth box of a task list.
func HTML(source string, box func(n int, ticked bool) string) template.HTML {
	r := &page{box: box}
	var out strings.Builder
	doc := parse(source)
	_ = ast.Walk(doc, mark([]byte(source)))
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(markup.WithHardWraps(), renderer.WithNodeRenderers(util.Prioritized(r, 1))))
	if err := md.Renderer().Render(&out, []byte(source), doc); err != nil {
		return template.HTML(html.EscapeString(err.Error())) // a Builder never fails
	}
	return template.HTML(out.String()) //nolint:gosec // goldmark escapes what it does not know; a text's own tags go through allowed
}

func parse(source string) ast.Node {
	return goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader([]byte(source)))
}

// Suggestion is the content of the first suggestion block. It ends with a line end, unless it
// is empty.
func Suggestion(source string) (content string, ok bool) {
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, is := n.(*ast.FencedCodeBlock); is && string(block.Language([]byte(source))) == "suggestion" {
			content, ok = string(block.Lines().Value([]byte(source))), true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	content = strings.ReplaceAll(content, "\r\n", "\n")
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return content, ok
}

// Boxes returns where the marks of a text's task boxes stand, a space or an x each.
func Boxes(source string) (at []int) {
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && n.Kind() == east.KindTaskCheckBox {
			at = append(at, n.Parent().Lines().At(0).Start+1)
		}
		return ast.WalkContinue, nil
	})
	return at
}

// alerts are GitHub's highlighted quotes, by their first line.
var alerts = map[string]string{"[!NOTE]": "Note", "[!TIP]": "Tip", "[!IMPORTANT]": "Important", "[!WARNING]": "Warning", "[!CAUTION]": "Caution"}

// mark gives nodes what the style sheet knows them by.
func mark(source []byte) ast.Walker {
	return func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case east.KindTaskCheckBox:
			n.Parent().Parent().SetAttributeString("class", []byte("task"))
		case ast.KindBlockquote:
			first, is := n.FirstChild().(*ast.Paragraph)
			if !is {
				break
			}
			line := first.Lines().At(0)
			kind := alerts[strings.TrimSpace(string(line.Value(source)))]
			if kind == "" {
				break
			}
			n.SetAttributeString("class", []byte("alert "+strings.ToLower(kind)))
			for c, is := first.FirstChild().(*ast.Text); is && c.Segment.Start < line.Stop; c, is = first.FirstChild().(*ast.Text) {
				first.RemoveChild(first, c)
			}
			title, label := ast.NewParagraph(), ast.NewEmphasis(2)
			label.AppendChild(label, ast.NewString([]byte(kind)))
			title.AppendChild(title, label)
			n.InsertBefore(n, first, title)
		}
		return ast.WalkContinue, nil
	}
}

// page renders what GitHub's pages have and goldmark has not.
type page struct {
	box   func(int, bool) string
	boxes int
}

func (p *page) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(east.KindTaskCheckBox, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			fmt.Fprintf(w, "%s ", p.box(p.boxes, n.(*east.TaskCheckBox).IsChecked))
			p.boxes++
		}
		return ast.WalkContinue, nil
	})
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			allowed(w, string(n.(*ast.RawHTML).Segments.Value(source)))
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block := n.(*ast.HTMLBlock); entering {
			text := string(block.Lines().Value(source))
			if block.HasClosure() {
				text += string(block.ClosureLine.Value(source))
			}
			allowed(w, text)
		}
		return ast.WalkContinue, nil
	})
}

// allowed writes the tags of a text that are let through, and the others as text; comments go.
func allowed(w util.BufWriter, source string) {
	for z := html.NewTokenizer(strings.NewReader(source)); z.Next() != html.ErrorToken; {
		token := z.Token()
		switch token.Data {
		case "details", "summary", "br", "sub":
			token.Attr = slices.DeleteFunc(token.Attr, func(a html.Attribute) bool { return a.Key != "open" })
			fmt.Fprint(w, token)
		default:
			switch {
			case token.Type == html.TextToken:
				fmt.Fprint(w, html.EscapeString(token.Data))
			case token.Type != html.CommentToken:
				fmt.Fprint(w, html.EscapeString(token.String()))
			}
		}
	}
}
