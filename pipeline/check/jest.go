package check

import (
	"encoding/json"
	"fmt"
	"strings"
)

// jestReport is the part that matters of what `jest --json` and `vitest
// --reporter=json` write.
type jestReport struct {
	TestResults []struct {
		Name             string `json:"name"` // the file, absolute
		Status           string `json:"status"`
		Message          string `json:"message"`
		AssertionResults []struct {
			AncestorTitles  []string `json:"ancestorTitles"`
			Title           string   `json:"title"`
			Status          string   `json:"status"` // passed, failed, pending, todo, skipped, disabled
			FailureMessages []string `json:"failureMessages"`
		} `json:"assertionResults"`
	} `json:"testResults"`
}

// parseJest reads the JSON report of Jest or Vitest. A test's name is
// "file > describe > title".
func parseJest(data []byte) (result, error) {
	var in jestReport
	if err := json.Unmarshal(data, &in); err != nil {
		return result{}, fmt.Errorf("read Jest report: %w", err)
	}
	var r result
	for _, file := range in.TestResults {
		if file.Status == "failed" && len(file.AssertionResults) == 0 {
			r.lose(file.Name)
			r.add(brokenJestFile(file.Name, file.Message))
		}
		for _, a := range file.AssertionResults {
			c := testcase{group: file.Name, status: skipped, file: file.Name}
			c.name = strings.Join(append(append([]string{file.Name}, a.AncestorTitles...), a.Title), " > ")
			switch a.Status {
			case "passed":
				c.status = passed
			case "failed":
				c.status = failed
				text, stack := splitStack(strings.Join(a.FailureMessages, "\n"))
				c.err = shorten(strings.TrimPrefix(text, "Error: "))
				locateJS(&c, stack)
			}
			r.add(c)
		}
	}
	return r, nil
}

// brokenJestFile is a file that failed before its first test.
func brokenJestFile(name, message string) testcase {
	c := testcase{name: name, group: name, status: failed, whole: true, file: name}
	message = clean(message)
	if _, details, ok := strings.Cut(message, "\n    Details:\n"); ok {
		message = details
	}
	if first := errorLine.FindString(message); first != "" {
		message = strings.TrimSpace(first) + "\n" + message
	}
	if syntaxWords.MatchString(message) {
		c.cause = causeSyntax
	}
	c.err = shorten(message)
	return c
}

// splitStack separates a JavaScript error's message from its frames.
func splitStack(s string) (message, stack string) {
	if i := strings.Index(s, "\n    at "); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
