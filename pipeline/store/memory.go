package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/record"
)

// MemoryFilter chooses learnings. Zero fields choose all, States the active ones.
type MemoryFilter struct {
	Scopes   []string                 // "repo:OWNER/NAME", "org:OWNER"; nil: all, none: nothing
	States   []pipeline.LearningState // nil: active; "*" for all
	Type     pipeline.LearningType
	Category pipeline.Category
	Source   pipeline.LearningSource
	Finding  string // fingerprint of the finding that was dismissed
	Into     int64  // merged into this one; give States, too
	Limit    int    // 0: 10,000
	Skip     int    // leave out as many at the beginning: the next page
	Decay    *Decay // orders them by it, not by scope
}

// Decay is how confidence decays: what is left of it at a moment, when half of what
// age takes is gone after a type's half-life. It orders a list; nothing is written.
type Decay struct {
	At        time.Time
	HalfLives map[pipeline.LearningType]time.Duration
	Least     float64 // share of it that no age takes
}

// order is an expression that is greater for more confidence left.
func (f *Decay) order(args *[]any) string {
	arg := func(v any, kind string) string {
		*args = append(*args, v)
		return fmt.Sprintf("CAST($%d AS %s)", len(*args), kind)
	}
	at := arg(micros(f.At), "BIGINT")
	half := "CASE m.type"
	for _, t := range slices.Sorted(maps.Keys(f.HalfLives)) {
		half += " WHEN " + arg(string(t), "TEXT") + " THEN " + arg(max(1, float64(f.HalfLives[t].Microseconds()))/math.Ln2, "DOUBLE PRECISION")
	}
	age := "(" + at + " - m.touched) / (" + half + " ELSE " + arg(1.0, "DOUBLE PRECISION") + " END)"
	least := arg(f.Least, "DOUBLE PRECISION")
	// Of what is past all counting the exponential is no number on PostgreSQL.
	return "m.confidence * (CASE WHEN m.touched >= " + at + " THEN 1.0 WHEN " + age + " > 500 THEN " + least +
		" ELSE " + least + " + (1 - " + least + ") * exp(-" + age + ") END)"
}

const memoryColumns = `m.id, m.scope, m.key, m.type, m.category, m.content, m.context, m.paths, m.tags, m.source, m.author_id, m.author, m.bot, m.weight, m.run,
	m.signal, m.finding, m.code, m.base, m.confidence, m.pro, m.contra, m.created, m.touched, m.recalled, m.used, m.state, m.cites`

// memoryRow is what a learning is scanned through.
type memoryRow struct {
	pipeline.Learning
	paths, tags      string
	cites            string
	created, touched int64
}

func (r *memoryRow) fields(more ...any) []any {
	l := &r.Learning
	return append([]any{&l.ID, &l.Scope, &l.Key, &l.Type, &l.Category, &l.Content, &l.Context, &r.paths, &r.tags, &l.Source, &l.Author.ID, &l.Author.Login,
		&l.Author.Bot, &l.Weight, &l.Run, &l.Signal, &l.Finding, &l.Code, &l.Base, &l.Confidence, &l.For, &l.Against, &r.created, &r.touched,
		&l.Recalled, &l.Used, &l.State, &r.cites}, more...)
}

func (r *memoryRow) learning() (pipeline.Learning, error) {
	r.Created, r.Touched = fromMicros(r.created), fromMicros(r.touched)
	return r.Learning, errors.Join(unpack(r.paths, &r.Learning.Paths), unpack(r.tags, &r.Learning.Tags), unpack(r.cites, &r.Learning.Cites))
}

// pack and unpack keep a list of words in a column.
func pack(list []string) string {
	if len(list) == 0 {
		return ""
	}
	list = slices.Clone(list)
	for i, s := range list {
		list[i] = clean(s)
	}
	data, _ := json.Marshal(list) // strings: it cannot fail
	return string(data)
}

func unpack[T any](s string, list *[]T) error {
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), list)
}

// packCites keeps cited code in a column.
func packCites(list []record.Cite) string {
	if len(list) == 0 {
		return ""
	}
	data, _ := json.Marshal(list) // texts: it cannot fail
	return clean(string(data))
}

// A queryer reads: the reader, or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func learningsBy(ctx context.Context, q queryer, where string, args ...any) ([]pipeline.Learning, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+memoryColumns+` FROM memories m WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("list learnings: %w", err)
	}
	return collect(rows, "list learnings", func(l *pipeline.Learning) (err error) {
		var r memoryRow
		if err := rows.Scan(r.fields()...); err != nil {
			return err
		}
		*l, err = r.learning()
		return err
	})
}

// Learnings lists what is remembered, by scope, most confident first.
func (d *DB) Learnings(ctx context.Context, f MemoryFilter) ([]pipeline.Learning, error) {
	where, args := f.where()
	order := "m.scope, m.confidence DESC, m.id"
	if f.Decay != nil {
		order = f.Decay.order(&args) + " DESC, m.id"
	}
	args = append(args, limitOr(f.Limit, 10_000), f.Skip)
	where += fmt.Sprintf(` ORDER BY %s LIMIT $%d OFFSET $%d`, order, len(args)-1, len(args))
	if f.Decay != nil { // the page is found before its words are read: a sort carries all its columns
		where = `m.id IN (SELECT m.id FROM memories m WHERE ` + where + `) ORDER BY ` + order
	}
	return learningsBy(ctx, d.reader, where, args...)
}

// CountLearnings counts what a filter chooses, whatever its Limit and Skip.
func (d *DB) CountLearnings(ctx context.Context, f MemoryFilter) (n int, err error) {
	where, args := f.where()
	if err := d.reader.QueryRowContext(ctx, `SELECT COUNT(*) FROM memories m WHERE `+where, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count learnings: %w", err)
	}
	return n, nil
}

func (f *MemoryFilter) where() (string, []any) {
	states := f.States
	if states == nil {
		states = []pipeline.LearningState{pipeline.LearningActive}
	}
	where, args := []string{"1 = 1"}, []any{}
	add := func(column string, values ...string) {
		marks := []string{"NULL"}
		for _, v := range values {
			args = append(args, v)
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		where = append(where, "m."+column+" IN ("+strings.Join(marks, ", ")+")")
	}
	if f.Scopes != nil {
		add("scope", f.Scopes...)
	}
	if !slices.Contains(states, "*") {
		var names []string
		for _, s := range states {
			names = append(names, string(s))
		}
		add("state", names...)
	}
	for _, c := range [...][2]string{{"type", string(f.Type)}, {"category", string(f.Category)}, {"source", string(f.Source)}, {"finding", f.Finding}} {
		if c[1] != "" {
			add(c[0], c[1])
		}
	}
	if f.Into != 0 {
		args = append(args, f.Into)
		where = append(where, fmt.Sprintf("m.merged = $%d", len(args)))
	}
	return strings.Join(where, " AND "), args
}

// Learning returns a learning by its id. The error is ErrNotFound when there is none.
func (d *DB) Learning(ctx context.Context, id int64) (pipeline.Learning, error) {
	return learningByID(ctx, d.reader, id)
}

func learningByID(ctx context.Context, q queryer, id int64) (pipeline.Learning, error) {
	list, err := learningsBy(ctx, q, `m.id = $1`, id)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return pipeline.Learning{}, fmt.Errorf("learning %d: %w", id, err)
	}
	return list[0], nil
}

// LearningText is what a learning says, in short.
type LearningText struct {
	Scope, Content, State string
}

// LearningTexts returns what learnings say, by id. One that does not exist is left out.
func (d *DB) LearningTexts(ctx context.Context, ids []int64) (map[int64]LearningText, error) {
	const doing = "read what learnings say"
	out := make(map[int64]LearningText, len(ids))
	for some := range slices.Chunk(ids, 1000) {
		list := strings.ReplaceAll(strings.Trim(fmt.Sprint(some), "[]"), " ", ", ")
		rows, err := d.reader.QueryContext(ctx, `SELECT id, scope, content, state FROM memories WHERE id IN (`+list+`)`)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", doing, err)
		}
		_, err = collect(rows, doing, func(*struct{}) error {
			var id int64
			var s LearningText
			err := rows.Scan(&id, &s.Scope, &s.Content, &s.State)
			out[id] = s
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Evidence returns what there is for and against a learning, the latest first;
// what was taken back is there with Off.
func (d *DB) Evidence(ctx context.Context, learning int64) ([]pipeline.Evidence, error) {
	return evidenceOf(ctx, d.reader, learning)
}

func evidenceOf(ctx context.Context, q queryer, learning int64) ([]pipeline.Evidence, error) {
	doing := fmt.Sprintf("list evidence on learning %d", learning)
	rows, err := q.QueryContext(ctx, `SELECT e.learning, m.key, e.key, e.delta, e.why, e.actor_id, e.actor, e.run, e.at, e.off
		FROM evidence e JOIN memories m ON m.id = e.learning WHERE e.learning = $1 ORDER BY e.at DESC, e.key`, learning)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return scanEvidence(rows, doing)
}

func scanEvidence(rows *sql.Rows, doing string) ([]pipeline.Evidence, error) {
	return collect(rows, doing, func(e *pipeline.Evidence) error {
		var at int64
		err := rows.Scan(&e.Learning, &e.Of, &e.Key, &e.Delta, &e.Why, &e.Actor.ID, &e.Actor.Login, &e.Run, &at, &e.Off)
		e.At = fromMicros(at)
		return err
	})
}

// SaveLearnings keeps learnings and returns their ids in the same order. One that
// is there already (by scope and key) keeps what people and recalls made of it:
// edited words stay edited, what was forgotten, merged or retired stays so.
func (d *DB) SaveLearnings(ctx context.Context, tx *sql.Tx, learnings []pipeline.Learning) ([]int64, error) {
	var ids []int64
	for i := range learnings {
		id, err := d.saveLearning(ctx, tx, &learnings[i])
		if err != nil {
			return nil, fmt.Errorf("save learning %s of %s: %w", learnings[i].Key, learnings[i].Scope, err)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

const insertMemory = `INSERT INTO memories (scope, key, type, category, content, context, paths, tags, source, author_id, author, bot, weight, run, signal,
	finding, code, base, confidence, pro, contra, created, touched, state, cites)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, 0, 0, $19, $20, $21, $22)
	ON CONFLICT (scope, key) DO UPDATE SET state = CASE WHEN memories.state IN ('active', 'withdrawn') THEN excluded.state ELSE memories.state END,
	type = CASE WHEN memories.edited THEN memories.type ELSE excluded.type END, category = CASE WHEN memories.edited THEN memories.category ELSE excluded.category END,
	content = CASE WHEN memories.edited THEN memories.content ELSE excluded.content END, context = CASE WHEN memories.edited THEN memories.context ELSE excluded.context END,
	paths = CASE WHEN memories.edited THEN memories.paths ELSE excluded.paths END, tags = CASE WHEN memories.edited THEN memories.tags ELSE excluded.tags END,
	base = CASE WHEN memories.edited THEN memories.base ELSE excluded.base END,
	source = excluded.source, author_id = excluded.author_id, author = excluded.author, bot = excluded.bot, weight = excluded.weight, run = excluded.run,
	signal = excluded.signal, finding = excluded.finding, code = excluded.code, created = excluded.created,
	cites = CASE WHEN excluded.cites = '' THEN memories.cites ELSE excluded.cites END
	RETURNING id`

func (d *DB) saveLearning(ctx context.Context, tx *sql.Tx, l *pipeline.Learning) (int64, error) {
	if l.Scope == "" || l.Key == "" || l.Created.IsZero() {
		return 0, fmt.Errorf("it has no scope, key or time")
	}
	state := l.State
	if state == "" {
		state = pipeline.LearningActive
	}
	touched := l.Touched
	if touched.IsZero() {
		touched = l.Created
	}
	var id int64
	err := tx.QueryRowContext(ctx, insertMemory, clean(l.Scope), clean(l.Key), string(l.Type), clean(l.Category), clean(l.Content),
		clean(l.Context), pack(l.Paths), pack(l.Tags),
		clean(string(l.Source)), l.Author.ID, clean(l.Author.Login), l.Author.Bot, l.Weight, l.Run, clean(l.Signal), clean(l.Finding), clean(l.Code), l.Base,
		micros(l.Created), micros(touched), state, packCites(l.Cites)).Scan(&id)
	if err != nil {
		return 0, err
	}
	return id, errors.Join(d.indexWords(ctx, tx, id), d.weigh(ctx, tx, id))
}

// ApplyEvidence keeps pieces of evidence, each instead of the one with the same
// key, and weighs the learnings anew. Those of them that name no learning's id
// are for the learning with the key Of of the scope.
func (d *DB) ApplyEvidence(ctx context.Context, tx *sql.Tx, scope string, evidence []pipeline.Evidence) error {
	touched := map[int64]bool{}
	for _, e := range evidence {
		if e.Learning == 0 {
			if err := tx.QueryRowContext(ctx, `SELECT id FROM memories WHERE scope = $1 AND key = $2`, scope, e.Of).Scan(&e.Learning); err != nil {
				return fmt.Errorf("apply evidence %s on %s of %s: %w", e.Key, e.Of, scope, err)
			}
		}
		_, err := d.exec(ctx, tx, `INSERT INTO evidence (learning, key, delta, why, actor_id, actor, run, at, off) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT (learning, key) DO UPDATE SET delta = excluded.delta, why = excluded.why, actor_id = excluded.actor_id, actor = excluded.actor,
			run = excluded.run, at = excluded.at, off = excluded.off`,
			e.Learning, clean(e.Key), e.Delta, clean(e.Why), e.Actor.ID, clean(e.Actor.Login), e.Run, micros(e.At), e.Off)
		if err != nil {
			return fmt.Errorf("apply evidence %s on learning %d: %w", e.Key, e.Learning, err)
		}
		touched[e.Learning] = true
	}
	for id := range touched {
		if err := d.weigh(ctx, tx, id); err != nil {
			return err
		}
	}
	return nil
}

// weigh computes a learning's confidence from its evidence. What was of use in a
// run counts as touched, too.
func (d *DB) weigh(ctx context.Context, tx *sql.Tx, id int64) error {
	l, err := learningByID(ctx, tx, id)
	if err != nil {
		return err
	}
	evidence, err := evidenceOf(ctx, tx, id)
	if err != nil {
		return err
	}
	l.Weigh(evidence)
	var used int64
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(at), 0) FROM recalls WHERE learning = $1 AND used`, id).Scan(&used); err != nil {
		return fmt.Errorf("weigh learning %d: %w", id, err)
	}
	_, err = d.exec(ctx, tx, `UPDATE memories SET confidence = $2, pro = $3, contra = $4, touched = $5 WHERE id = $1`,
		id, l.Confidence, l.For, l.Against, max(used, micros(l.Touched)))
	if err != nil {
		return fmt.Errorf("weigh learning %d: %w", id, err)
	}
	return nil
}

// MemoryChange is one change of a learning: who, when, and what it was before
// and after, as JSON of its words.
type MemoryChange struct {
	At     time.Time      `json:"at"`
	By     pipeline.Actor `json:"by"`
	What   string         `json:"what"` // "edited", "forgotten: REASON", "retired: REASON", "merged into 7"
	Before string         `json:"before"`
	After  string         `json:"after"`
}

// History returns a learning's changes, oldest first.
func (d *DB) History(ctx context.Context, learning int64) ([]MemoryChange, error) {
	doing := fmt.Sprintf("list changes of learning %d", learning)
	rows, err := d.reader.QueryContext(ctx, `SELECT at, actor_id, actor, what, before, after FROM memory_history WHERE learning = $1 ORDER BY id`, learning)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return collect(rows, doing, func(c *MemoryChange) error {
		var at int64
		err := rows.Scan(&at, &c.By.ID, &c.By.Login, &c.What, &c.Before, &c.After)
		c.At = fromMicros(at)
		return err
	})
}

// EditLearning changes a learning's type, category, words, paths, tags, base or
// state as change says, and keeps who did it and when. tx may be nil.
func (d *DB) EditLearning(ctx context.Context, tx *sql.Tx, id int64, by pipeline.Actor, at time.Time, change func(*pipeline.Learning) error) error {
	return d.revise(ctx, tx, id, MemoryChange{By: by, At: at, What: "edited"}, true, change)
}

// ForgetLearning takes a learning out of use for good: no signal brings it back.
// Only its history still has the words. tx may be nil.
func (d *DB) ForgetLearning(ctx context.Context, tx *sql.Tx, id int64, by pipeline.Actor, at time.Time, why string) error {
	return d.revise(ctx, tx, id, MemoryChange{By: by, At: at, What: reason("forgotten", why)}, false, func(l *pipeline.Learning) error {
		l.State = pipeline.LearningForgotten
		return nil
	})
}

// NoteLearning keeps in a learning's history that somebody did something with it
// that its words do not show: took it from a file, for one.
func (d *DB) NoteLearning(ctx context.Context, tx *sql.Tx, id int64, by pipeline.Actor, at time.Time, what string) error {
	return d.revise(ctx, tx, id, MemoryChange{By: by, At: at, What: what}, false, func(*pipeline.Learning) error { return nil })
}

// RetireLearning takes a learning out of use because of its measured worth.
func (d *DB) RetireLearning(ctx context.Context, tx *sql.Tx, id int64, at time.Time, why string) error {
	return d.revise(ctx, tx, id, MemoryChange{At: at, What: reason("retired", why)}, false, func(l *pipeline.Learning) error {
		l.State = "retired"
		return nil
	})
}

// MergeLearnings moves the evidence of learnings into another one, which says the
// same, and gives that one the paths and tags of into. Those merged stay, out of
// use, as its sources.
func (d *DB) MergeLearnings(ctx context.Context, tx *sql.Tx, into pipeline.Learning, from []int64, at time.Time) error {
	for _, id := range from {
		err := d.revise(ctx, tx, id, MemoryChange{At: at, What: fmt.Sprintf("merged into %d", into.ID)}, false, func(l *pipeline.Learning) error {
			l.State = pipeline.LearningMerged
			return nil
		})
		if err == nil {
			_, err = d.exec(ctx, tx, `UPDATE memories SET merged = $2 WHERE id = $1`, id, into.ID)
		}
		if err == nil { // of two pieces with one key the one that is there stays: one fact counts once
			_, err = d.exec(ctx, tx, `INSERT INTO evidence (learning, key, delta, why, actor_id, actor, run, at, off)
				SELECT CAST($2 AS BIGINT), key, delta, why, actor_id, actor, run, at, off FROM evidence WHERE learning = $1 ON CONFLICT DO NOTHING`, id, into.ID)
		}
		if err != nil {
			return fmt.Errorf("merge learning %d: %w", id, err)
		}
	}
	return d.revise(ctx, tx, into.ID, MemoryChange{At: at, What: "merged from " + strings.Trim(fmt.Sprint(from), "[]")}, false, func(l *pipeline.Learning) error {
		l.Paths, l.Tags = into.Paths, into.Tags
		return nil
	})
}

func reason(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// revise changes a learning and keeps what it was.
func (d *DB) revise(ctx context.Context, tx *sql.Tx, id int64, c MemoryChange, edited bool, change func(*pipeline.Learning) error) error {
	if tx == nil {
		return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error { return d.revise(ctx, tx, id, c, edited, change) })
	}
	if d.dialect == dialectPostgres { // what change looks at must not change meanwhile; SQLite has one writer
		if _, err := d.exec(ctx, tx, `SELECT 1 FROM memories WHERE id = $1 FOR UPDATE`, id); err != nil {
			return fmt.Errorf("change learning %d: %w", id, err)
		}
	}
	l, err := learningByID(ctx, tx, id)
	if err != nil {
		return err
	}
	before, err := json.Marshal(l)
	if err != nil {
		return err // unreachable: plain data
	}
	if err := change(&l); err != nil {
		return fmt.Errorf("change learning %d: %w", id, err)
	}
	after, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("change learning %d: %w", id, err)
	}
	_, err = d.exec(ctx, tx, `UPDATE memories SET type = $2, category = $3, content = $4, context = $5, paths = $6, tags = $7, base = $8, state = $9,
		edited = edited OR $10, weight = $11, author_id = $12, author = $13, bot = $14 WHERE id = $1`,
		id, string(l.Type), clean(l.Category), clean(l.Content), clean(l.Context), pack(l.Paths), pack(l.Tags), l.Base, l.State, edited,
		l.Weight, l.Author.ID, clean(l.Author.Login), l.Author.Bot)
	if err == nil {
		_, err = d.exec(ctx, tx, `INSERT INTO memory_history (learning, at, actor_id, actor, what, before, after) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			id, micros(c.At), c.By.ID, clean(c.By.Login), clean(c.What), clean(string(before)), clean(string(after)))
	}
	if err == nil {
		err = d.indexWords(ctx, tx, id)
	}
	if err == nil {
		err = d.weigh(ctx, tx, id)
	}
	if err != nil {
		return fmt.Errorf("change learning %d: %w", id, err)
	}
	return nil
}
