package metrics

import (
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lens"
)

// folders is how many folders of a run are counted.
const folders = 8

// finishRework adds where work was sent back, and what came of what lenses alone have seen.
func (m *measurer) finishRework() {
	var places []string
	for i := range m.run.Iterations {
		if impl := m.run.Iterations[i].Impl; impl != nil {
			for _, file := range impl.Files {
				place, _, inside := strings.Cut(file, "/")
				if !inside {
					place = "."
				}
				if !slices.Contains(places, place) && len(places) < folders {
					places = append(places, place)
				}
			}
		}
	}
	for _, place := range places {
		m.sums.add(m.ended, Rework, place, int64(len(m.run.Bounces)))
	}
	for _, f := range m.findings {
		if slices.Contains(lens.All(), lens.Lens(f.lens)) {
			mended := slices.ContainsFunc(m.run.Findings, func(is pipeline.Issue) bool {
				return is.Finding != nil && is.Fingerprint() == f.fingerprint && is.State == pipeline.IssueFixed
			})
			m.sums.add(m.ended, LensMended, f.lens, one(mended))
		}
	}
}
