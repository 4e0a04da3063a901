package ranking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"forge/pipeline"
)

// FullText is recall as a database alone would do it: learnings in SQLite's FTS5,
// ranked by bm25 and confidence. Forge does not answer with it; it is what the
// speed of its recall is measured against, in the faster of the forms that FTS5
// allows: the scope is a word of the index, not a column that is joined.
type FullText struct {
	db     *sql.DB
	scopes map[string]string // scope → its word
	search *sql.Stmt
}

// NewFullText makes an empty database in a directory, which the caller removes
// after [FullText.Close].
func NewFullText(ctx context.Context, dir string) (*FullText, error) {
	path := filepath.Join(dir, "fulltext.db")
	// Nothing in it must outlive the process, so it is not synced.
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=journal_mode(MEMORY)&_pragma=synchronous(OFF)&_pragma=cache_size(-262144)")
	if err != nil {
		return nil, fmt.Errorf("make full-text index %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	f := &FullText{db: db, scopes: map[string]string{}}
	for _, q := range []string{
		`CREATE TABLE weights (id INTEGER PRIMARY KEY, confidence REAL NOT NULL)`,
		`CREATE VIRTUAL TABLE words USING fts5(scope, content, context, content='', tokenize='unicode61')`,
	} {
		if _, err := db.ExecContext(ctx, q); err != nil {
			return nil, fmt.Errorf("make full-text index %s: %w", path, errors.Join(err, db.Close()))
		}
	}
	f.search, err = db.PrepareContext(ctx, `SELECT words.rowid FROM words JOIN weights ON weights.id = words.rowid
		WHERE words MATCH $1 ORDER BY bm25(words, 0, 1, 1) * weights.confidence LIMIT $2`)
	if err != nil {
		return nil, fmt.Errorf("make full-text index %s: %w", path, errors.Join(err, db.Close()))
	}
	return f, nil
}

// Add puts new learnings in, in one transaction.
func (f *FullText) Add(ctx context.Context, all []pipeline.Learning) (err error) {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("add %d learnings to the full-text index: %w", len(all), err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("add %d learnings to the full-text index: %w", len(all), errors.Join(err, tx.Rollback()))
		}
	}()
	words, err := tx.PrepareContext(ctx, `INSERT INTO words (rowid, scope, content, context) VALUES ($1, $2, $3, $4)`)
	if err != nil {
		return err
	}
	weights, err := tx.PrepareContext(ctx, `INSERT INTO weights (id, confidence) VALUES ($1, $2)`)
	if err != nil {
		return err
	}
	for _, l := range all {
		word, ok := f.scopes[l.Scope]
		if !ok {
			word = "scope" + strconv.Itoa(len(f.scopes))
			f.scopes[l.Scope] = word
		}
		if _, err := words.ExecContext(ctx, l.ID, word, l.Content, l.Context); err != nil {
			return err
		}
		if _, err := weights.ExecContext(ctx, l.ID, l.Confidence); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Optimize merges the index into one piece, which is the fastest to search.
func (f *FullText) Optimize(ctx context.Context) error {
	_, err := f.db.ExecContext(ctx, `INSERT INTO words (words) VALUES ('optimize')`)
	if err != nil {
		return fmt.Errorf("optimize the full-text index: %w", err)
	}
	return nil
}

// Search returns the IDs of the learnings of a scope that fit any of the words
// best, best first.
func (f *FullText) Search(ctx context.Context, scope string, words []string, limit int) (ids []int64, err error) {
	if f.scopes[scope] == "" || len(words) == 0 {
		return nil, nil
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = `"` + strings.ReplaceAll(w, `"`, `""`) + `"`
	}
	match := fmt.Sprintf(`scope : %s AND ({content context} : (%s))`, f.scopes[scope], strings.Join(quoted, " OR "))
	rows, err := f.search.QueryContext(ctx, match, limit)
	if err != nil {
		return nil, fmt.Errorf("search the full-text index for %s: %w", match, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("search the full-text index for %s: %w", match, err)
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Close closes the database.
func (f *FullText) Close() error {
	return errors.Join(f.search.Close(), f.db.Close())
}
