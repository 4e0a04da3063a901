// Package feedback reads what people did with what Forge said or made, and stores
// nothing. Signals compares how a pull request stands now with what is known of it:
// threads answered, resolved or hidden (thread.go, click.go), suggestions applied or
// rewritten, code changed (history.go, lines.go), reviews, gaps and how the pull
// request ended (pull.go). What people say is read by a model, elsewhere, or is one of
// some phrases as a whole (words.go); else it is not known. It makes no call of its own: a
// Source does.
package feedback
