package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forge/pipeline"
)

// foreignAgain is when a run that a newer version works on is looked at again.
const foreignAgain = time.Minute

// foreignError says that a newer version writes a run's log: what it wrote there is not
// known here, and what would be done about the run as it seems to stand might be wrong.
type foreignError struct {
	run int64
	of  pipeline.EventType
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("run %d has events (%s) of a newer Forge, which this version does not know: that one works on it; upgrade this server", e.run, e.of)
}

func isForeign(err error) bool {
	var f *foreignError
	return errors.As(err, &f)
}

// knowing is a store that gives no runs to work on but those whose every event is known.
type knowing struct{ Store }

func (s knowing) Load(ctx context.Context, id int64) (*pipeline.Run, error) {
	run, err := s.Store.Load(ctx, id)
	if err == nil && run.Unknown != "" {
		return nil, &foreignError{run: id, of: run.Unknown}
	}
	return run, err
}

// leave lets a run alone for a while: it stays due, for a server that knows its events.
func (e *Engine) leave(why *foreignError) {
	if _, known := e.foreign.Swap(why.run, e.now().Add(foreignAgain)); !known {
		e.Logger.Error("a run is left to a newer server", logRun, why.run, logError, why)
	}
}

// left reports whether a run is let alone now.
func (e *Engine) left(run int64) bool {
	until, ok := e.foreign.Load(run)
	return ok && e.now().Before(until.(time.Time))
}
