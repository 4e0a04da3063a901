package learn

import (
	"slices"
	"testing"

	"forge/pipeline"
)

// Covers L3: of what a run taught itself each sentence names something that stands in its record
// or files, or the whole is marked and hardly sure.
func TestMarkUnchecked(t *testing.T) {
	t.Parallel()
	const record = "finding: error correctness in lib/ship.js, fixed\ntool error: run_tests go test ./... in test: exit status 1\n"
	const file = "lib/ship.js\nfunction shipCost(weight, zone) {\n\treturn weight > 250 ? 30 : rates[zone]\n}\n"
	for content, want := range map[string]bool{
		"`shipCost` takes a zone.":                                        true,
		"shipCost takes a zone.":                                          true,
		"lib/ship.js holds the rates.":                                    true,
		"The findings were about ship.js alone.":                          true,
		"Run `go test ./...` from the root.":                              true,
		"Parcels over 250 cost 30.":                                       true,
		"Use `errors.Join` in `shipCost`, e.g. for its zone.":             true, // advice may name what is not there yet
		"Prices change on Mondays alone.":                                 false,
		"Always ask the owner before a rate changes.":                     false,
		"`shipCost` takes a zone. Changes of it can be approved at once.": false,
		"`shipCost` asks `lookupZone`.":                                   false,
		"`lookupZone` finds zones.":                                       false,
		"Use `lookupZone` for zones.":                                     false,
		"Parcels over 600 are refused.":                                   false,
		"Parcels over 2 are refused.":                                     false,
		"GitHub is asked first.":                                          false,
		"運賃は月曜日に変わります。":                                                   false,
		"`shipCost` は地域を取ります。レビューは不要です。":                                  false,
	} {
		l := pipeline.Learning{Content: content, Source: pipeline.SourceReflection, Base: 0.5, Confidence: 0.5}
		if len(content) > 3 && (content[:3] == "Use" || content[:3] == "Run") {
			l.Type = pipeline.LearningProcedural
		}
		MarkUnchecked(&l, record, file)
		if got := !slices.Contains(l.Tags, TagUnchecked); got != want || (l.Base == 0.5) != want || l.Confidence != l.Base {
			t.Errorf("MarkUnchecked(%q): looked up %t, want %t: %+v", content, got, want, l)
		}
	}
	l := pipeline.Learning{Content: "Prices change on Mondays.", Source: pipeline.SourceReflection, Base: 0.1}
	if MarkUnchecked(&l, record, file); l.Base != 0.1 {
		t.Errorf("Check makes it surer: %+v", l)
	}
}

// A pattern of which one source was looked up is.
func TestConsolidateUnchecked(t *testing.T) {
	t.Parallel()
	tagged := pipeline.Learning{Key: "a", Content: "The prices of the shop are read from `rates`.", State: pipeline.LearningActive, Source: pipeline.SourceReflection,
		Weight: 1, Confidence: 0.25, Run: 1, Tags: []string{TagUnchecked}}
	plain := tagged
	plain.Key, plain.Run, plain.Tags = "b", 2, nil
	for _, c := range []struct {
		list []pipeline.Learning
		want bool
	}{{[]pipeline.Learning{tagged, plain}, false}, {[]pipeline.Learning{plain, tagged}, false}, {[]pipeline.Learning{tagged, tagged}, true}} {
		m := Consolidate(c.list)
		if len(m) != 1 || slices.Contains(m[0].Into.Tags, TagUnchecked) != c.want {
			t.Errorf("%+v: %+v; want it marked: %t", c.list, m, c.want)
		}
	}
}
