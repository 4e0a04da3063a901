package pipeline_test

import (
	"encoding/json"
	"testing"
	"time"

	"forge/pipeline"
)

func TestRenamed(t *testing.T) {
	t.Parallel()
	old := pipeline.Repo{ID: 7, Owner: "acme", Name: "shop", DefaultBranch: "main", CloneURL: "https://github.com/acme/shop.git", Installation: 1}
	start := pipeline.Start{Repo: old, Task: pipeline.Task{Issue: 3, Title: "T", URL: "https://github.com/acme/shop/issues/3"}, Base: "b", Branch: "forge/x"}
	run := &pipeline.Run{}
	run.Apply(pipeline.Event{ID: "a", Seq: 1, Type: pipeline.EventRunStarted, Time: time.Unix(1, 0), Data: pipeline.Data{Start: &start}})
	run.Published.Pull = &pipeline.PullRef{Number: 4, URL: "https://github.com/acme/shop/pull/4"}
	run.Published.Artefacts = map[string]pipeline.Artefact{"status": {URL: "https://github.com/acme/shop/issues/3#issuecomment-1"}}
	shown := run.Published.Pull
	rename := func(seq int64, to pipeline.Repo) {
		run.Apply(pipeline.Event{ID: "r", Seq: seq, Type: pipeline.EventRepositoryRenamed, Time: time.Unix(2, 0), Data: pipeline.Data{Repo: &to}})
	}
	rename(2, pipeline.Repo{ID: 8, Owner: "evil", Name: "shop", CloneURL: "https://github.com/evil/shop.git"})
	if run.Repo != old || run.Published.Pull.URL != shown.URL {
		t.Errorf("an event about another repository changed it: %+v", run.Repo)
	}
	rename(3, pipeline.Repo{ID: 7, Owner: "bob", Name: "store", DefaultBranch: "trunk", CloneURL: "https://github.com/bob/store.git", Installation: 2})
	want := pipeline.Repo{ID: 7, Owner: "bob", Name: "store", DefaultBranch: "main", CloneURL: "https://github.com/bob/store.git", Installation: 2}
	if run.Repo != want || run.Rev != 3 {
		t.Errorf("repo %+v, rev %d; want %+v and 3", run.Repo, run.Rev, want)
	}
	got, _ := json.Marshal([]string{run.Task.URL, run.Published.Pull.URL, run.Published.Artefacts["status"].URL, shown.URL})
	if w := `["https://github.com/bob/store/issues/3","https://github.com/bob/store/pull/4","https://github.com/bob/store/issues/3#issuecomment-1","https://github.com/acme/shop/pull/4"]`; string(got) != w {
		t.Errorf("addresses %s\nwant %s", got, w)
	}
}
