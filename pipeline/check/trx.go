package check

import (
	"encoding/xml"
	"fmt"
	"strings"

	"forge/pipeline/lazyregexp"
)

// trxReport is the part that matters of what `dotnet test --logger trx` writes.
type trxReport struct {
	XMLName xml.Name `xml:"TestRun"`
	Results []struct {
		ID      string `xml:"testId,attr"`
		Name    string `xml:"testName,attr"`
		Outcome string `xml:"outcome,attr"` // Passed, Failed, NotExecuted, …
		Message string `xml:"Output>ErrorInfo>Message"`
		Stack   string `xml:"Output>ErrorInfo>StackTrace"`
	} `xml:"Results>UnitTestResult"`
	Tests []struct {
		ID     string `xml:"id,attr"`
		Method struct {
			Class string `xml:"className,attr"`
		} `xml:"TestMethod"`
	} `xml:"TestDefinitions>UnitTest"`
	Summary struct {
		Outcome string   `xml:"outcome,attr"`
		Texts   []string `xml:"RunInfos>RunInfo>Text"`
	} `xml:"ResultSummary"`
}

var dotnetFrame = lazyregexp.New(`(?m) in (\S.*?):line (\d+)\s*$`)

// parseTRX reads a report of Visual Studio's test platform. A test's name is
// "Namespace.Class.Method", with its arguments if it has some.
func parseTRX(data []byte) (result, error) {
	var in trxReport
	if err := xml.Unmarshal(data, &in); err != nil {
		return result{}, fmt.Errorf("read TRX report: %w", err)
	}
	class := map[string]string{}
	for _, t := range in.Tests {
		class[t.ID], _, _ = strings.Cut(t.Method.Class, ",") // MSTest adds the assembly
	}
	var r result
	for _, t := range in.Results {
		c := testcase{name: t.Name, group: class[t.ID], status: skipped}
		if c.group != "" && !strings.HasPrefix(c.name, c.group+".") {
			c.name = c.group + "." + c.name
		}
		switch t.Outcome {
		case "Passed":
			c.status = passed
		case "NotExecuted", "NotRunnable", "Inconclusive", "Pending":
		default: // Failed, Error, Timeout, Aborted
			c.status = failed
			c.err = shorten(t.Message)
			if m := dotnetFrame.FindStringSubmatch(t.Stack); m != nil {
				c.file, c.line = strings.ReplaceAll(m[1], `\`, "/"), atoi(m[2])
			}
		}
		r.add(c)
	}
	r.partial = in.Summary.Outcome == "Aborted" || in.Summary.Outcome == "Error"
	return r, nil
}
