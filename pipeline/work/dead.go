package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// DeadLetter is something that was tried too often and is left to a human.
type DeadLetter struct {
	ID       string    `json:"id"`            // "delivery/GUID" or "job/NUMBER"
	Run      int64     `json:"run,omitempty"` // of a job
	Attempts int       `json:"attempts"`
	Error    string    `json:"error"` // of the last attempt
	At       time.Time `json:"at"`    // when the delivery came in, or the job was given up
}

// maxDead is how many dead letters of each kind are listed.
const maxDead = 1000

// Dead lists dead letters: deliveries, then jobs of runs whose advancing broke
// down. The engine need not be started, but River's tables must be there.
func (e *Engine) Dead(ctx context.Context) ([]DeadLetter, error) {
	deliveries, err := e.store.DeadDeliveries(ctx, maxDead)
	if err != nil {
		return nil, fmt.Errorf("list dead deliveries: %w", err)
	}
	var out []DeadLetter
	for _, d := range deliveries {
		out = append(out, DeadLetter{ID: "delivery/" + d.GUID, Attempts: d.Attempts, Error: d.Error, At: d.Received})
	}
	if e.adder == nil {
		return out, nil
	}
	var jobs *river.JobListResult
	err = e.store.Tx(ctx, func(ctx context.Context, tx *Tx) (err error) {
		jobs, err = e.adder.JobListTx(ctx, tx, river.NewJobListParams().Kinds(advance{}.Kind()).States(rivertype.JobStateDiscarded).First(maxDead))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list dead jobs: %w", err)
	}
	for _, j := range jobs.Jobs {
		d := DeadLetter{ID: fmt.Sprintf("job/%d", j.ID), Attempts: j.Attempt}
		var args advance
		if err := json.Unmarshal(j.EncodedArgs, &args); err == nil {
			d.Run = args.Run
		}
		if j.FinalizedAt != nil {
			d.At = *j.FinalizedAt
		}
		if n := len(j.Errors); n > 0 {
			d.Error = j.Errors[n-1].Error
		}
		out = append(out, d)
	}
	return out, nil
}

// Redrive tries a dead letter again, with all its tries.
func (e *Engine) Redrive(ctx context.Context, id string) error {
	kind, name, _ := strings.Cut(id, "/")
	switch kind {
	case "delivery":
		if err := e.store.RetryDelivery(ctx, name); err != nil {
			return fmt.Errorf("redrive %s: %w", id, err)
		}
		e.Wake()
		return nil
	case "job":
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			break
		}
		if err := e.redriveJob(ctx, n); err != nil {
			return fmt.Errorf("redrive %s: %w", id, err)
		}
		return nil
	}
	return fmt.Errorf("redrive %q: a dead letter's id looks like delivery/GUID or job/NUMBER", id)
}

// redriveJob puts a new job in the place of a dead one.
func (e *Engine) redriveJob(ctx context.Context, id int64) error {
	if e.adder == nil {
		return errors.New("the engine has no database drivers")
	}
	return e.store.Tx(ctx, func(ctx context.Context, tx *Tx) error {
		j, err := e.adder.JobGetTx(ctx, tx, id)
		if err != nil {
			return err
		}
		var args advance
		if j.State != rivertype.JobStateDiscarded || json.Unmarshal(j.EncodedArgs, &args) != nil {
			return fmt.Errorf("the job is %s, not dead", j.State)
		}
		if _, err := e.adder.JobDeleteTx(ctx, tx, id); err != nil {
			return err
		}
		return e.enqueue(ctx, tx, args.Run, laneNext, args.Part)
	})
}
