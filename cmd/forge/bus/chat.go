package bus

import (
	"encoding/json"
	"fmt"
	"strings"

	"forge/learn/production"
	"forge/pipeline"
)

// Slack is the kind of a subscriber that is a chat: it takes Slack's {"text": …}, as
// Mattermost, Rocket.Chat and others do.
const Slack = "slack"

// Chatted are the types that a chat is told of where none are named: questions and ends.
var Chatted = []string{string(pipeline.EventGateRequested), string(pipeline.EventRunVerified), string(pipeline.EventRunAccepted),
	string(pipeline.EventRunCancelled), string(pipeline.EventRunFailed), string(pipeline.EventRunSkipped), string(pipeline.EventShipAsked),
	string(pipeline.EventShipFinished), string(production.EventAsked)}

// chat is an event as a chat shows it.
func (e Event) chat() []byte {
	esc := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	d := &e.Data
	head, words := "Forge: "+strings.TrimPrefix(e.Type, typePrefix), d.Why
	if d.Question != "" {
		head, words = "Forge asks", d.Question
	}
	name := esc(d.Repo)
	if d.Issue > 0 {
		name = esc(fmt.Sprintf("%s#%d", d.Repo, d.Issue))
	}
	if d.URL != "" {
		name = "<" + strings.NewReplacer("<", "", ">", "", "|", "").Replace(d.URL) + "|" + name + ">"
	}
	data, err := json.Marshal(map[string]string{"text": fmt.Sprintf("*%s* %s %s\n%s", esc(head), name, esc(d.Title), esc(words))})
	if err != nil {
		panic(err) // unreachable: texts
	}
	return data
}
