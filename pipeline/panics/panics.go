// Package panics makes a panic the error of the function in which it happens, so that one thing which the
// program cannot deal with does not end all the others.
package panics

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// AsError is deferred: where what it names panics, that is logged with its stack, and is what err
// points to.
func AsError(ctx context.Context, log *slog.Logger, err *error, what string) {
	if p := recover(); p != nil {
		log.ErrorContext(ctx, what+" panicked", "error", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s panicked: %v; the server's log has the stack", what, p)
	}
}
