package check

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"

	"forge/pipeline"
)

// Limits of the list of what is covered too little.
const (
	maxGaps      = 30  // entries that are listed
	maxGapSource = 200 // files whose functions are looked at
)

// measure says how much of the code the tests ran, and where it is too little. The
// source is read for it, so that the tree must be there still.
func (c *checker) measure(ctx context.Context) error {
	c.report.Coverage = c.coverage()
	return c.gaps(ctx, c.report.Coverage)
}

// gaps lists what is covered less than the settings ask for: functions in Go files
// that the change touches, else whole files. The base commit's are nobody's task.
func (c *checker) gaps(ctx context.Context, out *pipeline.Coverage) error {
	threshold := c.o.Config.Coverage
	if out == nil || threshold <= 0 || c.o.Iteration == 0 {
		return nil
	}
	out.Threshold = threshold
	changed := c.patch.changed()
	read := 0
	for name, f := range c.cover.files {
		if testCode(name) {
			continue
		}
		total, hit := f.units()
		lines := changed[name]
		if len(lines) > 0 && len(f.blocks) > 0 && read < maxGapSource {
			read++
			found, ok, err := c.functionGaps(ctx, name, f, lines)
			if err != nil {
				return err
			}
			if ok {
				out.Under = append(out.Under, found...)
				continue
			}
		}
		if per := percent(hit, total); per >= 0 && per < threshold {
			out.Under = append(out.Under, pipeline.CoverageGap{File: name, Lines: per, Changed: len(lines) > 0})
		}
	}
	slices.SortFunc(out.Under, func(a, b pipeline.CoverageGap) int {
		if a.Changed != b.Changed {
			if a.Changed {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Lines, b.Lines), cmp.Compare(a.File, b.File), a.Line-b.Line)
	})
	if more := len(out.Under) - maxGaps; more > 0 {
		out.Under, out.More = slices.Clip(out.Under[:maxGaps]), more
	}
	return nil
}

// functionGaps lists the functions of a Go file that are covered too little. A file
// that cannot be read or parsed is not ok.
func (c *checker) functionGaps(ctx context.Context, name string, f *fileCover, changed []int) (out []pipeline.CoverageGap, ok bool, err error) {
	data, err := c.ws.Read(ctx, name)
	if err != nil {
		return nil, false, ctx.Err()
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path.Base(name), data, parser.SkipObjectResolution)
	if err != nil {
		return nil, false, nil
	}
	for _, d := range file.Decls {
		fn, isFunc := d.(*ast.FuncDecl)
		if !isFunc || fn.Body == nil {
			continue
		}
		from, to := set.Position(fn.Pos()), set.Position(fn.End())
		total, hit := 0, 0
		for at, b := range f.blocks {
			if before(from, at.line, at.col) && before(token.Position{Line: at.endLine, Column: at.endCol}, to.Line, to.Column) {
				total += b.statements
				if b.ran {
					hit += b.statements
				}
			}
		}
		if per := percent(hit, total); per >= 0 && per < c.o.Config.Coverage {
			out = append(out, pipeline.CoverageGap{File: name, Function: functionName(fn), Line: from.Line, Lines: per,
				Changed: slices.ContainsFunc(changed, func(n int) bool { return n >= from.Line && n <= to.Line })})
		}
	}
	return out, true, nil
}

// before reports whether a position is not after a line and column.
func before(p token.Position, line, col int) bool {
	return p.Line < line || p.Line == line && p.Column <= col
}

// functionName is a function as people write it: "F", or "Type.Method".
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch inner := t.(type) {
		case *ast.StarExpr:
			t = inner.X
		case *ast.IndexExpr:
			t = inner.X
		case *ast.IndexListExpr:
			t = inner.X
		case *ast.Ident:
			return inner.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
