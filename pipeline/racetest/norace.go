//go:build !race

// Package racetest says whether tests run under the race detector, which makes some many
// times slower: those do less there. It stores nothing.
package racetest

// Enabled reports whether the race detector is on.
const Enabled = false
