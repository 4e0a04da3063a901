package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// A term stands for something that learnings are about: "w:WORD" for a key word,
// "f:CATEGORY:PATH" for a file or folder, "g:CATEGORY:FOLDER" for a pattern of
// files below a folder.

// termsOf returns what a learning is about, sorted, and the number of its key
// words. The first term, ".", makes the list of one that is about nothing differ
// from the list of one that was never asked.
func termsOf(l *pipeline.Learning) (terms []string, words int) {
	list := text.KeyWords(clean(l.Content + " " + l.Context))
	for _, w := range list {
		terms = append(terms, "w:"+w)
	}
	for _, p := range l.Paths {
		if p = strings.TrimSuffix(strings.TrimSuffix(clean(p), "**"), "/"); p == "" || l.Category == "" {
			continue
		}
		if meta := strings.IndexAny(p, `*?[\`); meta >= 0 {
			terms = append(terms, "g:"+clean(l.Category)+":"+p[:max(0, strings.LastIndexByte(p[:meta], '/'))])
		} else {
			terms = append(terms, "f:"+clean(l.Category)+":"+p)
		}
	}
	terms = append(terms, ".")
	slices.Sort(terms)
	return slices.Compact(terms), len(list)
}

// fileTerms returns the terms of the learnings of a category that may be about a file.
func fileTerms(of pipeline.Category, file string) []string {
	if of == "" || file == "" {
		return nil
	}
	category, file := clean(of), clean(file)
	out := []string{"f:" + category + ":" + file, "g:" + category + ":"}
	for i, c := range []byte(file) {
		if c == '/' {
			out = append(out, "f:"+category+":"+file[:i], "g:"+category+":"+file[:i])
		}
	}
	return out
}

// indexTerms brings the terms of a learning up to date.
func (d *DB) indexTerms(ctx context.Context, tx *sql.Tx, l *pipeline.Learning) error {
	doing := fmt.Sprintf("index what learning %d is about", l.ID)
	terms, words := termsOf(l)
	now := pack(terms)
	var before string
	if err := tx.QueryRowContext(ctx, `SELECT terms FROM memories WHERE id = $1`, l.ID).Scan(&before); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if before == now {
		return nil
	}
	if before != "" {
		_, err := d.exec(ctx, tx, `DELETE FROM memory_terms WHERE scope = $1 AND learning = $2 AND term IN (`+d.each("$3")+`)`, l.Scope, l.ID, before)
		if err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	_, err := d.exec(ctx, tx, `INSERT INTO memory_terms (scope, term, learning, size) SELECT $1, t.value, $2, $4 FROM (`+d.each("$3")+
		`) t WHERE true ON CONFLICT DO NOTHING`,
		l.Scope, l.ID, now, min(words, sizes-1))
	if err == nil {
		_, err = d.exec(ctx, tx, `UPDATE memories SET terms = $2 WHERE id = $1`, l.ID, now)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// each is a query for the texts of a list in JSON, as the column value.
func (d *DB) each(arg string) string {
	if d.dialect == dialectPostgres {
		return `SELECT value FROM jsonb_array_elements_text(CAST(` + arg + ` AS jsonb)) AS x (value)`
	}
	return `SELECT value FROM json_each(` + arg + `)`
}

// sizes is the number of key words that terms tell apart; more are taken for as many.
const sizes = 1024

// sharing adds the learnings that share at least two of the key words, and two in
// five of the shorter list. Each word's learnings come as one text: a thousand
// rows of one number cost more than all the rest.
func (d *DB) sharing(ctx context.Context, tx *sql.Tx, scope string, words []string, ids map[int64]bool) error {
	query := `SELECT COALESCE(group_concat(learning * 1024 + size), '') FROM memory_terms WHERE scope = $1 AND term = $2`
	if d.dialect == dialectPostgres {
		query = `SELECT COALESCE(string_agg(CAST(learning * 1024 + size AS TEXT), ','), '') FROM memory_terms WHERE scope = $1 AND term = $2`
	}
	shared := map[int64]int{}
	for _, w := range words {
		var list string
		if err := tx.QueryRowContext(ctx, query, scope, "w:"+w).Scan(&list); err != nil {
			return fmt.Errorf("look up learnings about %q: %w", w, err)
		}
		for item := range strings.SplitSeq(list, ",") {
			if n, err := strconv.ParseInt(item, 10, 64); err == nil {
				shared[n]++
			}
		}
	}
	for item, n := range shared {
		if size := int(item % sizes); n >= 2 && 5*n >= 2*min(size, len(words)) {
			ids[item/sizes] = true
		}
	}
	return nil
}

// touched returns the learnings of a signal's scope that it may say something
// about; see [JudgeFunc].
func (d *DB) touched(ctx context.Context, tx *sql.Tx, s pipeline.Signal) ([]pipeline.Learning, error) {
	if s.Off {
		return nil, nil
	}
	ids := map[int64]bool{}
	add := func(query string, args ...any) error {
		rows, err := tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		list, err := collect(rows, "look up what a signal touches", func(id *int64) error { return rows.Scan(id) })
		for _, id := range list {
			ids[id] = true
		}
		return err
	}
	if s.Finding != "" {
		if err := add(`SELECT id FROM memories WHERE finding = $1 AND finding <> '' AND scope = $2`, clean(s.Finding), s.Scope); err != nil {
			return nil, err
		}
	}
	if s.About != nil {
		if files := fileTerms(s.About.Category, s.File); len(files) > 0 {
			if err := add(`SELECT learning FROM memory_terms WHERE scope = $1 AND term IN (`+d.each("$2")+`)`, s.Scope, pack(files)); err != nil {
				return nil, err
			}
		}
		words := text.KeyWords(clean(s.About.Message + " " + s.About.Rule))
		if err := d.sharing(ctx, tx, s.Scope, words, ids); err != nil {
			return nil, err
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list := make([]int64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	slices.Sort(list)
	said, _ := json.Marshal(list) // numbers: it cannot fail
	return learningsBy(ctx, tx, `m.id IN (SELECT CAST(value AS BIGINT) FROM (`+d.each("$1")+`) t) ORDER BY m.id`, string(said))
}
