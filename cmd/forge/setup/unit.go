package setup

import (
	_ "embed"
	"fmt"
	"strings"
)

// The files by which a server is started again after a reboot.
const (
	unitSystemd = "systemd"
	unitCompose = "compose"
)

// Both are copies of those under .github/deploy, which go:embed cannot reach; a test
// holds them equal.
var (
	//go:embed forge.service
	serviceText string
	//go:embed compose.yml
	composeText string
)

// writeUnit writes what was asked for, with the set-up's folder in it.
func (s *setup) writeUnit() error {
	switch s.o.Unit {
	case "":
		return nil
	case unitSystemd:
		return s.write("forge.service", strings.ReplaceAll(serviceText, "/etc/forge", s.o.Dir), false)
	case unitCompose:
		return s.write("compose.yml", strings.ReplaceAll(composeText, "/etc/forge", s.o.Dir), false)
	}
	return fmt.Errorf("--write %s: there are %s and %s", s.o.Unit, unitSystemd, unitCompose)
}
