package learnings

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forge/pipeline"
)

func said(key, content string, weight float64) pipeline.Learning {
	return pipeline.Learning{Key: key, Content: content, Source: pipeline.SourceHuman, Author: pipeline.Actor{ID: 7, Login: "ann"}, Weight: weight, Base: 0.95}
}

// Whatever the texts, what stands around the section stays, and putting it in twice
// is putting it in once.
func TestSectionKeepsTheRest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"", "# Agents", "text", "- `x`", agentsBegin + " ", agentsEnd, "  " + agentsEnd + "\r"}), 0, 8)
		text := strings.Join(lines.Draw(t, "lines"), "\n")
		section := agentsSection([]pipeline.Learning{said("k", rapid.String().Draw(t, "words"), 1), said("l", agentsEnd+"\n"+agentsBegin, 1)}, "forge")
		once, err := withSection([]byte(text), section)
		if err != nil {
			return // it says what is wrong with the markers
		}
		twice, err := withSection(once, section)
		if err != nil || string(twice) != string(once) || strings.Count(string(once), agentsBegin) != 1 {
			t.Fatalf("withSection twice: %v\n%q\n%q", err, once, twice)
		}
		out, err := withSection(once, nil)
		if err != nil || strings.Contains(string(out), "forge:learnings") {
			t.Fatalf("taking it out: %v\n%q", err, out)
		}
		if rest := strings.TrimSpace(string(out)); !strings.Contains(text, agentsBegin) && rest != strings.TrimSpace(text) {
			t.Fatalf("left is %q of %q", rest, text)
		}
	})
}
