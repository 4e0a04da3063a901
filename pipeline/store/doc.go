// Package store is the one place with SQL: it keeps everything that Forge must
// not lose.
//
// It stores the event log (a run is the fold over its events), projections of it
// that can be listed without decoding an event (runs, findings, bounces, gates,
// feedback events), the webhook's deliveries, the tape of model calls, and the
// memory: signals, learnings with their evidence and history, recalls,
// reflections, outcomes of runs, and how far readers of the log have come; and the
// daily sums of the metrics. The log is the truth: a projection is written in the
// transaction that appends the events it follows from; the sums follow at
// intervals.
//
// The same queries run on SQLite (the default: one file, one server) and on
// PostgreSQL (many servers). Times are integers: microseconds since 1970, UTC,
// 0 for none. Migrations are embedded and go forward only. A database that is
// foreign, damaged, emptied or written by a newer Forge is refused, never mended
// or replaced.
//
// SQLite has one writer connection: inside a transaction's function use only the
// transaction that it is given; a second write would wait for itself.
package store
