package lock

import (
	"fmt"
	"slices"
	"testing"
)

func TestLines(t *testing.T) {
	var none *Update
	if got := none.Lines(); got != nil {
		t.Errorf("of nothing: %q", got)
	}
	u := &Update{Packages: []Package{
		{Manager: "go", Name: "example.com/b", Version: "v1.0.0", Indirect: true}, {Manager: "go", Name: "example.com/c", Version: "v1.1.0", From: "v1.0.0"},
		{Manager: "npm", Dir: "web", Name: "left", Version: "1.0.0"},
	}}
	want := []string{"go: example.com/c v1.0.0 → v1.1.0, example.com/b v1.0.0 (indirect)", "npm in web: left 1.0.0"}
	if got := u.Lines(); !slices.Equal(got, want) {
		t.Errorf("Lines = %q, want %q", got, want)
	}
	u = &Update{}
	for i := range mostNamed + 2 {
		u.Packages = append(u.Packages, Package{Manager: "npm", Name: fmt.Sprintf("p%02d", i), Version: "1"})
	}
	if got := u.Lines()[0]; got[len(got)-len("p39 1, 2 more"):] != "p39 1, 2 more" {
		t.Errorf("of many: %q", got)
	}
}
