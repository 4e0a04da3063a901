//go:build e2e

package incidents

import "testing"

// [TestKillsAroundRollBack] a hundred times.
func TestHundredKillsAroundRollBack(t *testing.T) { killAroundRollBack(t, 100) }
