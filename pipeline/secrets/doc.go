// Package secrets finds secrets in what is about to leave: in commits and their
// messages before they are pushed, and in texts before they are posted.
//
// It knows the shapes of credentials (rules.go), and what a name says is secret where the
// value looks drawn by chance (named.go). It looks at them in base64, in
// hexadecimal, in escapes, in pieces and backwards, in UTF-16 and gzip, too, and passes over what is plainly made up
// (plausible.go). Secrets that the caller names are found exactly, in the same forms
// and in parts (own.go). A hit names file, line and rule, never the secret.
//
// It is pure and stores nothing.
package secrets
