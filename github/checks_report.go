package github

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline"
	"forge/pipeline/text"
)

// Report makes the checks a report of the test phase on a head: one suite for each
// check. Whatever is not a result on this very head verifies nothing, and None says
// why: no check started, some still run, or all of them were skipped.
func (c Checks) Report(head string) *pipeline.TestReport {
	t := &pipeline.TestReport{Head: head, None: c.none(head)}
	for _, k := range c.List {
		s := pipeline.Suite{Name: k.Name, Command: "commit status", TimedOut: k.Conclusion == "timed_out"}
		if k.App != "" {
			s.Command = "check run of " + k.App
		}
		if !k.Started.IsZero() && k.Ended.After(k.Started) {
			s.Millis = k.Ended.Sub(k.Started).Milliseconds()
		}
		switch k.State {
		case ChecksPassed:
			t.Passed++
			t.Names = append(t.Names, k.Name)
		case ChecksFailed:
			t.Failed++
			s.Exit = 1
			for _, f := range k.Failures {
				if !slices.ContainsFunc(t.Failures, func(o pipeline.Failure) bool { return o.Fingerprint == f.Fingerprint }) {
					t.Failures = append(t.Failures, f)
				}
			}
		default:
			t.Skipped++
		}
		t.Suites = append(t.Suites, s)
	}
	t.Total = len(c.List)
	slices.Sort(t.Names)
	t.Names = slices.Compact(t.Names)
	return t
}

func (c Checks) none(head string) string {
	switch {
	case head != c.Head:
		return fmt.Sprintf("the checks are those of %s, not of %s", text.ShortSHA(c.Head), text.ShortSHA(head))
	case c.State == ChecksNone:
		text := "no check started on " + text.ShortSHA(head)
		if !c.Since.IsZero() && c.Read.After(c.Since) {
			text += " within " + c.Read.Sub(c.Since).Round(time.Second).String()
		}
		return text + ": the repository has no CI for this branch, or it did not start"
	case c.State == ChecksRunning:
		return "checks still run: " + names(c.Of(ChecksRunning))
	case c.State == ChecksSkipped:
		return "nothing ran: " + names(c.Of(ChecksSkipped)) + " was skipped or neutral"
	}
	return ""
}

// names lists names, the first ten of them.
func names(list []string) string {
	if n := len(list) - 10; n > 0 {
		return strings.Join(list[:10], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(list, ", ")
}
