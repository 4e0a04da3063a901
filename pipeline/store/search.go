package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Hit is a learning that a search found. Score is the text's rank (bm25 on
// SQLite, ts_rank on PostgreSQL) times confidence: it orders the hits of one
// search and means nothing beyond.
type Hit struct {
	pipeline.Learning
	Score float64 `json:"score"`
}

const maxTerms = 24 // of a query: more words cost time and tell nothing more

// scopeTerm is the word that stands for a scope in the index.
func scopeTerm(scope string) string {
	h := sha256.Sum256([]byte(scope))
	return "zz" + hex.EncodeToString(h[:8])
}

// indexWords brings the indices up to date with a learning. Only what is active
// can be found by its words.
func (d *DB) indexWords(ctx context.Context, tx *sql.Tx, id int64) error {
	l, err := learningByID(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := d.indexTerms(ctx, tx, &l); err != nil {
		return err
	}
	indexed := ""
	if l.State == pipeline.LearningActive {
		indexed = strings.Join(text.Words(clean(strings.Join([]string{l.Content, l.Context, string(l.Category), strings.Join(l.Tags, " "),
			strings.Join(l.Paths, " ")}, " "))), " ")
	}
	if d.dialect == dialectPostgres {
		_, err = d.exec(ctx, tx, `UPDATE memories SET words = setweight(to_tsvector('simple', CASE WHEN $2 = '' THEN '' ELSE $3 END), 'A') || to_tsvector('simple', $2) WHERE id = $1`,
			id, indexed, scopeTerm(l.Scope))
	} else {
		if _, err = d.exec(ctx, tx, `DELETE FROM memories_text WHERE rowid = $1`, id); err == nil && indexed != "" {
			_, err = d.exec(ctx, tx, `INSERT INTO memories_text (rowid, scope, words) VALUES ($1, $2, $3)`, id, scopeTerm(l.Scope), indexed)
		}
	}
	if err != nil {
		return fmt.Errorf("index learning %d: %w", id, err)
	}
	return nil
}

const (
	// The best are found before their words are read: a sort carries all its columns.
	searchSQLite = `WITH best AS MATERIALIZED (SELECT m.id AS id, -bm25(memories_text, 0.0, 1.0) * m.confidence AS score
		FROM memories_text JOIN memories m ON m.id = memories_text.rowid WHERE memories_text MATCH $1 AND m.state = '` + string(pipeline.LearningActive) + `' ORDER BY score DESC, m.id LIMIT $2)
		SELECT ` + memoryColumns + `, best.score FROM best JOIN memories m ON m.id = best.id ORDER BY best.score DESC, m.id`
	searchPostgres = `WITH best AS MATERIALIZED (SELECT m.id AS id, ts_rank(m.words, to_tsquery('simple', $3)) * m.confidence AS score
		FROM memories m WHERE m.words @@ to_tsquery('simple', $1) AND m.state = '` + string(pipeline.LearningActive) + `' ORDER BY score DESC, m.id LIMIT $2)
		SELECT ` + memoryColumns + `, best.score FROM best JOIN memories m ON m.id = best.id ORDER BY best.score DESC, m.id`
)

// SearchMemories finds active learnings of the scopes by words, of which one must
// occur; the best rank times confidence comes first. A limit of 0 is 20.
func (d *DB) SearchMemories(ctx context.Context, query string, scopes []string, limit int) ([]Hit, error) {
	found := text.Words(clean(query))
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) > maxTerms { // the longest tell most
		slices.SortStableFunc(found, func(a, b string) int { return len(b) - len(a) })
		found = found[:maxTerms]
	}
	if len(found) == 0 || len(scopes) == 0 {
		return nil, nil
	}
	var places []string
	for _, s := range scopes {
		places = append(places, scopeTerm(s))
	}
	statement, args := searchSQLite, []any{`scope : (` + strings.Join(quoted(places, `"`, `"`), " OR ") + `) AND words : (` +
		strings.Join(quoted(found, `"`, `"`), " OR ") + `)`, limitOr(limit, 20)}
	if d.dialect == dialectPostgres {
		// The label A is the scope's, D that of all words.
		words := strings.Join(quoted(found, "'", "':D"), " | ")
		statement, args = searchPostgres, []any{`(` + strings.Join(quoted(places, "'", "':A"), " | ") + `) & (` + words + `)`, limitOr(limit, 20), words}
	}
	doing := fmt.Sprintf("search learnings for %.80q", query)
	rows, err := d.reader.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(h *Hit) (err error) {
		var r memoryRow
		if err := rows.Scan(r.fields(&h.Score)...); err != nil {
			return err
		}
		h.Learning, err = r.learning()
		return err
	})
}

func quoted(words []string, left, right string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = left + w + right
	}
	return out
}
