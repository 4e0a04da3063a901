//go:build e2e

package work

import (
	"testing"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"forge/pipeline/store"
	"forge/pipeline/store/storetest"
)

func init() {
	thorough = true
	databases["postgres"] = onPostgres
}

// onPostgres has the engine listen with pgx and insert with database/sql.
func onPostgres(t *testing.T, test databaseTest) {
	db, err := store.Open(t.Context(), storetest.Postgres(t), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &keeper{DB: db}
	test(t, k, func(o Options) *Engine {
		e, err := New(riverpgxv5.New(k.Pool()), riverdatabasesql.New(nil), k, o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}
