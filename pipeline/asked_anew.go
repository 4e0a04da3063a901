package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forge/pipeline/text"
)

// asksFor returns what a person's review asks for and nobody has done yet.
func (l *Loop) asksFor(review int64) []*Finding {
	var out []*Finding
	for i := range l.Requested {
		if f := &l.Requested[i]; review != 0 && f.Review == review {
			out = append(out, f)
		}
	}
	for i := range l.Findings {
		if is := &l.Findings[i]; review != 0 && is.Phase == PhaseReview && is.State == IssueOpen && is.Finding.Review == review {
			out = append(out, is.Finding)
		}
	}
	return out
}

// Unmet returns what people requested of the run's pull request and nobody has done, as notes
// for the run that follows it.
func (r *Run) Unmet() []string {
	var out []string
	add := func(f *Finding) {
		note := "a maintainer" + inReview(f)
		if i := slices.IndexFunc(r.Notes, func(n string) bool { return strings.HasSuffix(n, inReview(f)) }); i >= 0 {
			note = r.Notes[i]
		}
		if p := r.Published.Pull; p != nil {
			note += fmt.Sprintf(" (on #%d, which was given up)", p.Number)
		}
		out = append(out, note)
	}
	for i := range r.Findings {
		if is := &r.Findings[i]; is.Phase == PhaseReview && is.State == IssueOpen && is.Finding.Category == CategoryHuman {
			add(is.Finding)
		}
	}
	for i := range r.Requested {
		add(&r.Requested[i])
	}
	return out
}

// Heard says what the run has of a person's review: whether it asked for something, and
// whether some of that is not done yet.
func (r *Run) Heard(review int64) (asked, open bool) {
	asked = review != 0 && slices.ContainsFunc(r.Findings, func(is Issue) bool { return is.Finding.Review == review })
	open = len(r.asksFor(review)) > 0
	return asked || open, open
}

// askedAnew is Notice for what a person's review asks for by now: its comments and its text
// may have been edited, or be gone. What is not done yet takes the words over, or is taken
// back; what was done stays as it is.
func (r *Run) askedAnew(n Notice, ev func(EventType, Data) []Event, at time.Time) ([]Event, string) {
	if n.Review == nil || n.Feedback == nil {
		return nil, "nothing is known of the review"
	}
	edited := &Review{Head: n.Review.Head}
	back := map[string]bool{}
	for _, known := range r.asksFor(n.Feedback.Review) {
		f := *known
		f.Message = ""
		if i := slices.IndexFunc(n.Review.Findings, known.sameComment); i >= 0 {
			f.Message = n.Review.Findings[i].Message
		}
		if sameWish(Task{Title: f.Message}, Task{Title: known.Message}) {
			continue
		}
		edited.Findings = append(edited.Findings, f)
		back[f.Fingerprint] = f.Message == ""
	}
	if len(edited.Findings) == 0 {
		return nil, "what the review asks for and is not done yet is the same"
	}
	actor := n.Actor
	events := ev(EventChangesEdited, Data{Review: edited, Actor: &actor})
	left, open := len(edited.Findings), r.openIssues()
	for fingerprint, gone := range back {
		if gone {
			left--
			delete(open, fingerprint)
		}
	}
	var said []string
	if left > 0 {
		events = append(events, r.sentOn(actor, viaReview, at)...)
		said = append(said, text.Plural(left, "requested change has", "requested changes have")+" other words now")
	}
	if taken := len(edited.Findings) - left; taken > 0 {
		said = append(said, text.Plural(taken, "requested change is", "requested changes are")+" taken back")
	}
	return append(events, r.lastGone(open, actor, at)...), strings.Join(said, ", ")
}

// sameComment reports whether two findings are of one comment of a person's, or of one review's text.
func (f *Finding) sameComment(other Finding) bool {
	return f.Review == other.Review && f.Comment == other.Comment
}

// changesEdited gives what a person asks for the words that it has by now, and lets go
// what they have taken back. A review that was shown the old words begins anew; an
// implementer's work is held against the new ones.
func (r *Run) changesEdited(v *Review, by Actor) {
	shown := false
	for _, f := range v.Findings {
		r.Requested = slices.Clone(r.Requested)
		for i := range r.Requested {
			if known := &r.Requested[i]; known.sameComment(f) {
				r.editNote(known, f.Message, by)
				known.Message = f.Message
			}
		}
		r.Requested = slices.DeleteFunc(r.Requested, func(known Finding) bool { return known.Message == "" && known.sameComment(f) })
		for i := range r.Findings {
			is := &r.Findings[i]
			if is.Phase != PhaseReview || is.State != IssueOpen || !is.Finding.sameComment(f) {
				continue
			}
			r.editNote(is.Finding, f.Message, by)
			if f.Message == "" {
				is.State, is.By = IssueDismissed, by
				continue
			}
			now := *is.Finding
			now.Message = f.Message
			is.Finding, is.Disputed, shown = &now, "", true
		}
		if f.Message != "" {
			r.Counters.GrantedUntil = max(r.Counters.GrantedUntil, len(r.Iterations)+1)
		}
	}
	if shown && r.Active != nil && r.Active.Phase == PhaseReview {
		r.Active, r.Await, r.Last = nil, nil, nil
	}
}

// editNote has the note about a finding of a person's say what it says now; none of what is taken back.
func (r *Run) editNote(f *Finding, message string, by Actor) {
	i := slices.IndexFunc(r.Notes, func(note string) bool { return strings.HasSuffix(note, inReview(f)) })
	if i < 0 {
		return
	}
	r.Notes = slices.Clone(r.Notes)
	if message == "" {
		r.Notes = slices.Delete(r.Notes, i, i+1)
		return
	}
	now := *f
	now.Message = message
	r.Notes[i] = by.Login + inReview(&now)
}

// keptWords is a finding that a reviewer lists once more, with the words of the person who
// asked for it: a model's do not take their place.
func keptWords(known, found *Finding) *Finding {
	if known == nil || found == nil || known.Review == 0 || found.Review != 0 {
		return found
	}
	kept := *found
	kept.Message, kept.Category, kept.Review, kept.Comment = known.Message, known.Category, known.Review, known.Comment
	return &kept
}

// identify gives what a person asks for its identity. One whose words were replaced keeps that of
// the words that it had: asking for just these asks for something else. So does saying the
// same on another line.
func (l *Loop) identify(f *Finding) {
	f.Fingerprint = f.Digest()
	known := func(as func(*Finding) bool) bool {
		is := func(k *Finding) bool { return k != nil && k.Review != 0 && k.Fingerprint == f.Fingerprint && as(k) }
		return slices.ContainsFunc(l.Findings, func(i Issue) bool { return is(i.Finding) }) || slices.ContainsFunc(l.Requested, func(k Finding) bool { return is(&k) })
	}
	if known(f.elsewhere) {
		f.Fingerprint = digest("finding", f.Fingerprint, fmt.Sprint("line ", f.Line))
	}
	if known(func(k *Finding) bool { return normalise(k.Message) != normalise(f.Message) }) {
		f.Fingerprint = digest("finding", f.Fingerprint, fmt.Sprint(f.Review), fmt.Sprint(f.Comment))
	}
}

// elsewhere reports whether two findings are of a person's comments on different lines.
func (f *Finding) elsewhere(other *Finding) bool {
	return f.Comment != 0 && other.Comment != 0 && f.Comment != other.Comment && f.Line != other.Line
}
