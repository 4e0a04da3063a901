package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"forge/cmd/forge/monitoring"
)

// logCalls are slog's methods, with the place of their first key.
var logCalls = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "DebugContext": 2, "InfoContext": 2, "WarnContext": 2,
	"ErrorContext": 2, "Log": 3, "With": 0}

// logger is how loggers are called.
var loggerName = regexp.MustCompile(`(?i)^(log|logger)$`)

// Log lines carry the keys of the catalogue and no others, so that people can
// search for them; and every key of the catalogue is in use.
func TestLogKeys(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for line := range strings.SplitSeq(monitoring.LogKeys, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 && strings.Contains(cells[1], "`") {
			keys[strings.Trim(cells[1], " `")] = false
		}
	}
	if len(keys) < 10 {
		t.Fatalf("the catalogue has %d keys", len(keys))
	}
	calls := 0
	consts := textConstants(t)
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !isLogger(sel.X) {
				return true
			}
			first, ok := logCalls[sel.Sel.Name]
			if !ok {
				return true
			}
			calls++
			where := s.set.Position(call.Pos()).String()
			if call.Ellipsis != token.NoPos || first > len(call.Args) || (len(call.Args)-first)%2 != 0 {
				t.Errorf("%s: the keys and values cannot be told", where)
				return true
			}
			for i := first; i < len(call.Args); i += 2 {
				key, ok := constant(call.Args[i], consts[s.dir])
				switch _, known := keys[key]; {
				case !ok:
					t.Errorf("%s: a key is neither a text nor a constant", where)
				case !known:
					t.Errorf("%s: the key %q is not in the catalogue (monitoring/log-keys.md)", where, key)
				default:
					keys[key] = true
				}
			}
			return true
		})
	}
	if calls < 50 {
		t.Errorf("found %d calls of loggers only", calls)
	}
	for key, used := range keys {
		if !used {
			t.Errorf("nobody uses the key %q of the catalogue", key)
		}
	}
}

// isLogger reports whether an expression is called like a logger: log, s.log, e.Logger.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return loggerName.MatchString(x.Name)
	case *ast.SelectorExpr:
		return loggerName.MatchString(x.Sel.Name)
	}
	return false
}

// constant is the text of literals and constants of the package, also put together.
func constant(x ast.Expr, consts map[string]string) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return s, x.Kind == token.STRING && err == nil
	case *ast.Ident:
		s, ok := consts[x.Name]
		return s, ok
	case *ast.ParenExpr:
		return constant(x.X, consts)
	case *ast.BinaryExpr:
		left, ok := constant(x.X, consts)
		right, also := constant(x.Y, consts)
		return left + right, ok && also && x.Op == token.ADD
	}
	return "", false
}

// textConstants are the packages' constants that are texts, by directory and name.
func textConstants(t *testing.T) map[string]map[string]string {
	t.Helper()
	sources(t) // that they can be read
	return constants()
}

var constants = sync.OnceValue(func() map[string]map[string]string {
	out := map[string]map[string]string{}
	list, _ := parsed()
	for range 2 { // some are made of others
		for _, s := range list {
			if out[s.dir] == nil {
				out[s.dir] = map[string]string{}
			}
			for _, d := range s.file.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.CONST {
					continue
				}
				for _, spec := range g.Specs {
					v := spec.(*ast.ValueSpec)
					for i := range v.Values {
						if text, ok := constant(v.Values[i], out[s.dir]); ok {
							out[s.dir][v.Names[i].Name] = text
						}
					}
				}
			}
		}
	}
	return out
})
