package quality

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// sarifLog is what is read of a SARIF 2.1.0 file.
type sarifLog struct {
	Runs *[]struct {
		Invocations []struct{ ExecutionSuccessful *bool }
		Results     *[]struct {
			BaselineState string
			RuleID        string `json:"ruleId"`
			Level         string `json:"level"`
			Kind          string `json:"kind"`
			Message       struct{ Text, Markdown string }
			Suppressions  []struct{ Status string }
			Locations     []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine int }
				}
			}
		}
	}
}

// ReadSARIF counts the findings of a SARIF file, with their places. Root is the folder
// of the repository as the tool saw it.
func ReadSARIF(data []byte, root string) (measure.Reading, error) {
	var log sarifLog
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &log); err != nil {
		return measure.Reading{}, fmt.Errorf("it is no SARIF: %w", err)
	}
	if log.Runs == nil || len(*log.Runs) == 0 {
		return measure.Reading{}, errors.New("it is no SARIF file, or holds no run: there is no list runs with an entry")
	}
	var places []measure.Place
	for _, run := range *log.Runs {
		for _, call := range run.Invocations {
			if call.ExecutionSuccessful != nil && !*call.ExecutionSuccessful {
				return measure.Reading{}, errors.New("the tool says of itself that it did not end well (executionSuccessful is false)")
			}
		}
		if run.Results == nil {
			return measure.Reading{}, errors.New("a run has no list of results, which says that the tool did not look")
		}
		for _, f := range *run.Results {
			suppressed := false
			for _, s := range f.Suppressions {
				suppressed = suppressed || s.Status == "" || s.Status == "accepted"
			}
			if suppressed || f.BaselineState == "absent" || f.Level == "none" || f.Kind != "" && f.Kind != "fail" && f.Kind != "open" && f.Kind != "review" {
				continue
			}
			p := measure.Place{Rule: text.Clip(f.RuleID, 100), Message: text.Clip(text.OneLine(f.Message.Text+f.Message.Markdown), 300)}
			if len(f.Locations) > 0 {
				at := f.Locations[0].PhysicalLocation
				p.File, p.Line = localName(at.ArtifactLocation.URI, root), max(0, at.Region.StartLine)
			}
			places = append(places, p)
		}
	}
	r := measure.One(float64(len(places)))
	r.Places = places
	return r, nil
}

// localName makes a path in the repository of a SARIF file's address.
func localName(uri, root string) string {
	name := uri
	if u, err := url.Parse(uri); err == nil && (u.Scheme == "file" || u.Scheme == "") && u.Path != "" {
		name = u.Path
	}
	if rest, inside := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/"); inside && root != "" {
		name = rest
	}
	if name = path.Clean(name); strings.HasPrefix(name, "../") {
		return "" // no file of the repository
	}
	return text.Clip(name, 300)
}
