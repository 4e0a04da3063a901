//go:build soak

package server

const soak = true
