// Package secrets finds secrets in what is about to leave: in commits and their
// messages before they are pushed, and in texts before they are posted.
//
// It knows the shapes of credentials (rules.go), and what a name says is secret where the
// value looks drawn by chance (named.go). It looks at
// them in base64 (also twice, or with something packed in it), base32, hexadecimal,
// numbers, escapes, pieces and backwards (disguise.go), in UTF-16, gzip, zlib, bzip2,
// zstd, zip, tar, PNG and PDF (unpack.go), and passes over what is plainly made up (plausible.go).
// Secrets that the caller names are found exactly, in the same forms and in parts
// (own.go). A hit names file, line and rule, never the secret.
//
// It does not open xz, 7z, rar and archives with a password, no more than 8 MiB of
// what is packed in a file, and four layers. It does not read codings that need a key or
// a guess: rot13, a85, b85, uuencode, base58, UTF-7 and UTF-32, EBCDIC, octal and binary
// digits, a token with a comment within, or one whose parts are far from one another.
//
// It is pure and stores nothing.
package secrets
