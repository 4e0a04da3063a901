package quality

import (
	"fmt"
	"strings"

	"forge/pipeline/lazyregexp"
)

// unit is one that is told from others.
type unit struct {
	size   bool    // of bytes; else of time
	factor float64 // bytes, or nanoseconds
	per    string  // what follows a slash: "op" of "ns/op"
}

var (
	bytesWord = lazyregexp.New(`^(k|kilo|kibi|m|mega|mebi|g|giga|gibi|t|tera|tebi|p|peta|pebi)?(i)?(?:b|bytes?|o|octets?)$`)
	tens      = map[byte]int{'k': 1, 'm': 2, 'g': 3, 't': 4, 'p': 5}
	times     = map[string]float64{
		"ns": 1, "nanosecond": 1, "us": 1e3, "µs": 1e3, "microsecond": 1e3, "ms": 1e6, "msec": 1e6, "millisecond": 1e6,
		"s": 1e9, "sec": 1e9, "second": 1e9, "min": 60e9, "minute": 60e9, "h": 3600e9, "hr": 3600e9, "hour": 3600e9, "day": 86400e9,
	}
	// scale are the letters that du -h prints for units of size.
	scale = map[string]bool{"M": true, "G": true, "T": true, "P": true}
	// unitLike is a word that can only be a unit of size or time, known or not.
	unitLike = lazyregexp.New(`(?i)^(?:[kmgtp]i?(?:b|o|bps|bits?)?|[\w-]*(?:bytes?|bits?|octets?|seconds?|secs?|minutes?|hours?|days?|weeks?))$`)
)

// unitOf reads a word, or a setting that begins with one, as a unit.
func unitOf(word string) (u unit, known bool) {
	name, _, _ := strings.Cut(strings.TrimSpace(word), " ")
	name, u.per, _ = strings.Cut(strings.ToLower(strings.ReplaceAll(name, "μ", "µ")), "/")
	for _, t := range []string{name, strings.TrimSuffix(name, "s")} {
		if u.factor = times[t]; u.factor > 0 {
			return u, true
		}
	}
	m := bytesWord.FindStringSubmatch(name)
	switch {
	case name == "k": // as du prints it
		m = []string{name, "k", "i"}
	case m == nil || m[1] == "" && m[2] != "":
		return u, false
	}
	u.size, u.factor = true, 1
	if m[1] != "" {
		step := 1e3
		if m[2] != "" || strings.HasSuffix(m[1], "bi") {
			step = 1 << 10
		}
		for range tens[m[1][0]] {
			u.factor *= step
		}
	}
	return u, true
}

// unitWord is a word where it is a unit, else "".
func unitWord(w string) string {
	w = strings.TrimRight(w, ".,;:)")
	name, _, _ := strings.Cut(w, "/")
	if _, known := unitOf(w); known || unitLike.MatchString(name) {
		return w
	}
	return ""
}

// convert turns what was printed with a unit into the gate's: 600kB is not 600 bytes. A
// number without a unit, and a gate without one, are taken as they are.
func convert(v float64, printed, gate string) (float64, error) {
	if printed == "" || gate == "" || strings.EqualFold(printed, gate) {
		return v, nil
	}
	from, fits := unitOf(printed)
	to, known := unitOf(gate)
	switch {
	case !fits && !known && unitWord(printed) == "": // words for people
		return v, nil
	case !fits || !known || from.size != to.size || from.per != "" && from.per != to.per:
		return 0, fmt.Errorf("the command printed the unit %s where the gate's is %s: print %[2]s", printed, gate)
	}
	return v * from.factor / to.factor, nil
}
