//go:build !e2e

package server_test

const e2e = false // what takes long is played in short
