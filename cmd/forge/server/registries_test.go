package server

import "testing"

// What Maven's settings call a mirror of the central registry is asked in its place.
func TestMirrorsCentral(t *testing.T) {
	for of, want := range map[string]bool{
		"central": true, "*": true, "external:*": true, "other, central": true, " *\n": true, "*,!other": true,
		"*,!central": false, "other": false, "external:http:*": false, "": false,
	} {
		if got := mirrorsCentral(of); got != want {
			t.Errorf("%q: %v", of, got)
		}
	}
}
