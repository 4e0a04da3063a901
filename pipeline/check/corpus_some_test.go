//go:build e2e && !soak

package check

const wholeCorpus = false
