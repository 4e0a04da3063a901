package learn

import (
	"strings"
	"testing"

	"forge/pipeline"
)

const shipping = `// Prices of parcels.
function shipCost(weight, zone) {
  const base = 7;
  if (weight > 30) return base * 3;
  return base + zone * 1_000;
}
module.exports.shipCost = shipCost;
`

// A fact that tells of what is nowhere in the code that it is about is none; the others are
// confirmed only where all that they tell of was looked up.
func TestUnfoundedFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content, absent string
		checked         bool
	}{
		{"`shipCost` takes the `weight` before the `zone`, and triples the base of 7 for a weight over 30.", "", true},
		{"`shipCost` returns 7 plus 1000 times the zone for a weight up to 30.", "", false}, // written in another way
		{"`shipCost` throws for a weight over 500.", "500", false},
		{"`shipCost` calls `lookupZone` to find the zone.", "lookupZone", false},
		{"`shipCost` calls `fee` to find the zone.", "fee", false},
		{"`shipCost` calls `lookupZone` for a weight over 500.", "lookupZone, 500", false},
		{"`shipCost` in `cost.js` returns `undefined` for no parcel.", "", true},
		{"`shipCost` does not call `lookupZone`.", "", true}, // it cites nothing
		{"`shipCost` is the only function that knows the base price.", "", true},
		{"The prices were agreed on in 2019.", "", true}, // it tells of no code
		{"shipCost throws for a weight over 500.", "500", true},
		{"shipCost triples the base of 7 for a weight over 30.", "", true},
		{"The limit of weights is 500 kilograms.", "500", true},
		{"shipCost calls lookupZone to find the zone.", "lookupZone", true},
		{"shipCost reads the zone_table first.", "zone_table", true},
		{"shipCost asks zones.lookup for it.", "lookup", true},
		{"shipCost asks ZoneTable for it.", "ZoneTable", true},
		{"The price is found by lookup(zone).", "lookup", true},
		{"lib/cost.js and package.json are read by Node.js, as GitHub and iOS do.", "", true},
		{"Prices answer with HTTP 500 as RFC 7231 says, see #812 and https://example.com/a_b?x=99.", "", true},
		{"The error(s) of module.exports.shipCost reach the caller.", "", true},
		{"shipCost does not call lookupZone.", "", true},
		{"`shipCost` triples the base for a weight over thirty.", "", true}, // 30
		{"`shipCost` throws for a weight over 1,500.", "1500", false},
		{"`shipCost` adds 1,000 times the zone.", "", false},
		{"`shipCost` is called a thousand times, for 30 million parcels.", "", true},
		{"Two of the three cases of `shipCost` are common.", "", true},
		{"`shipCost` calls itself for each zone, and calls back when it is done.", "", true},
		{"Calls wait for the base of `shipCost`.", "", true},
	} {
		l := learning("l", c.content, func(l *pipeline.Learning) { l.Tags, l.Paths = []string{StandFact.Tag()}, []string{"lib/cost.js"} })
		read := func(path string) (string, bool) { return shipping, path == "lib/cost.js" }
		if got := strings.Join(Unfounded(&l, read), ", "); got != c.absent {
			t.Errorf("%q: nowhere in the code is %q, want %q", c.content, got, c.absent)
		}
		Quote(&l, read)
		if got := Checked(&l, l.Cites) || len(l.Cites) == 0; got != c.checked && c.absent == "" {
			t.Errorf("%q: checked %v by %+v", c.content, got, l.Cites)
		}
		if got := Unfounded(&l, func(string) (string, bool) { return "", false }); got != nil {
			t.Errorf("%q, and nothing can be read: %q", c.content, got)
		}
		l.Tags = []string{StandAvoid.Tag()}
		if got := Unfounded(&l, read); got != nil {
			t.Errorf("%q as advice: %q", c.content, got)
		}
	}
}
