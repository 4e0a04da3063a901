//go:build !e2e

package server

const e2e = false // what takes long is played in short
