//go:build e2e

package work

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"forge/pipeline/needs"
	"forge/pipeline/store"
)

func init() {
	thorough = true
	databases = append(databases, databases[0])
	databases[1].name, databases[1].open = "postgres", openPostgres
}

// openPostgres has the engine listen with pgx and insert with database/sql.
func openPostgres(t *testing.T) (*keeper, func(Options) *Engine) {
	db, err := store.Open(t.Context(), postgresAddress(t), testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &keeper{DB: db}
	return k, func(o Options) *Engine {
		e, err := New(riverpgxv5.New(k.Pool()), riverdatabasesql.New(nil), k, o)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// postgresAddress makes a schema for the test alone and returns its address.
func postgresAddress(t testing.TB) string {
	t.Helper()
	address := needs.Postgres(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	schema := fmt.Sprintf("forge_work_%d_%d", os.Getpid(), time.Now().UnixNano())
	admin, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec("DROP SCHEMA " + schema + " CASCADE"); err != nil {
			t.Error(err)
		}
		admin.Close()
	})
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return u.String()
}
