package pipeline

import (
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// fillers are words that say nothing about what a message is about.
var fillers = strings.Fields(`a an and are as at be been but by can could does for from has have here if in into is it its
	may might no not of on or should so than that the then there this to was when where which will with would you your code line function`)

// words returns the words of a message that say what it is about, each once,
// without their endings.
func words(s string) []string {
	var out []string
	for _, w := range strings.Fields(normalise(s)) {
		if slices.Contains(fillers, w) {
			continue
		}
		for _, end := range []string{"ing", "ed", "es", "s"} {
			if rest, ok := strings.CutSuffix(w, end); ok && len(rest) > 3 {
				w = rest
				break
			}
		}
		if !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// alike is how much two messages share of their words, 0 to 1 (Dice).
func alike(a, b string) float64 {
	wa, wb := words(a), words(b)
	if len(wa)+len(wb) == 0 {
		return 0
	}
	both := 0
	for _, w := range wa {
		if slices.Contains(wb, w) {
			both++
		}
	}
	return 2 * float64(both) / float64(len(wa)+len(wb))
}

// sameCode reports that two findings are about the same lines, wherever they stand.
func sameCode(a, b *Finding) bool {
	ca, cb := squash(a.Code), squash(b.Code)
	switch {
	case ca == "" && cb == "":
		return a.File == b.File
	case ca == "" || cb == "":
		return false
	}
	return ca == cb || strings.Contains(ca, cb) || strings.Contains(cb, ca)
}

// alikeFailure is how much of their words the errors of a test must share to be the
// same failure, set on testdata/failures.txt.
const alikeFailure = 0.6

// quoted are values within an error: what a test got changes from one attempt to
// the next, what is wrong with it does not.
var quoted = lazyregexp.New("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|'[^']*'|\\b0x[0-9a-f]+\\b")

// sameError is how much two errors of one test share, 0 to 1, and whether they are
// most probably one failure.
func sameError(a, b string) (float64, bool) {
	plain := func(s string) string {
		first := text.FirstLine(s)
		return normalise(quoted.ReplaceAllString(first, " q "))
	}
	pa, pb := plain(a), plain(b)
	if pa == pb {
		return 1, true
	}
	s := alike(pa, pb)
	return s, s >= alikeFailure
}

// recogniseFailures gives the failures of a test run the fingerprints under which the run
// knows them already: of the same test, with an error that says the same of other values.
// The list is copied: events do not change.
func (r *Run) recogniseFailures(list []Failure) []Failure {
	out := slices.Clone(list)
	taken, known := map[string]bool{}, map[string][]*Issue{}
	for i := range out {
		taken[out[i].Fingerprint] = true
	}
	for i := range r.Failures {
		is := &r.Failures[i]
		known[is.Failure.Test] = append(known[is.Failure.Test], is)
	}
	for i := range out {
		f := &out[i]
		best, most := "", 0.0
		for _, is := range known[f.Test] {
			fp := is.Fingerprint()
			if fp == f.Fingerprint {
				best = ""
				break
			}
			if s, same := sameError(is.Failure.Error, f.Error); same && s > most && !taken[fp] {
				best, most = fp, s
			}
		}
		if best != "" {
			f.Fingerprint = best
			taken[best] = true
		}
	}
	return out
}

// Status says in words what has become of a finding or failure by an iteration.
func (i *Issue) Status(iteration int) string {
	switch {
	case i.State == IssueAccepted:
		return "accepted as known"
	case i.State == IssueDismissed:
		return "dismissed"
	case i.State == IssueFixed, i.State == IssueWithdrawn:
		return string(i.State)
	case i.Failure != nil && i.Failure.WorkedIn != 0:
		return "regression"
	case i.Back > 0 && i.Last == iteration:
		return "back again"
	case i.First < i.Last:
		return "still there"
	}
	return "new"
}
