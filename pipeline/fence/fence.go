// Package fence keeps a process from having an effect that it has lost the right to
// without knowing it: one that stood still, or was cut off, while another took its work
// over. What has effects looks just before each. It stores nothing.
package fence

import "context"

type key struct{}

// With returns a context of work that is one's own for as long as check returns nil. It
// is asked often and from several goroutines, and has to cost nothing when all is well.
func With(ctx context.Context, check func() error) context.Context {
	return context.WithValue(ctx, key{}, check)
}

// Check returns why the work of a context is not one's own any more; nil while it is, and
// for a context of no such work.
func Check(ctx context.Context) error {
	if check, ok := ctx.Value(key{}).(func() error); ok {
		return check()
	}
	return nil
}
