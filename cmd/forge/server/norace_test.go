//go:build !race

package server

// raceEnabled makes tests that are many times slower under the race detector
// smaller.
const raceEnabled = false
