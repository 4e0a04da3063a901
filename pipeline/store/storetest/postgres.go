// Package storetest gives tests a database of their own on PostgreSQL. It stores nothing
// beyond the test.
package storetest

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"forge/pipeline/needs"
)

// Postgres makes a schema for the test alone and returns its address. Without
// PostgreSQL the test is skipped.
func Postgres(t testing.TB) (address string) {
	t.Helper()
	address = needs.Postgres(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", address)
	if err != nil {
		t.Fatal(err)
	}
	schema := "forge_" + strings.ToLower(rand.Text())
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
