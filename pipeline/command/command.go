// Package command is the one table of what people tell Forge in the first line of a
// comment: names, what they take, and the help.
package command

import (
	"cmp"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

// Spec is something that people tell Forge in the first line of a comment. They
// need write access for all of them.
type Spec struct {
	Name    string
	Takes   Takes
	Answers bool        // it answers a question, and does nothing else
	GoesOn  bool        // it lets a run go on that has ended
	Settles bool        // it ends something or lets it pass: words that may turn it around are asked about
	Memory  bool        // it is about the memory of a repository, and needs no run
	Outside bool        // something beside the run answers it: it is about production
	Example string      // of what it takes
	Help    [][2]string // rows of the help: how it is written, with /SLUG, and what that does; a row may show several, and stands with the first
}

// Takes says how what stands behind a command's name is read. Words behind what it
// takes go along with the further lines of the comment.
type Takes string

// What commands take.
const (
	TakesWords    Takes = ""         // words alone
	TakesText     Takes = "text"     // words, and it needs some
	TakesArgument Takes = "argument" // one word, which whoever asked judges
	TakesCount    Takes = "count"    // a number of iterations, if any
	TakesLearning Takes = "learning" // the number of a learning
	TakesChoice   Takes = "choice"   // the rest of the line, as it is; it needs some words
	TakesAll      Takes = "all"      // the word "all", if any
)

// All are the commands, in the order of the help.
var All = []Spec{
	{Name: "run", Help: [][2]string{{"`/SLUG run`", "start work on this issue"}}},
	{Name: "status", Help: [][2]string{{"`/SLUG status` · `/SLUG explain`", "where the run stands, and why"}}},
	{Name: "explain"},
	{Name: "stop", Help: [][2]string{{"`/SLUG stop` · `/SLUG resume`", "pause it, let it go on"}}},
	{Name: "resume", GoesOn: true},
	{Name: "continue", Takes: TakesCount, Answers: true, GoesOn: true, Example: "3", Help: [][2]string{
		{"`/SLUG continue N`", "N more iterations; words on further lines go along"}}},
	{Name: "retry", GoesOn: true, Help: [][2]string{{"`/SLUG retry`", "try again what broke down, or was stopped"},
		{"`/SLUG continue` · `/SLUG retry`, after the end", "go on with a verified or accepted pull request"}}},
	{Name: "dismiss", Help: [][2]string{{"`/SLUG dismiss WHY` · `/SLUG dismiss F1 WHY`", "in reply to a finding, or anywhere by its name: it is none"}}},
	{Name: "accept", Settles: true, Answers: true, Help: [][2]string{{"`/SLUG accept`", "take it as it is, with its known issues"}}},
	{Name: "choose", Takes: TakesChoice, Answers: true, Help: [][2]string{{"`/SLUG choose OPTION`", "answer a question"}}},
	{Name: "approve", Settles: true, Takes: TakesAll, Answers: true, Help: [][2]string{{"`/SLUG approve` · `/SLUG approve all`", "let a step begin; all later ones, too"}}},
	{Name: "raise", Settles: true, Takes: TakesArgument, Answers: true, Help: [][2]string{{"`/SLUG raise USD`", "raise the budget"}}},
	{Name: "take-over", Answers: true, Help: [][2]string{{"`/SLUG take-over`", "stop, to mend it by hand on the branch"}}},
	{Name: "simplify", Takes: TakesChoice, Answers: true, Help: [][2]string{{"`/SLUG simplify WORDS`", "plan again with a simpler specification"}}},
	{Name: "later", Settles: true, Answers: true, Help: [][2]string{{"`/SLUG later` · `/SLUG without`",
		"of a module that asks: leave it out, with an issue for it; or revise the plan without it"}}},
	{Name: "without", Settles: true, Answers: true},
	{Name: "reset", Settles: true, Help: [][2]string{{"`/SLUG reset`", "let the guards count from the beginning"}}},
	{Name: "history", Help: [][2]string{{"`/SLUG history`", "everything that was tried"}}},
	{Name: "cancel", Settles: true, Help: [][2]string{{"`/SLUG cancel`", "give it up"}}},
	{Name: "memory", Memory: true, Help: [][2]string{{"`/SLUG memory` · `/SLUG memory WORDS`", "what Forge remembers of this repository, about the words"}}},
	{Name: "remember", Takes: TakesText, Memory: true, Example: "Errors are wrapped with the activity and its inputs.", Help: [][2]string{
		{"`/SLUG remember WORDS` · `/SLUG remember ID`", "tell it something to remember; that what a run taught itself holds"}}},
	{Name: "forget", Takes: TakesLearning, Memory: true, Example: "12: it is out of date", Help: [][2]string{{"`/SLUG forget ID…` · `/SLUG forget ID: WHY`", "take learnings out of use; `remember ID…` brings them back"}}},
	{Name: "incident", Takes: TakesChoice, Outside: true, Help: [][2]string{
		{"`/SLUG incident ID CHOICE` · `/SLUG incident open WORDS`", "answer an incident: issue, run, revert, rollback, dismiss WHY, mute 2h; say what goes wrong"}}},
	{Name: "ship", Takes: TakesChoice, Outside: true, Help: [][2]string{
		{"`/SLUG ship CHOICE`", "of verified work, on its way into production: approve WHAT, as the question says, wait, pass, stop, again"}}},
	{Name: "help"},
}

// Button matches the identifier of a button of the check run: the choice, its number,
// and the number of the gate that it answers.
var Button = lazyregexp.New(`^([a-z-]{1,12})(?::([0-9]{1,4}))?(?:@([0-9]{1,6}))?$`)

// Find returns the command of that name; one without a name when there is none.
func Find(name string) Spec {
	if i := slices.IndexFunc(All, func(c Spec) bool { return c.Name == name }); i >= 0 {
		return All[i]
	}
	return Spec{}
}

// Slug is the word that people begin a command with, where no other is set.
const Slug = "forge"

// Write is a command as people type it: "/forge continue 2". An empty slug is [Slug].
func Write(slug, words string) string {
	return strings.TrimSpace("/" + cmp.Or(slug, Slug) + " " + words)
}

// Help lists the commands as they begin with the slug.
func Help(slug string) string {
	var b strings.Builder
	b.WriteString("Forge understands, as the first line of a comment (below what it quotes) by someone with write access:\n\n| command | what it does |\n| --- | --- |\n")
	for _, c := range All {
		for _, h := range c.Help {
			b.WriteString("| " + strings.ReplaceAll(h[0], "/SLUG", Write(slug, "")) + " | " + h[1] + " |\n")
		}
	}
	b.WriteString("\n" + Alone + "\n")
	return b.String()
}

// Line is the first line of a comment that starts with a slash and the slug.
type Line struct {
	Name  string `json:"name"`            // "continue"
	Args  string `json:"args,omitempty"`  // the rest of the line
	Text  string `json:"text,omitempty"`  // further lines: words for the next attempt
	Error string `json:"error,omitempty"` // what is wrong with it, with the nearest right command
	Via   string `json:"via,omitempty"`   // how it was given, when not in words: "box", "button"
	Part  string `json:"part,omitempty"`  // the module whose run it is for: "/forge auth continue 2"
	Was   string `json:"was,omitempty"`   // what it told Forge to remember before its writer edited or deleted it
	Gate  string `json:"gate,omitempty"`  // id of the gate that a button answers, "gate/1": it may be closed by now
}
