// Package work is the engine room: it carries out what [pipeline.Decide] asks for.
//
// A run is advanced by one worker at a time. A worker takes the run's lease, loads
// it, and goes from action to action — appends events, lets a phase be executed,
// lets GitHub be brought in line — until the run has ended, waits for a human, or
// must wait before it may publish again. Then it gives the lease back, and with it
// the mark that the run is due, but only when nothing has happened meanwhile.
//
// The jobs are on River and carry nothing but the run's number: a job is a trigger,
// never the truth. Losing one costs a second, because a ticker finds runs that are
// due and have neither a job nor a live lease; having one too many costs a look.
// That is also how the run of a worker that died is taken over.
//
// Deliveries from GitHub come in through the intake. It turns each into events of a
// run, a new run, or nothing, and records which; a delivery and its effect are one
// transaction.
//
// The package stores River's tables (river_job, river_leader, river_queue,
// river_client, river_migration). Everything else is kept by the [Store].
package work
