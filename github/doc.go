// Package github is Forge's side of GitHub. It authenticates as a GitHub App,
// answers questions about repositories, and publishes: it renders what GitHub
// should show of a run and makes the difference to what it shows. What a webhook
// delivery means is read by github/delivery.
//
// Reading order: client.go and transport.go (who calls, how fast, what a failure
// means), read.go and sweep.go (questions), then publish.go with github/render
// (runs out), and signals.go, which asks for github/feedback what people did with
// that. threads.go is the one reader of review threads, for both.
//
// Publishing is level-triggered. Every artefact — a comment, the pull request, a
// review, a check run — has a key and the hash of the content last written there,
// both kept in the run. Each carries its key in a hidden marker, so that after a
// crash it is found again and never made twice.
//
// signin.go stands apart: it acts for a person who signs in, with their own token,
// to learn who they are and what they can read.
//
// The package stores nothing: installation tokens live in memory alone.
package github
