package evaluate

import (
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
		want []string
	}{
		{[]string{made}, []string{"fox", "plain bm25", "recall", "mean", "1.000", "0.200"}},
		{[]string{made, "--speed=300", "--scopes=2", "--queries=4"}, []string{"300 learnings in 2 scope(s), 4 queries", "FTS5", "of FTS5's (target"}},
	} {
		out := labDone(t, append([]string{"recall"}, c.args...)...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("recall %q prints no %q:\n%s", c.args, want, out)
			}
		}
	}
	exits(t, shell.Failed, "there is no file *.jsonl.gz", "recall", t.TempDir())
	exits(t, shell.Misused, "--scopes", "recall", made, "--scopes", "0")
	exits(t, shell.Misused, "takes 1 argument", "recall")
}
