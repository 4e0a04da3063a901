package check

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
		got, same, ok := graft("src/lib.rs", []byte(rustBase), []byte(c.now))
		if same || !ok || strings.ReplaceAll(string(got), "\n", "") != strings.ReplaceAll(c.want, "\n", "") {
			t.Errorf("%s: same %v, ok %v, got\n%s\nwant\n%s", c.name, same, ok, got, c.want)
		}
	}
	if _, same, ok := graft("src/lib.rs", []byte(rustBase), []byte(strings.Replace(rustBase, "xs.iter().sum()", "0", 1))); !same || !ok {
		t.Errorf("the product alone edited: same %v, ok %v", same, ok)
	}
	if _, _, ok := graft("src/lib.rs", []byte(rustBase), []byte(strings.NewReplacer("mod inner {", "mod other {").Replace(rustBase))); ok {
		t.Error("tests of a module that is gone have a place")
	}
}
