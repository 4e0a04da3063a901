package record

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Holdout says whether a run works without what Forge has learnt, so that what the memory
// as a whole is worth can be told. It is drawn when the run begins, and holds to its end.
type Holdout struct {
	Share float64 `json:"share"`         // the probability with which it was drawn
	Out   bool    `json:"out,omitempty"` // the run works without
}

// DrawHoldout draws whether a run works without what was learnt; nil when the share is 0.
// It follows from the run's number and the key of its first event: drawn again, it is the
// same.
func DrawHoldout(share float64, run int64, key string) *Holdout {
	if !(share > 0) {
		return nil
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "holdout/%s", key)
	return &Holdout{Share: share, Out: rand.New(rand.NewPCG(h.Sum64(), uint64(run))).Float64() < share}
}
