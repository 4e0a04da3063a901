//go:build e2e

package shipping_test

import "testing"

// Covers S1: what is shipped was tested in bubblewrap.
func TestInSandbox(t *testing.T) { t.Run("shipping", TestShip) }
