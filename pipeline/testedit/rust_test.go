package testedit

import (
	"strings"
	"testing"
)

const rustBase = `//! Sums.
use std::fmt;

#[cfg(test)]
macro_rules! same { ($a:expr) => { $a }; }

/// Adds, as in "#[test]".
pub fn total(xs: &[i64]) -> i64 { xs.iter().sum() }

mod inner {
    pub struct Cell<'a> { c: &'a char }
    impl<'a> Cell<'a> {
        pub fn open(&self) -> bool { *self.c == '{' }
        #[cfg(all(test, unix))]
        fn peek(&self) -> char { *self.c }
    }
    #[cfg(test)]
    mod tests {
        #[test]
        fn opens() { assert!(super::Cell { c: &'{' }.open()); }
    }
}

#[cfg(any(test, feature = "x"))]
pub fn both() -> &'static str { r#"} #[test] fn"# }

/* a /* nested */ #[test] */
#[cfg(test)]
mod tests {
    use super::*;

    /// Holds the sum.
    #[test]
    fn sums() { assert_eq!(total(&[8, 9]), 17); }
}
`

func TestInside(t *testing.T) {
	t.Parallel()
	spans, ok := Inside("src/lib.rs", []byte(rustBase))
	var got []string
	for _, s := range spans {
		first, _, _ := strings.Cut(rustBase[s.From:s.To], "\n")
		got = append(got, first)
	}
	want := "#[cfg(test)]|#[cfg(all(test, unix))]|#[cfg(test)]|#[cfg(test)]"
	if strings.Join(got, "|") != want || !ok {
		t.Errorf("Inside: %q %v, want %s", got, ok, want)
	}
	if spans, ok := Inside("src/x.rs", []byte("#![cfg(test)]\nfn a() {}\n")); !ok || len(spans) != 1 || spans[0].From != 0 {
		t.Errorf("Inside of a file for tests alone: %v %v", spans, ok)
	}
	for _, broken := range []string{"fn a() {", "#[cfg(test)] mod tests { fn a() { }"} {
		if spans, ok := Inside("src/x.rs", []byte(broken)); ok {
			t.Errorf("Inside(%q) = %v, want that it cannot be read", broken, spans)
		}
	}
}

// The head's file is given the base's tests, where they stood, and loses its own.
func TestGraft(t *testing.T) {
	t.Parallel()
	edit := strings.NewReplacer("xs.iter().sum()", "xs.len() as i64", "assert_eq!(total(&[8, 9]), 17);", "assert!(total(&[8, 9]) > 0);",
		"use super::*;", "use super::*;\n    fn total(_: &[i64]) -> i64 { 17 }", "assert!(super::Cell", "assert!(true || super::Cell", "($a:expr) => { $a }", "($a:expr) => { 17 }")
	for _, c := range []struct{ name, now, want string }{
		{"edited", edit.Replace(rustBase), strings.Replace(rustBase, "xs.iter().sum()", "xs.len() as i64", 1)},
		{"added", strings.Replace(rustBase, "use std::fmt;\n", "use std::fmt;\n#[cfg(test)] use fake::total;", 1), rustBase},
		{"removed", strings.Replace(rustBase, "#[cfg(test)]\nmacro_rules! same { ($a:expr) => { $a }; }\n", "", 1),
			strings.Replace(rustBase, "#[cfg(test)]\nmacro_rules! same { ($a:expr) => { $a }; }\n", "", 1) + "\n#[cfg(test)]\nmacro_rules! same { ($a:expr) => { $a }; }\n"},
	} {
		got, same, ok := Graft("src/lib.rs", []byte(rustBase), []byte(c.now))
		if same || !ok || strings.ReplaceAll(string(got), "\n", "") != strings.ReplaceAll(c.want, "\n", "") {
			t.Errorf("%s: same %v, ok %v, got\n%s\nwant\n%s", c.name, same, ok, got, c.want)
		}
	}
	if _, same, ok := Graft("src/lib.rs", []byte(rustBase), []byte(strings.Replace(rustBase, "xs.iter().sum()", "0", 1))); !same || !ok {
		t.Errorf("the product alone edited: same %v, ok %v", same, ok)
	}
	if _, _, ok := Graft("src/lib.rs", []byte(rustBase), []byte(strings.NewReplacer("mod inner {", "mod other {").Replace(rustBase))); ok {
		t.Error("tests of a module that is gone have a place")
	}
}

func TestCompareRust(t *testing.T) {
	t.Parallel()
	now := strings.NewReplacer("assert_eq!(total(&[8, 9]), 17);", "assert!(total(&[8, 9]) > 0);", "fn opens", "fn unlocks", "use super::*;", "use super::*;\n    fn total(_: &[i64]) -> i64 { 17 }").Replace(rustBase)
	got := List(Compare([]File{{Old: "src/lib.rs", New: "src/lib.rs", Was: []byte(rustBase), Is: []byte(now)}}))
	want := "src/lib.rs: tests::sums (edited; how it does as it stood is not known), src/lib.rs: tests::total (added; tests of the base run with it)"
	if got != want {
		t.Errorf("Compare:\n%s\nwant\n%s", got, want)
	}
	whole := Compare([]File{{Old: "tests/a.rs", New: "tests/a.rs", Was: []byte("fn near() -> i64 { 1 }\n#[test]\nfn a() { near(); }\n"), Is: []byte("fn near() -> i64 { 9 }\n#[test]\nfn a() { near(); }\n")}})
	if List(whole) != "tests/a.rs: near (edited; it is no test itself, tests of the base use it)" {
		t.Errorf("Compare of a file of tests: %s", List(whole))
	}
}
