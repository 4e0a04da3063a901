//go:build e2e

package work

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/store/storetest"
)

// BenchmarkServers has one, two and four servers work on the same runs, on PostgreSQL:
// what a model and tests would take, a second a phase, is waited for. It tells how many
// times as fast more servers are than one; each has a database pool and four workers.
func BenchmarkServers(b *testing.B) {
	const runs, takes = 32, time.Second
	var alone time.Duration
	for _, servers := range []int{1, 2, 4} {
		b.Run(fmt.Sprint(servers), func(b *testing.B) {
			for b.Loop() {
				address := storetest.Postgres(b)
				opts := options(b)
				opts.Tick, opts.Watch = time.Second, time.Second // as a server has them
				opts.Executor = &fakePhases{do: func(ctx context.Context, _ *pipeline.Run, _ pipeline.Action, _ Emit) ([]pipeline.Event, error) {
					select {
					case <-time.After(takes):
						return nil, nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}}
				ended := watchEvents(&opts)
				var k *keeper
				for range servers {
					db, err := store.Open(b.Context(), address, testLog(b))
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { db.Close() })
					k = &keeper{DB: db}
					e, err := New(riverpgxv5.New(db.Pool()), riverdatabasesql.New(nil), k, opts)
					if err != nil {
						b.Fatal(err)
					}
					start(b, e)
				}
				begun := time.Now()
				var ids []int64
				for i := range runs {
					ids = append(ids, newRun(b, k, i+1))
				}
				for _, id := range ids {
					ended.untilState(b, k, id, pipeline.StateVerified)
				}
				took := time.Since(begun)
				if servers == 1 {
					alone = took
				}
				b.ReportMetric(took.Seconds(), "s")
				b.ReportMetric(alone.Seconds()/took.Seconds(), "x")
			}
		})
	}
}
