package check

import (
	"strings"
	"testing"
)

// Covers S30: scripts that run one another would end the server by its memory.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	p := &nodePackage{Scripts: map[string]string{"a": strings.Repeat("npm run a && ", 10_000)}}
	left := maxInner
	if got := p.inner("npm run a && node --test", 3, &left); len(got) > 10*maxInner {
		t.Errorf("scripts that run one another come to %d bytes", len(got))
	}
	left = maxInner
	p.Scripts = map[string]string{"a": "npm run b", "b": "node --test"}
	if got := p.inner("npm run a", 3, &left); got != "node --test" {
		t.Errorf("inner = %q", got)
	}
}
