// Package secrets finds secrets in what is about to leave: in commits and their
// messages before they are pushed, and in texts before they are posted.
//
// It knows the shapes of credentials (rules.toml), and what a name says is secret where the
// value looks drawn by chance (named.go), also in base64 and in hexadecimal (encoded.go) and
// in UTF-16; it passes over what is plainly made up (plausible.go). Secrets that the caller
// names are found exactly, in the same forms and in parts (own.go). A hit names file, line
// and rule, never the secret.
//
// It opens no archives and nothing that is compressed, and reads no other codings: who wants
// to hide a secret can. It is there for those that are left in a text by mistake.
//
// It is pure and stores nothing.
package secrets
