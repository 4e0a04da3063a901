// Package webhook receives GitHub's deliveries: it verifies a delivery, keeps it,
// and answers. Nothing else happens inside a request; what a delivery means is
// found out later, from what was kept.
//
// A delivery is answered 202 once it is on disk, and never before. All deliveries
// that wait at a moment are committed together by one goroutine, so that a burst
// costs few commits. What cannot be kept is answered 503, so that GitHub shows it
// as failed and it can be delivered again.
//
// Monitors of production send to doors of their own (see Source) that lead to the
// same place.
//
// The package stores nothing itself: a keeper does.
package webhook
