package evaluate

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"forge/cmd/forge/printing"
	"forge/cmd/forge/shell"
	"forge/lab/stream"
)

func learningCommand() *cobra.Command {
	o := stream.Options{}
	var repo string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "learning", Short: "Measure what learning from people is worth, on a stream of pull requests", Args: shell.NoArgs,
		Long: "Makes streams of pull requests over the Go code of a repository, with a simulated reviewer and simulated\n" +
			"people, and plays each with Forge's memory off and on: how many findings people dismiss, what they are\n" +
			"not shown any more, and whether true errors are among it. Without --repo the code is that of the\n" +
			"module in or over the working directory, else of one of Forge's dependencies in Go's module cache.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Pulls < 100 || o.Seeds < 1 {
				return shell.Usage("--pulls takes a number from 100, --seeds one from 1, got %d and %d", o.Pulls, o.Seeds)
			}
			code, err := codeToLearnOn(repo)
			if err != nil {
				return err
			}
			res, err := stream.Compare(cmd.Context(), code, stream.Models(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return printing.JSON(cmd.OutOrStdout(), res)
			}
			return showLearning(cmd.OutOrStdout(), res)
		},
	}
	cmd.Flags().StringVar(&repo, "repo", "", "a directory with Go code")
	cmd.Flags().IntVar(&o.Pulls, "pulls", 200, "pull requests of a stream")
	cmd.Flags().IntVar(&o.Seeds, "seeds", 2, "streams of each team")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 1, "the seed of the first stream")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

// codeToLearnOn reads the code of a directory; of none, of the module around the
// working directory, else of the first big enough of Forge's dependencies.
func codeToLearnOn(dir string) (*stream.Code, error) {
	if dir != "" {
		return stream.Read(filepath.Base(dir), os.DirFS(dir))
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(here, "go.mod")); err == nil {
			if c, err := stream.Read(filepath.Base(here), os.DirFS(here)); err == nil {
				return c, nil
			}
			break
		}
		up := filepath.Dir(here)
		if up == here {
			break
		}
		here = up
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if c, err := stream.Read(d.Path+" "+d.Version, os.DirFS(filepath.Join(moduleCache(), escapedPath(d.Path)+"@"+d.Version))); err == nil {
				return c, nil
			}
		}
	}
	return nil, fmt.Errorf("there is no Go code here, and none in Go's module cache %s: name some with --repo DIR", moduleCache())
}

func moduleCache() string {
	if dir := os.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	root := filepath.SplitList(os.Getenv("GOPATH"))
	if len(root) == 0 {
		home, _ := os.UserHomeDir()
		root = []string{filepath.Join(home, "go")}
	}
	return filepath.Join(root[0], "pkg", "mod")
}

// escapedPath is a module's path as the cache writes it: "!x" for "X".
func escapedPath(module string) string {
	var b strings.Builder
	for _, c := range module {
		if unicode.IsUpper(c) {
			b.WriteByte('!')
			c = unicode.ToLower(c)
		}
		b.WriteRune(c)
	}
	return b.String()
}

func showLearning(out io.Writer, r *stream.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d streams of %d pull requests for each of %d models (seeds %d to %d), over %s: %d files, %d lines.\n", r.Seeds, r.Pulls, len(r.Models),
		r.Seed, r.Seed+uint64(r.Seeds)-1, r.Repo, r.Files, r.Lines)
	b.WriteString("Share of posted findings that people dismissed, by 50 pull requests; useful held: of what is right, wanted and\n" +
		"blocks nothing. Medians over the seeds, with the lowest and the highest.\n\n")
	for _, x := range r.Models[0].Summaries {
		fmt.Fprintf(&b, "%14s: %s\n", x.Policy.Name, x.Policy.What)
	}
	b.WriteString("\n")
	header := []any{"model", "memory"}
	for i := range r.Models[0].Summaries[0].Rates {
		if i == 1 {
			header = append(header, "of them 26–50")
		}
		header = append(header, fmt.Sprintf("%d–%d", 50*i+1, min(50*i+50, r.Pulls)))
	}
	t := numberTable(append(header, "posted", "useful held")...)
	for _, m := range r.Models {
		for i, s := range m.Summaries {
			row := []any{m.Model.Name, s.Policy.Name}
			if i > 0 {
				row[0] = ""
			}
			for i, x := range s.Rates {
				if i == 1 {
					row = append(row, spreadShare(s.Second))
				}
				row = append(row, spreadShare(x))
			}
			t.AppendRow(append(row, fmt.Sprintf("%.0f", s.Posted.Median), spreadShare(s.UsefulSuppressed)))
		}
	}
	b.WriteString(t.Render() + "\n\n")
	verdictTable(&b, r)
	causeTable(&b, r)
	b.WriteString("The models differ from the first in what is said:\n\n")
	p := numberTable("model", "people", "mistakes", "reasons", "tastes", "personal", "findings", "false", "alarms", "ruled", "reworded", "telling")
	for _, m := range r.Models {
		x := m.Model
		p.AppendRow([]any{x.Name + ": " + x.What, x.People, share(x.Mistakes), share(x.Reasons), x.Tastes, x.Personal, x.Findings, share(x.False),
			x.Alarms, share(x.Ruled), share(x.Reworded), x.Telling})
	}
	b.WriteString(p.Render())
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// verdictTable says what was reached over all streams, and by Forge with each model.
func verdictTable(b *strings.Builder, r *stream.Result) {
	t := numberTable("dismissals", "halved in 26–50", "halved in 51–100", "under 10 % at the end", "useful held",
		"dismissed ones posted again", "true errors", "lost")
	row := func(name string, x stream.Verdict) {
		of := func(n int) string { return fmt.Sprintf("%d of %d", n, x.Streams) }
		t.AppendRow([]any{name, of(x.Soon), of(x.Halved), of(x.Under10), share(x.UsefulSuppressed), x.Repeated, x.Planted, x.Lost})
	}
	for _, x := range r.Verdicts {
		row("all models: "+x.Policy, x)
	}
	for _, m := range r.Models {
		for _, x := range m.Verdicts {
			if x.Policy == stream.Product {
				row(m.Model.Name+": "+x.Policy, x)
			}
		}
	}
	b.WriteString(t.Render() + "\n\n")
}

// causeTable says why findings are still dismissed at the end.
func causeTable(b *strings.Builder, r *stream.Result) {
	fmt.Fprintf(b, "Why the findings of the last %d pull requests were dismissed, all seeds together:\n\n",
		r.Models[0].Summaries[0].Last.To-r.Models[0].Summaries[0].Last.From+1)
	header := []any{"model", "memory", "posted", "dismissed", "rate"}
	for c := range stream.CauseCount {
		header = append(header, stream.Cause(c).String())
	}
	t := numberTable(header...)
	for _, m := range r.Models {
		for i, s := range m.Summaries {
			row := []any{m.Model.Name, s.Policy.Name, s.Last.Posted, s.Last.Dismissed, share(s.Last.Rate())}
			if i > 0 {
				row[0] = ""
			}
			for _, n := range s.Last.Causes {
				row = append(row, n)
			}
			t.AppendRow(row)
		}
	}
	b.WriteString(t.Render() + "\n\n")
}

// spreadShare is "24 % (20–31)".
func spreadShare(s stream.Spread) string {
	return fmt.Sprintf("%.0f %% (%.0f–%.0f)", 100*s.Median, 100*s.Min, 100*s.Max)
}
