package main

import (
	"go/ast"
	"regexp"
	"testing"
)

// Expressions that are compiled at their first use are right all the same.
func TestRulePatterns(t *testing.T) {
	t.Parallel()
	consts := textConstants(t)
	checked := 0
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "New" {
				return true
			}
			if pkg, ok := fun.X.(*ast.Ident); !ok || pkg.Name != "lazyregexp" {
				return true
			}
			if expr, ok := constant(call.Args[0], consts[s.dir]); ok {
				checked++
				if _, err := regexp.Compile(expr); err != nil {
					t.Errorf("%s: %v", s.set.Position(call.Pos()), err)
				}
			}
			return true
		})
	}
	if checked < 250 {
		t.Errorf("%d expressions were looked at, want 250 at least", checked)
	}
}
