package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"forge/pipeline"
	"forge/pipeline/config"
	"forge/pipeline/store"
)

// A file is made when it is not there, and its schema brought up to date. A run is its
// log of events: Load folds it again.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "forge-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(dir, "forge.db"), slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	start := pipeline.Start{Repo: pipeline.Repo{ID: 1, Owner: "acme", Name: "shop", DefaultBranch: "main"}, Task: pipeline.Task{Issue: 1, Title: "Sum is wrong"},
		Config: config.Default(), Base: "base000", Branch: "forge/issue-1-sum-is-wrong"}
	made, err := db.CreateRun(ctx, "a delivery's id", start, time.Unix(0, 0), "4bf92f3577b34da6a3ce929d0e0e4736", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := db.Load(ctx, made.ID)
	fmt.Println(run.ID, run.State, run.Task.Title, err)
	// Output: 1 running Sum is wrong <nil>
}
