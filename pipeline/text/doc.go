// Package text makes text fit for where it goes: what a model or a person wrote
// becomes a commit message that GitHub acts on in no way. It is pure, stores
// nothing, and imports nothing of the program, so that everybody can use it.
package text
