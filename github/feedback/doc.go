// Package feedback reads what people did with what Forge said: their words (by a table
// of phrases in many languages, words.txt), and whose doings count. It is pure, and
// stores nothing.
package feedback
