package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
)

// chunkSizes are the numbers of rows that one INSERT takes, from large to small:
// few statements to prepare, few round trips.
var chunkSizes = [...]int{64, 32, 16, 8, 4, 2, 1}

// A bulkInsert is an INSERT of several rows at once. When it fails, its whole transaction
// does: SQLite then need not keep what the pages were like before it.
type bulkInsert struct {
	head  string                     // INTO table (columns) VALUES
	cols  int                        // parameters of a row
	tail  string                     // ON CONFLICT …
	texts map[dialect]map[int]string // for every chunk size
}

// newBulkInsert builds the statement's text for every chunk size.
func newBulkInsert(head string, cols int, tail string) *bulkInsert {
	b := &bulkInsert{head: head, cols: cols, tail: tail, texts: map[dialect]map[int]string{}}
	for _, of := range [...]dialect{dialectSQLite, dialectPostgres} {
		b.texts[of] = map[int]string{}
		for _, n := range chunkSizes {
			b.texts[of][n] = b.build(of, n)
		}
	}
	return b
}

// build writes the statement. PostgreSQL wants its parameters numbered; SQLite's driver
// looks for the name of each among those of all, so there they have none.
func (b *bulkInsert) build(of dialect, rows int) string {
	var s strings.Builder
	s.WriteString("INSERT ")
	if of == dialectSQLite {
		s.WriteString("OR ROLLBACK ")
	}
	s.WriteString(b.head)
	p := 0
	for r := range rows {
		if r > 0 {
			s.WriteByte(',')
		}
		s.WriteByte('(')
		for c := range b.cols {
			if c > 0 {
				s.WriteByte(',')
			}
			p++
			if of == dialectSQLite {
				s.WriteByte('?')
				continue
			}
			s.WriteByte('$')
			s.WriteString(strconv.Itoa(p))
		}
		s.WriteByte(')')
	}
	s.WriteString(b.tail)
	return s.String()
}

func (b *bulkInsert) sql(of dialect, rows int) string { return b.texts[of][rows] }

// run inserts rows, whose parameters stand one after the other in args, and
// reports how many went in.
func (b *bulkInsert) run(ctx context.Context, d *DB, tx *sql.Tx, args []any) (int64, error) {
	var in int64
	for _, size := range chunkSizes {
		for len(args) >= size*b.cols {
			n, err := d.exec(ctx, tx, b.sql(d.dialect, size), args[:size*b.cols]...)
			if err != nil {
				return in, err
			}
			in += n
			args = args[size*b.cols:]
		}
	}
	return in, nil
}
