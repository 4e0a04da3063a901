//go:build !soak

package check

const wholeCorpus = false
