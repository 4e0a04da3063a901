package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"forge/pipeline/workspace"
)

// What a workspace may be able to do besides; a role has the tools of those that its
// workspace has. See sandbox.Workspace.
type (
	logger interface {
		Log(ctx context.Context, path string, n int) (string, error)
	}
	blamer interface {
		Blame(ctx context.Context, path string, from, to int) (string, error)
	}
	differ interface {
		Diff(ctx context.Context, base, path string) (string, error)
	}
	indexer interface {
		Symbols(ctx context.Context, query string, max int) (string, error)
	}
	changer interface {
		Changes(ctx context.Context) ([]workspace.Change, error)
	}
	strayer interface {
		Strays(ctx context.Context) error
	}
	restorer interface {
		Checkout(ctx context.Context, sha string) error
	}
)

var (
	logTool     = tool{"log", object("path?", typed("string", "A file or directory. Empty for all."), "max?", typed("integer", "The most commits, up to 100.")), "path", true, runLog}
	blameTool   = tool{"blame", object("path", typed("string", "A file, relative to the root."), "from?", typed("integer", "The first line, from 1."), "to?", typed("integer", "The last line.")), "path", true, runBlame}
	diffTool    = tool{"diff", object("path?", typed("string", "A file or directory. Empty for all."), "whole?", typed("boolean", "Since the base of the run, and not only since this phase began.")), "path", true, runDiff}
	symbolsTool = tool{"symbols", object("name", typed("string", "A name, or a part of it."), "max?", typed("integer", "The most hits, up to 200.")), "name", true, runSymbols}
)

// reading returns the tools that change nothing, when there is something to read.
func (p *phase) reading() []tool {
	ws := p.job.Workspace
	if ws == nil {
		return nil
	}
	out := slices.Clone(readingTools)
	if len(p.job.Skills) > 0 {
		out = append(out, skillTool(p.job.Skills))
	}
	if _, ok := ws.(indexer); ok {
		out = append(out, symbolsTool)
	}
	if _, ok := ws.(logger); ok {
		out = append(out, logTool)
	}
	if _, ok := ws.(blamer); ok {
		out = append(out, blameTool)
	}
	return out
}

// examining returns the tools of those who try what they suspect: what a command
// changes is thrown away afterwards.
func (p *phase) examining() []tool {
	if p.job.Workspace == nil {
		return nil
	}
	return append(p.reading(), commandTool)
}

// working returns all tools.
func (p *phase) working() []tool {
	out := append(p.reading(), editingTools...)
	if _, ok := p.job.Workspace.(differ); ok {
		out = append(out, diffTool)
	}
	if p.job.Install != nil {
		out = append(out, installTool(p.job.Install))
	}
	return append(out, commandTool)
}

// installTool brings lock files in line and installs what they name.
func installTool(install func(context.Context) (told, problems []string, err error)) tool {
	return tool{"install", object(), "", false, func(ctx context.Context, b *toolbox, _ json.RawMessage) (outcome, error) {
		told, problems, err := install(ctx)
		if err != nil {
			return failed(ctx, err)
		}
		b.ran = true
		text := strings.Join(append(told, problems...), "\n")
		if text == "" {
			text = "nothing to install"
		}
		return outcome{text: middleCut(text, outputHead, outputTail), ok: len(problems) == 0}, nil
	}}
}

// restore makes the work tree what it was before commands were run in it.
func (p *phase) restore(ctx context.Context) error {
	ws, ok := p.job.Workspace.(restorer)
	if !ok || !p.ran {
		return nil
	}
	p.ran = false
	return ws.Checkout(ctx, p.job.Run.Head)
}

// optional cleans a path that may be left out.
func optional(p string) (string, error) {
	if p = strings.TrimSpace(p); p == "" || p == "." {
		return "", nil
	}
	return inside(p)
}

// told is what a workspace said, or why it could not.
func told(ctx context.Context, text string, err error) (outcome, error) {
	if err != nil {
		return failed(ctx, err)
	}
	if strings.TrimSpace(text) == "" {
		text = "(nothing)"
	}
	return outcome{text: strings.TrimRight(text, "\n"), ok: true}, nil
}

func runLog(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Path string
		Max  int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := optional(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	text, err := b.ws.(logger).Log(ctx, p, in.Max)
	return told(ctx, text, err)
}

func runBlame(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Path     string
		From, To int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := inside(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	text, err := b.ws.(blamer).Blame(ctx, p, in.From, in.To)
	return told(ctx, text, err)
}

func runDiff(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Path  string
		Whole bool
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	p, err := optional(in.Path)
	if err != nil {
		return misuse("%v", err), nil
	}
	base := ""
	if in.Whole {
		base = b.base
	}
	text, err := b.ws.(differ).Diff(ctx, base, p)
	if err == nil && text == "" {
		text = "nothing has changed"
	}
	return told(ctx, text, err)
}

func runSymbols(ctx context.Context, b *toolbox, args json.RawMessage) (outcome, error) {
	var in struct {
		Name string
		Max  int
	}
	if err := decode(args, &in); err != nil {
		return misuse("%v", err), nil
	}
	if strings.TrimSpace(in.Name) == "" {
		return misuse("name is empty"), nil
	}
	text, err := b.ws.(indexer).Symbols(ctx, in.Name, in.Max)
	return told(ctx, text, err)
}
