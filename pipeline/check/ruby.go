package check

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

// rspecReport is the part that matters of what `rspec --format json` writes.
type rspecReport struct {
	Messages []string `json:"messages"` // errors outside of examples, among others
	Examples []struct {
		Description string `json:"full_description"`
		Status      string `json:"status"` // passed, failed, pending
		File        string `json:"file_path"`
		Line        int    `json:"line_number"`
		Exception   struct {
			Class     string   `json:"class"`
			Message   string   `json:"message"`
			Backtrace []string `json:"backtrace"`
		} `json:"exception"`
	} `json:"examples"`
}

var (
	rspecLoading = lazyregexp.New(`An error occurred while loading (\S+?)\.?(?: - .*)?\n`)
	rubyFrame    = lazyregexp.New(`(?m)^(?:# )?\s*([^\s:'"]+\.rb):(\d+)(?::in |$|:)`)
)

// parseRSpec reads the JSON report of RSpec. A test's name is "file > description".
func parseRSpec(data []byte) (result, error) {
	var in rspecReport
	if err := json.Unmarshal(data, &in); err != nil {
		return result{}, fmt.Errorf("read RSpec report: %w", err)
	}
	var r result
	for _, e := range in.Examples {
		file := path.Clean(e.File)
		c := testcase{name: file + " > " + e.Description, group: file, status: skipped, file: file, line: e.Line}
		switch e.Status {
		case "passed":
			c.status = passed
		case "failed":
			c.status = failed
			c.err = shorten(e.Exception.Message)
			if kind := e.Exception.Class; kind != "" && !strings.HasPrefix(kind, "RSpec::") {
				c.err = shorten(kind + ": " + e.Exception.Message)
			}
			locateRuby(&c, strings.Join(e.Exception.Backtrace, "\n"))
		}
		r.add(c)
	}
	for _, m := range in.Messages {
		if at := rspecLoading.FindStringSubmatch(m); at != nil {
			file := path.Clean(at[1])
			c := testcase{name: file, group: file, file: file, status: failed, whole: true}
			_, text, _ := strings.Cut(m, "\n\n") // without the line that is the name
			c.err = shorten(text)
			if syntaxWords.MatchString(m) {
				c.cause = causeSyntax
			}
			locateRuby(&c, m)
			r.lose(file)
			r.add(c)
		}
	}
	r.partial = len(r.lost) > 0 // RSpec runs nothing when a file does not load
	return r, nil
}

// locateRuby finds the first frame that is not in an installed gem.
func locateRuby(c *testcase, stack string) {
	for _, m := range rubyFrame.FindAllStringSubmatch(stack, -1) {
		if !strings.Contains(m[1], "/gems/") && !strings.HasPrefix(m[1], "/usr/") && !strings.HasPrefix(m[1], "<internal") {
			c.file, c.line = path.Clean(m[1]), atoi(m[2])
			return
		}
	}
}

var (
	miniTest    = lazyregexp.New(`^(\S.*?#\S.*?) = [\d.]+ s = ([.FES])$`)
	miniProblem = lazyregexp.New(`^\s+\d+\) (Failure|Error|Skipped):$`)
	miniTitle   = lazyregexp.New(`^(\S.*?#.*?)(?: \[(.+):(\d+)\])?:$`)
	miniRan     = lazyregexp.New(`^\d+ (?:runs|tests), \d+ assertions, `)
)

// parseMinitest reads what Minitest prints with -v. A test's name is
// "Class#test_name".
func parseMinitest(out []byte) result {
	var r result
	index := map[string]int{}
	lines := strings.Split(clean(string(out)), "\n")
	ended := false
	for i := 0; i < len(lines); i++ {
		if m := miniTest.FindStringSubmatch(lines[i]); m != nil {
			class, _, _ := strings.Cut(m[1], "#")
			c := testcase{name: m[1], group: class, status: map[string]status{".": passed, "F": failed, "E": failed, "S": skipped}[m[2]]}
			index[m[1]] = len(r.cases)
			r.add(c)
		}
		ended = ended || miniRan.MatchString(lines[i])
		if !miniProblem.MatchString(lines[i]) || i+1 >= len(lines) {
			continue
		}
		title := miniTitle.FindStringSubmatch(lines[i+1])
		if title == nil {
			continue
		}
		var text []string
		for i += 2; i < len(lines) && !miniRan.MatchString(lines[i]) && !miniProblem.MatchString(lines[i]); i++ {
			text = append(text, lines[i])
		}
		i--
		if k, ok := index[title[1]]; ok && r.cases[k].status == failed {
			c := &r.cases[k]
			c.err = shorten(strings.TrimSpace(strings.Join(text, "\n")))
			if c.file, c.line = title[2], atoi(title[3]); c.file == "" {
				locateRuby(c, strings.Join(text, "\n"))
			}
		}
	}
	r.partial = !ended
	return r
}
