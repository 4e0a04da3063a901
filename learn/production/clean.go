package production

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// What is kept of an observation.
const (
	maxTitle  = 200     // characters
	maxText   = 4 << 10 // bytes
	maxName   = 200     // characters of a name of anything
	maxGroup  = 500     // bytes of what a source calls a group
	maxFrames = 30      //
	maxURL    = 1000    // bytes
	maxLabels = 50      // that are looked at
	maxAlerts = 2000    // of one message
)

var (
	hiddenComment = lazyregexp.New(`(?s)<!--.*?(-->|$)`)
	commitName    = lazyregexp.New(`^[0-9a-f]{7,64}$`)
)

// shown takes out of a text what people do not see and programs act on, and what
// looks like a credential: alerts quote requests.
func shown(s string, most int) string {
	s = text.Head(s, 4*most)
	s = strings.Map(text.Visible, strings.ToValidUTF8(s, "\uFFFD"))
	return text.Scrub(hiddenComment.ReplaceAllString(s, ""))
}

// line is a text in one line of at most most characters.
func line(s string, most int) string { return text.Clip(text.OneLine(shown(s, most)), most) }

// name is a short line, such as a label's value.
func name(s string) string { return line(s, maxName) }

// words is a text of several lines.
func words(s string) string { return text.Within(strings.TrimSpace(shown(s, maxText)), maxText) }

// link is an address of a page, "" when it is anything else.
func link(s string) string {
	if len(s) > maxURL || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return ""
	}
	return text.Scrub(s)
}

// commit is the name of a commit, "" when it is none.
func commit(s string) string {
	if s = strings.ToLower(strings.TrimSpace(s)); commitName.MatchString(s) {
		return s
	}
	return ""
}

// when reads a time of RFC 3339, or seconds since 1970. Times that cannot be are
// none: Alertmanager writes the year 1 for "not ended".
func when(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse("2006-01-02T15:04:05.999999", s) // Sentry leaves the zone out
	}
	if n, bad := strconv.ParseInt(s, 10, 64); err != nil && bad == nil && n > 0 {
		for n > 1<<34 { // milliseconds, or smaller parts of a second
			n /= 1000
		}
		t, err = time.Unix(n, 0), nil
	}
	if err != nil || t.Year() < 2000 || t.Year() > 2200 {
		return time.Time{}
	}
	return t.UTC()
}

// figure reads a number as people and templates write it, nil when it is none.
func figure(s string) *float64 {
	s = strings.TrimSpace(s)
	percent := strings.HasSuffix(s, "%")
	f, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(s, "%")), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	if percent {
		f /= 100
	}
	return &f
}

// whole reads a whole number that is not under 0, as some senders write it with a point
// or an exponent; what is none is 0.
func whole(s string) int {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0
	}
	return int(f)
}

// number64 reads an id of GitHub's, which are over 32 bits by now; what is none is 0.
func number64(s string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// severity reads the words that monitors use.
func severity(s string) Severity {
	switch strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), "-", "") {
	case "critical", "crit", "fatal", "page", "emergency", "alert", "p0", "p1", "sev0", "sev1", "disaster":
		return SeverityCritical
	}
	return SeverityWarning
}

// finish cuts what all observations have, and says what else is missing.
func (o *Observation) finish(received time.Time) {
	if o.Title == "" {
		o.Title = map[Kind]string{KindAnomaly: "An anomaly", KindError: "An error", KindHealth: "A failed health check"}[o.Kind]
	}
	if o.At.IsZero() || o.At.After(received) { // by a clock that is ahead it would come from what was deployed later
		o.At = received.UTC()
	}
	if o.Since.After(o.At) {
		o.Since = time.Time{}
	}
	if o.Error != nil && len(o.Error.Stack) > maxFrames {
		o.Error.Stack = o.Error.Stack[:maxFrames]
	}
}

// ByPerson is what a person says goes wrong, cleaned: critical, and with nobody who will say
// that it is over. Said again in the same group it is the same.
func (o Observation) ByPerson() Observation {
	o.Kind, o.Severity, o.Status, o.Each, o.Error = KindError, SeverityCritical, StatusFiring, true, &Error{Frequency: 1}
	o.Source, o.Environment, o.Group = name(o.Source), name(o.Environment), name("said/"+o.Group)
	o.Title, o.Text, o.At = line(o.Title, maxTitle), words(o.Text), o.At.UTC().Truncate(time.Microsecond)
	return o
}
