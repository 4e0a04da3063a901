package align

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
)

const (
	pixels    = `(\d{3,4}) ?-?(?:px|pixels?)\b`
	wholePage = `(?:pages?|app|site|ui|forms?|dashboard|views?|layout)`
)

// Each says by its group from how many pixels on something works.
var smallest = []*lazyregexp.Regexp{
	lazyregexp.New(`\b(?:smallest|minimum|minimal|min\.?|narrowest|base|kleinste[rsn]?|plus petite?|más pequeñ[oa]|` +
		`minimale[rsn]?|mínim[oa])[^.;,]{0,40}?` +
		`(?:screens?|viewports?|breakpoint|browser windows?|displays?|devices?|bildschirm\w*|écran|pantalla)[^.;,\d]{0,30}?` + pixels),
	lazyregexp.New(`\b(?:viewport|screen|pantalla|écran)[^.;,\d]{0,12}(?:minimum|minimal|mínima|minimal)[^.;,\d]{0,20}` + pixels),
	lazyregexp.New(`\b(?:pages?|layouts?|screens?|site|app|ui|dashboard|forms?|widths?|responsive|works?|usable|` +
		`supports?)\b[^.;,\d]{0,40}\bdown to (?:a width of )?` + pixels),
	lazyregexp.New(`\b(?:works?|usable|supported|functions?|renders?)\b[^.;,\d]{0,30}\b(?:from|starting at|ab) ` + pixels),
	lazyregexp.New(`\b(?:screens?|viewports?|windows?|devices?|widths?)[^.;,\d]{0,20}(?:below|under|smaller than|` +
		`narrower than|less than) ` + pixels +
		`[^.;]{0,20}(?:not (?:be )?supported|unsupported|get a notice)`),
	lazyregexp.New(`\b(?:(?:lay\w* out|design\w*|build\w*) (?:the|all|each|every) (?:[a-z]+ )?` + wholePage +
		`|` + wholePage + ` (?:is|are) (?:laid out|designed|built|made)) for ` +
		`(?:screens?|viewports?|displays?|devices?|windows?) (?:from ` + pixels + `|of ` + pixels + `(?: and up| or more| upwards))`),
	lazyregexp.New(`\bbase styles? (?:are |is )?for ` + pixels),
	lazyregexp.New(`\b` + wholePage + ` (?:needs?|requires?|expects?|wants?|assumes?) (?:a |screens? |displays? |windows? |viewports? |width |of |` +
		`with )*(?:at least|a minimum of|min\.?) ` + pixels),
	lazyregexp.New(`(?:^(?:the )?|\b` + wholePage + `(?:'s)? (?:has |have |with )?(?:a )?)(?:minimum|minimal|min\.?|smallest) (?:page |screen |layout |` +
		`window |supported )?width(?: is| of|:)? (?:of )?` + pixels),
	lazyregexp.New(`\b(?:works?|usable|readable|fits?|supports?|supported|runs?)\b[^.;,\d]{0,20}\b(?:on|with|for) (?:(?:screens?|phones?|displays?|` +
		`devices?) (?:of |with )?)?` + pixels +
		` (?:wide )?(?:phones?|screens?|devices?|displays?|viewports?)\b`),
	lazyregexp.New(`\bsupports? (?:all )?(?:screens?|phones?|viewports?|widths?|devices?|displays?) (?:from|down to|starting at|of) ` + pixels),
}

func readViewport(s *sentence) []Fact {
	for _, re := range smallest {
		m := re.FindStringSubmatchIndex(s.low)
		if m == nil || denied.MatchString(s.low[:m[0]]) || gone.MatchString(s.low[:m[0]]) {
			continue
		}
		if m[2] < 0 { // the other way to say it
			m = m[2:]
		}
		n, _ := strconv.ParseFloat(s.low[m[2]:m[3]], 64)
		return []Fact{{Key: "smallest", Value: fmt.Sprintf("%g px", n), number: n}}
	}
	return nil
}

// clashViewport wants what is smaller to be held: who starts wider does not.
func clashViewport(x, y *Fact, peers bool) bool {
	return aligned(x, y) && (y.number > x.number || peers && x.number > y.number)
}

// Amounts of time and of bytes.
var (
	amount = lazyregexp.New(`(\d+(?:[,.]\d+)*) ?(ms|milliseconds?|s|secs?|seconds?|sekunden?|secondes?|segundos?|` +
		`minutes?|minuten|min|hours?|kb|kib|mb|mib|gb|gib|bytes|megabytes?|kilobytes?)\b`)
	capped = lazyregexp.New(`(?:\b(?:within|in|under|below|less than|at most|no more than|not more than|(?:not|` +
		`never) (?:exceed|take (?:more|longer) than|be (?:larger|bigger|slower) than)|` +
		`max(?:imum)?(?: of| is)?|limited to|limit(?: is| of)?|innerhalb von|höchstens|unter|en moins de|au plus|` +
		`en menos de|como máximo|faster than|is capped at|smaller than)|<=?|≤)\s*(?:of )?$|` +
		`^[^:;.]{0,40}\b(?:latency|response time|max(?:imum)?|limit|budget)\b[^:;.]{0,40}:\s*$`)
	refuses = lazyregexp.New(`\b(?:refuse|reject|block|deny|drop)\w*\b.*\b(?:over|above|larger than|bigger than|` +
		`more than|exceeding)\s*$`)
	upTo    = lazyregexp.New(`\b(?:up to|as much as|bis zu|jusqu'à|hasta)\s*$`)
	allowed = lazyregexp.New(`\b(?:can|may|allow\w*|accept\w*|permit\w*|grows?|dürfen|darf|können|kann|peut|puede)\b`)
	loosely = lazyregexp.New(`\b(?:may|can|is allowed to|takes?|grows? to|reach(?:es)?|darf|kann|peut|puede)\s*(?:take|` +
		`be|grow to|reach|need)?\s*(?:about|around|as much as|as long as|some)?\s*$`)
	other = lazyregexp.New(`\b(?:time[- ]?outs?|retr(?:y|ies)|intervals?|poll\w*|ttl|expir\w*|every|ago|debounce|delay|` +
		`sleep|backoff|per (?:second|minute))\b`)
	measure = lazyregexp.New(`\b(?:memory|ram|heap|disk|gzip(?:ped)?|cpu|build|cold|first|image|bandwidth)\b`)
	centile = lazyregexp.New(`\b(?:p\d\d|median|average|mean|\d\dth percentile)\b`)
	units   = map[string]float64{"ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "sekunde": 1000, "sekunden": 1000, "seconde": 1000,
		"segundo": 1000, "minute": 60e3, "minuten": 60e3, "min": 60e3, "hour": 3600e3, "byte": 1, "kb": 1e3, "kib": 1 << 10, "kilobyte": 1e3,
		"mb": 1e6, "mib": 1 << 20,
		"megabyte": 1e6, "gb": 1e9, "gib": 1 << 30}
)

func readLimit(s *sentence) []Fact {
	if other.MatchString(s.low) {
		return nil
	}
	var out []Fact
	for _, m := range amount.FindAllStringSubmatchIndex(s.low, -1) {
		unit := s.low[m[4]:m[5]]
		if unit != "s" && unit != "ms" {
			unit = strings.TrimSuffix(unit, "s")
		}
		before := s.low[:m[0]]
		f := Fact{Key: "size", number: quantity(s.low[m[2]:m[3]]) * units[unit], Value: s.low[m[0]:m[1]]}
		f.about, f.next = subject(s.low)
		if !strings.Contains(unit, "b") { // all of bytes have one
			f.Key = "time"
		}
		switch {
		case upTo.MatchString(before) && allowed.MatchString(before), loosely.MatchString(before) && !denied.MatchString(before):
			f.role = "loose"
		case capped.MatchString(before), refuses.MatchString(before), upTo.MatchString(before):
			f.role = "cap"
		default:
			continue
		}
		f.has, f.not = uniq(measure.FindAllString(s.low, -1)), uniq(centile.FindAllString(s.low, -1))
		out = append(out, f)
	}
	return out
}

// quantity reads a number in which a comma or a point may part thousands.
func quantity(s string) float64 {
	if at := strings.LastIndexAny(s, ",."); at >= 0 && (len(s)-at != 4 || s[0] == '0') {
		s = strings.NewReplacer(",", "", ".", "").Replace(s[:at]) + "." + s[at+1:]
	} else {
		s = strings.NewReplacer(",", "", ".", "").Replace(s)
	}
	n, _ := strconv.ParseFloat(s, 64)
	return n
}

// clashLimit finds what is allowed beyond a bound, and a bound that is wider than the one
// that is there already.
func clashLimit(x, y *Fact, peers bool) bool {
	const near = 1.05 // 10 MB and 10 MiB
	if !sameSubject(x, y) || len(x.not) > 0 && len(y.not) > 0 && !meet(x.not, y.not) || !slices.Equal(weighed(x.has), weighed(y.has)) {
		return false
	}
	wider := y.number > x.number*near
	switch {
	case x.role == "cap" && y.role == "loose":
		return wider
	case x.role == "loose" && y.role == "cap":
		return x.number > y.number*near
	}
	return x.role == "cap" && wider && !peers
}

// weighed leaves out of what an amount is of what changes nothing between two of a subject.
func weighed(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "gzipped" || s == "gzip" || s == "cold" })
}

var (
	port      = lazyregexp.New(`\bport(?: is| number| number is|:| =)? (\d{2,5})\b`)
	portAlone = lazyregexp.New(`^(?:the |our )?(?:listen(?:ing)? |http |server |service |default )?port(?: number)?(?: is|:|` +
		` =) \d{2,5}$`) // of the program as a whole
	listens   = lazyregexp.New(`\b(?:listen\w*|starts?|started|serv(?:e|es|ed)|runs?|binds?|exposes?|reachable|available|answers?|lauscht|écoute|escucha)\b`)
	otherPort = lazyregexp.New(`\b(?:metrics|admin|debug|pprof|health|proxy|database|postgres\w*|mysql|redis|smtp|grpc|` +
		`websocket|mapped|forward\w*|behind|test)\b`)
)

func readPort(s *sentence) []Fact {
	m := port.FindAllStringSubmatchIndex(s.low, -1)
	if len(m) != 1 || !listens.MatchString(s.low) && !portAlone.MatchString(s.low) || otherPort.MatchString(s.low) || stance(s.low, m[0][0], m[0][1]) != wanted {
		return nil
	}
	f := Fact{Key: "listen", Value: s.low[m[0][2]:m[0][3]]}
	f.about, f.next = subject(s.low)
	if portAlone.MatchString(s.low) {
		f.role = declared
	}
	return []Fact{f}
}

func clashPort(x, y *Fact, _ bool) bool {
	return x.Value != y.Value && (sameSubject(x, y) || x.role == declared && y.role == declared && aligned(x, y))
}
