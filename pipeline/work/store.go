package work

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// Tx is a transaction of the store; the engine adds its jobs to it.
type Tx = sql.Tx

// Store is what the engine keeps its runs and deliveries in.
//
// An error that says that another writer came first has a method Conflict() bool,
// one that says that something does not exist NotFound() bool, and one that says
// that an issue has an active run ActiveRun() int64.
type Store interface {
	runs
	places
	leases
	inbox

	// Turn counts one more of something in a place, and returns how many that makes
	// in the window, and when that began.
	Turn(ctx context.Context, place string, now time.Time, window time.Duration) (int, time.Time, error)

	// Hasten makes the runs that are to be looked at later due at once.
	Hasten(ctx context.Context, now time.Time) error

	// PutOff lists the runs that are to be looked at later and whose wait begins with these
	// words, with the number of their last event.
	PutOff(ctx context.Context, now time.Time, waits string) ([][2]int64, error)
}

// runs is the event log and what is folded from it.
type runs interface {
	// CreateRun makes a run with its first event. With a key that is known it
	// returns the run that was made with it. An issue has one active run: the error
	// names it. also runs in the same transaction in every case without an error.
	CreateRun(ctx context.Context, key string, start pipeline.Start, at time.Time, trace string, also func(context.Context, *Tx, int64) error) (*pipeline.Run, error)

	// Append numbers the events, applies them to run, writes them, and marks the run
	// as due; events whose ID the run knows already are passed over. When another
	// writer came first it changes nothing and returns a conflict. also may be nil;
	// it runs in the same transaction, even when all events were passed over.
	Append(ctx context.Context, run *pipeline.Run, events []pipeline.Event, also func(context.Context, *Tx) error) error

	// Load returns the run as it stands.
	Load(ctx context.Context, id int64) (*pipeline.Run, error)

	// Events returns the run's events after the given one, in their order.
	Events(ctx context.Context, id, afterSeq int64) ([]pipeline.Event, error)

	// Find returns the run of an issue, a pull request or a branch of the
	// repository, whichever is set: the active one, else the newest.
	Find(ctx context.Context, repoID int64, issue, pull int, branch string) (int64, error)

	// Active returns the runs of a repository that have not ended.
	Active(ctx context.Context, repoID int64) ([]int64, error)

	// Followed returns runs with a pull request and an event since the given time,
	// newest first, those with smaller numbers than before (0: all); of one
	// repository, or of all (0).
	Followed(ctx context.Context, repoID int64, since time.Time, before int64, limit int) ([]int64, error)
}

// places are the names by which things of repositories are kept.
type places interface {
	// Names returns the names by which runs of a repository are kept, and the other
	// repositories whose runs are kept by a name.
	Names(ctx context.Context, id int64, name string) (names []string, others []int64, err error)

	// Rename brings all that is kept of a repository under the name that it has now, and
	// tells the runs of it that can go on, in one transaction, of which also is a part for
	// each of these. former is a name that it is said to have had. It returns the events.
	Rename(ctx context.Context, repo pipeline.Repo, former string, at time.Time, also func(context.Context, *Tx, *pipeline.Run) error) ([]pipeline.Event, error)
}

// leases say who is working on what, and what there is to work on.
type leases interface {
	// Lease takes the run's lease until now+ttl; false when another owner's is live.
	Lease(ctx context.Context, run int64, owner string, now time.Time, ttl time.Duration) (bool, error)

	// Renew prolongs the owner's lease to now+ttl; false when it is lost.
	Renew(ctx context.Context, run int64, owner string, now time.Time, ttl time.Duration) (bool, error)

	// Release ends the lease and clears the mark that the run is due; false, and
	// nothing is changed, when the run's last event is not seq or the lease is lost.
	Release(ctx context.Context, run int64, owner string, seq int64) (bool, error)

	// Postpone is Release, but the run is due again at until, or when an event arrives.
	Postpone(ctx context.Context, run int64, owner string, seq int64, until time.Time) (bool, error)

	// Drop ends the lease; the run stays due.
	Drop(ctx context.Context, run int64, owner string) error

	// Due returns runs that are due and have no live lease, longest due first; parts
	// are those that build modules of others.
	Due(ctx context.Context, now time.Time, limit int) (runs, parts []int64, err error)

	// ClearLeases ends all leases: a process that opens a database file is its one owner.
	ClearLeases(ctx context.Context) error
}

// inbox holds the deliveries.
type inbox interface {
	// Tx runs fn in a transaction, which is committed when it returns nil.
	Tx(ctx context.Context, fn func(context.Context, *Tx) error) error

	// Learn takes in signals that belong to no run.
	Learn(ctx context.Context, tx *Tx, signals []pipeline.Signal) error

	// WaitingDeliveries returns those whose time has come, in order of arrival.
	WaitingDeliveries(ctx context.Context, now time.Time, limit int) ([]record.Delivery, error)

	// FinishDelivery records what became of a delivery; quiet says that nothing did. False when it does not wait
	// any more, because it was finished before.
	FinishDelivery(ctx context.Context, tx *Tx, guid, outcome string, quiet bool, at time.Time) (bool, error)

	// FailDelivery records that a try failed, and why. It is tried again at next;
	// after the fifth try it is dead.
	FailDelivery(ctx context.Context, guid, why string, next time.Time) error

	// DeadDeliveries returns dead ones; their payloads need not be there.
	DeadDeliveries(ctx context.Context, limit int) ([]record.Delivery, error)

	// RetryDelivery lets a dead delivery wait again, with all its tries.
	RetryDelivery(ctx context.Context, guid string) error
}

func isConflict(err error) bool {
	var c interface{ Conflict() bool }
	return errors.As(err, &c) && c.Conflict()
}

func isNotFound(err error) bool {
	var n interface{ NotFound() bool }
	return errors.As(err, &n) && n.NotFound()
}
