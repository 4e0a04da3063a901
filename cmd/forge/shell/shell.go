// Package shell is what the commands of the program have in common: how they refuse
// words, read the configuration, log, and open the database.
package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	Done    = 0
	Failed  = 1
	Misused = 2
	Waiting = 3 // for a human
)

// ExitError is an error with an exit code of its own. Without Err it is silent.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// ExitCode is the code of what a command returned, and what is to be shown of it.
func ExitCode(err error) (code int, shown error) {
	var coded *ExitError
	switch {
	case err == nil:
		return Done, nil
	case errors.As(err, &coded):
		return coded.Code, coded.Err
	}
	return Failed, err
}

// Usage is the error of who typed something wrong.
func Usage(format string, args ...any) error {
	return &ExitError{Code: Misused, Err: fmt.Errorf(format, args...)}
}

// NoArgs wants no arguments; it and [Args] are cobra's checks with our exit code.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage("%s takes no arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

// Args wants n arguments.
func Args(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return Usage("%s takes %d argument(s), got %d: %s", cmd.CommandPath(), n, len(args), cmd.UseLine())
		}
		return nil
	}
}

// KnownCommand refuses words that are no command, and names the nearest one.
func KnownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	near := cmd.SuggestionsFor(args[0])
	slices.SortStableFunc(near, func(a, b string) int { return len(a) - len(b) }) // "serv" is rather serve than servers
	if len(near) > 0 {
		hint = fmt.Sprintf(" Did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	return Usage("there is no command %q.%s\nSee `%s --help`.", args[0], hint, cmd.CommandPath())
}

// IsTerminal reports whether people watch what is written.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Progress returns what shows how far a command is, in one line, and what ends that; on
// what is no terminal they do nothing.
func Progress(out io.Writer) (show func(format string, args ...any), done func()) {
	if !IsTerminal(out) {
		return func(string, ...any) {}, func() {}
	}
	const clear = "\r\x1b[K"
	return func(format string, args ...any) { fmt.Fprintf(out, clear+format, args...) }, func() { fmt.Fprint(out, clear) }
}
