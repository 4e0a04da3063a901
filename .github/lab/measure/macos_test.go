package measure

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The program and its tests, those with the tag e2e, too, have no error of types on macOS, which
// contributors have as well. A compiler says the same and takes twenty times as long.
func TestTypesOnMacOS(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"arm64", "amd64"} {
		t.Run(arch, func(t *testing.T) {
			t.Parallel()
			list, err := packages.Load(&packages.Config{
				Mode:       packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes,
				Dir:        filepath.Join("..", "..", ".."),
				Env:        append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0"),
				BuildFlags: []string{"-tags=e2e"},
				Tests:      true,
			}, "./...")
			if err != nil {
				t.Fatal(err)
			}
			packages.Visit(list, nil, func(p *packages.Package) {
				for _, e := range p.Errors {
					t.Error(e)
				}
			})
		})
	}
}
