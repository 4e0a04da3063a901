//go:build !race

package work

const raceEnabled = false
