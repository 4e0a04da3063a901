package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forge/cmd/forge/shell"
)

func TestEvaluateRecall(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	set := `{"kind":"learning","id":0,"date":"2026-01-01T00:00:00Z","text":"the quick brown fox jumps over a lazy dog","context":["cmd"]}
{"kind":"query","at":1,"path":"cmd/fox.go","functions":["Jump"],"words":["the","quick","brown","fox","jumps","over","lazy","dog","one","two","three","four","five","six","seven"],"relevant":{"0":2}}
`
	if err := os.WriteFile(filepath.Join(made, "fox.jsonl"), []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{made}, shell.Done, []string{"fox", "plain bm25", "recall", "mean", "1.000", "0.200"}},
		{[]string{made, "--speed=300", "--scopes=2", "--queries=4"}, shell.Done, []string{"300 learnings in 2 scope(s), 4 queries", "FTS5", "of FTS5's (target"}},
		{[]string{t.TempDir()}, shell.Failed, []string{"there is no file *.jsonl.gz"}},
		{[]string{made, "--scopes", "0"}, shell.Misused, []string{"--scopes"}},
		{[]string{}, shell.Misused, []string{"takes 1 argument"}},
	} {
		var out bytes.Buffer
		if code := Main(context.Background(), append([]string{"evaluate", "recall"}, c.args...), &out, &out); code != c.code {
			t.Errorf("evaluate recall %q: exit code %d, want %d:\n%s", c.args, code, c.code, &out)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("evaluate recall %q prints no %q:\n%s", c.args, want, &out)
			}
		}
	}
}
