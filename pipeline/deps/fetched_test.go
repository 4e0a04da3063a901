package deps

import (
	"slices"
	"testing"
)

func TestNotFetched(t *testing.T) { // D1: said by name
	t.Parallel()
	got := NotFetched(map[string][]byte{
		".gitmodules":    []byte("[submodule \"x\"]\n\tpath = third_party/x\n\turl = https://git.example/x\n[submodule \"y\"]\n\turl = ../y\n\tpath = y\n"),
		".gitattributes": []byte("# *.psd filter=lfs\n*.bin filter=lfs diff=lfs merge=lfs -text\n*.go text\n"),
	})
	want := []string{"submodules are not fetched: empty for agents and tests is third_party/x, y (`.gitmodules`)",
		"files of Git LFS are not fetched: a pointer for agents and tests is *.bin (`.gitattributes`)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := NotFetched(map[string][]byte{".gitattributes": []byte("*.go text\n")}); got != nil {
		t.Errorf("got %q of a repository that is whole", got)
	}
}
