//go:build !race

package main

// raceEnabled makes tests that are many times slower under the race detector
// smaller.
const raceEnabled = false
