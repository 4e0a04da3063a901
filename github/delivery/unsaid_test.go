package delivery

import (
	"fmt"
	"testing"

	"forge/pipeline"
	"forge/pipeline/command"
)

// What told Forge to remember something, and is edited or deleted by its writer, is read once
// more, and nothing else that is edited or deleted.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	const words = "/forge remember Wrap errors"
	told := command.Line{Name: "remember", Was: "Wrap errors"}
	for _, c := range []struct {
		action, from, body string
		sender             int
		want               command.Line
	}{
		{"deleted", "", words, 7, told},
		{"deleted", "", words, 8, command.Line{}}, // by another
		{"deleted", "", "Wrap errors", 7, command.Line{}},
		{"deleted", "", "/forge forget 12", 7, command.Line{}},
		{"edited", words, "Never mind", 7, told},
		{"edited", words, "/forge remember Wrap all errors", 7, command.Line{Name: "remember", Was: "Wrap errors", Text: "Wrap all errors"}},
		{"edited", words, words + " ", 7, command.Line{}},
		{"edited", words, "/forge remember Wrap all errors", 8, command.Line{}},
		{"edited", "Wrap errors", words, 7, command.Line{Name: "remember", Error: "Nothing was done: only new comments are read, since a command must not run twice. " +
			"Write `/forge remember` in a new one."}},
	} {
		for _, event := range []string{"issue_comment", "pull_request_review_comment"} {
			if event != "issue_comment" && c.want.Error != "" {
				continue // that is feedback there
			}
			body := fmt.Sprintf(`{"action": %q, "repository": {"id": 1, "name": "site", "owner": {"login": "acme"}}, "sender": {"id": %d, "login": "ann", "type": "User"},
				"issue": {"number": 3}, "pull_request": {"number": 3, "head": {"ref": "x", "repo": {"id": 1}}}, "changes": {"body": {"from": %q}},
				"comment": {"id": 12, "body": %q, "user": {"id": 7, "login": "ann", "type": "User"}}}`, c.action, c.sender, c.from, c.body)
			n, err := Read(event, []byte(body), Options{Slug: "forge", BotID: 99})
			if err != nil {
				t.Fatal(err)
			}
			if n.Command != c.want || (n.Kind == pipeline.NoticeCommand) != (c.want.Name != "") {
				t.Errorf("%s: %q %s into %q by %d: %+v (%s), want %+v", event, c.from, c.action, c.body, c.sender, n.Command, n.Kind, c.want)
			}
		}
	}
}
