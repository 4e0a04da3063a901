package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forge/pipeline"
	"forge/pipeline/agent/change"
)

func dismissed(run *pipeline.Run) string {
	var b strings.Builder
	for _, is := range run.Findings {
		if is.Finding != nil && is.State == pipeline.IssueDismissed {
			fmt.Fprintf(&b, "%s%s %s\n", is.Finding.Category, where(is.Finding.File, is.Finding.Line, is.Finding.EndLine), is.Finding.Message)
		}
	}
	return b.String()
}

// checkJudgement reads what stage two submits. A severity that does not exist
// becomes error: what cannot be judged is not approved (lessons 5).
func checkJudgement(args json.RawMessage) (judgement, []string) {
	var in judgement
	if err := decode(args, &in); err != nil {
		return in, []string{err.Error()}
	}
	in.Summary, in.NeedsHuman = strings.TrimSpace(in.Summary), strings.TrimSpace(in.NeedsHuman)
	var bad []string
	if in.Summary == "" {
		bad = append(bad, "summary is missing")
	}
	if in.Risk < 0 || in.Risk > 100 {
		bad = append(bad, fmt.Sprintf("risk %d is not within 0 to 100", in.Risk))
	}
	if len(in.Findings) > maxFindings {
		bad = append(bad, fmt.Sprintf("%d findings are too many; report the %d that matter most", len(in.Findings), maxFindings))
	}
	for i := range in.Findings {
		f := &in.Findings[i]
		f.Message, f.Category = strings.TrimSpace(f.Message), pipeline.Category(strings.ToLower(strings.TrimSpace(string(f.Category))))
		f.Severity = severity(string(f.Severity))
		if f.Message == "" {
			bad = append(bad, fmt.Sprintf("finding %d has no message", i+1))
		}
		if f.Confidence < 0 || f.Confidence > 1 {
			bad = append(bad, fmt.Sprintf("finding %d: confidence %v is not within 0 to 1", i+1, f.Confidence))
		}
		if f.Category == "" || f.Category == pipeline.CategoryCompliance {
			f.Category = pipeline.CategoryCorrectness
		}
		// These are Forge's to say.
		f.ID, f.Fingerprint, f.Code, f.Criterion = "", "", "", ""
	}
	return in, bad
}

// severity reads a model's word, with the names that people use (R6).
func severity(s string) pipeline.Severity {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "blocker":
		return pipeline.SeverityCritical
	case "minor":
		return pipeline.SeverityWarning
	}
	if pipeline.Severity(s).Rank() == 0 {
		return pipeline.SeverityError
	}
	return pipeline.Severity(s)
}

// settleFinding checks a finding's place against the file, fills in the code it
// is about, and tries its suggestion. A place that does not exist is dropped, the
// finding never (lessons 8).
func (p *phase) settleFinding(ctx context.Context, f *pipeline.Finding, c change.Change) error {
	f.File = strings.TrimPrefix(strings.TrimSpace(f.File), "./")
	var lines []string
	var content string
	if f.File != "" {
		known := slices.Contains(p.job.Tree, f.File) || slices.ContainsFunc(c.Files, func(x *change.File) bool { return x.Path == f.File })
		if p.job.Workspace != nil {
			clean, err := inside(f.File)
			var data []byte
			if err == nil {
				data, err = p.job.Workspace.Read(ctx, clean)
			}
			if err != nil && ends(ctx, err) {
				return err
			}
			if err == nil && isText(data) {
				known, content = true, string(data)
				lines = splitLines(content)
			}
		}
		if !known {
			f.Message += fmt.Sprintf(" (reported for %s, which does not exist)", f.File)
			f.File, f.Line, f.EndLine = "", 0, 0
		}
	}
	if f.EndLine == f.Line {
		f.EndLine = 0
	}
	last := max(f.Line, f.EndLine)
	if f.File == "" || f.Line < 1 || f.EndLine != 0 && f.EndLine < f.Line || lines != nil && last > len(lines) {
		f.Line, f.EndLine = 0, 0
	}
	if f.Line > 0 && lines != nil {
		f.Code = strings.Join(lines[f.Line-1:last], "\n")
	}
	if f.Fix != nil {
		f.Fix.Description = strings.TrimSpace(f.Fix.Description)
		if f.Fix.Replacement != nil {
			tryReplacement(f, content)
		}
		if f.Fix.Description == "" && f.Fix.Replacement == nil && f.Fix.Diff == "" {
			f.Fix = nil
		}
	}
	f.Fixable = f.Fix != nil
	return nil
}

// identify numbers findings and gives a fingerprint to those that have none. The same
// finding twice is one, with the worse severity and the higher confidence; the same
// words at another place are another (lessons 25).
func identify(list []pipeline.Finding) []pipeline.Finding {
	out := []pipeline.Finding{}
	type place struct {
		fingerprint, file string
		line, end         int
	}
	at := map[place]int{}
	for _, f := range list {
		words := f.Digest()
		f.Fingerprint = firstOf(f.Fingerprint, words)
		here := place{words, f.File, f.Line, f.EndLine}
		if i, twice := at[here]; twice {
			if f.Severity.Rank() > out[i].Severity.Rank() {
				out[i].Severity = f.Severity
			}
			out[i].Confidence = max(out[i].Confidence, f.Confidence)
			continue
		}
		at[here] = len(out)
		f.ID = fmt.Sprintf("F%d", len(out)+1)
		out = append(out, f)
	}
	return out
}
