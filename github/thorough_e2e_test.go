//go:build e2e

package github

func init() { thorough = true }
