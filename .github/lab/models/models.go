// Package models plays small tasks with real models, and tells by hidden tests what came of
// each: what is verified is to be right. What a model said can be recorded, and played again.
package models

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"golang.org/x/tools/txtar"

	"forge/cmd/forge/demo"
	"forge/pipeline/agent"
)

//go:embed testdata/*.txtar
var tasks embed.FS

// task is a small bug or feature, of a kind that fixes of public repositories are of. Those
// of Python and Go come first, the easier ones before the others.
type task struct {
	Name, Title, Text string
	Lang              string            // the ending of its code
	Repo              map[string]string // the repository's files
	Hidden            map[string]string // tests that no agent sees
	Fix               map[string]string // what a right answer changes, as edit.Merge takes it
}

// readTasks are those of testdata whose names begin with one of the words; all for none.
func readTasks(words []string) (out []task, err error) {
	names, err := fs.Glob(tasks, "testdata/[0-9]*.txtar")
	if err != nil {
		return nil, err
	}
	shared, err := tasks.ReadFile("testdata/languages.txtar")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := tasks.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t := task{Name: strings.TrimSuffix(path.Base(name), ".txtar"), Repo: map[string]string{}, Hidden: map[string]string{}, Fix: map[string]string{}}
		if !wanted(t.Name, words) {
			continue
		}
		ar := txtar.Parse(data)
		t.Title, t.Text, _ = strings.Cut(strings.TrimSpace(string(ar.Comment)), "\n")
		for _, f := range ar.Files {
			dir, file, _ := strings.Cut(f.Name, "/")
			switch dir {
			case "repo":
				t.Repo[file] = string(f.Data)
			case "hidden":
				t.Hidden[file] = string(f.Data)
			case "fix":
				t.Fix[file] = string(f.Data)
				t.Lang = strings.TrimPrefix(path.Ext(file), ".")
			default:
				return nil, fmt.Errorf("%s: %s belongs into repo/, fix/ or hidden/", name, f.Name)
			}
		}
		for _, f := range txtar.Parse(shared).Files {
			if file, is := strings.CutPrefix(f.Name, t.Lang+"/"); is {
				t.Repo[file] = cmp.Or(t.Repo[file], string(f.Data))
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// languages are what the tests of each are started with.
var languages = map[string]struct{ name, tests, needs string }{
	"go":   {"Go", "go test ./...", "go"},
	"py":   {"Python", "python3 -m pytest -q", "python3"},
	"js":   {"JavaScript", "npm test", "npm"},
	"rs":   {"Rust", "cargo test --offline", "cargo"},
	"java": {"Java", "sh test.sh", "javac"},
}

// junit is of Debian's package junit4, which brings what it needs.
const junit = "/usr/share/java/junit4.jar"

// lacks is what this machine has to have for a task, and has not; "" for nothing. A sandbox
// sees nothing of home directories.
func (t task) lacks(sandbox bool) string {
	home, err := os.UserHomeDir()
	hidden := func(dir string) bool { return sandbox && err == nil && strings.HasPrefix(dir, home+"/") }
	for _, tool := range strings.Fields(languages[t.Lang].needs) {
		if !slices.ContainsFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
			_, err := exec.LookPath(filepath.Join(dir, tool))
			return err == nil && !hidden(dir)
		}) {
			return tool
		}
	}
	if _, err := os.Stat(junit); t.Lang == "java" && err != nil {
		return junit
	}
	return ""
}

func wanted(name string, words []string) bool {
	for _, w := range words {
		if strings.HasPrefix(name, w) {
			return true
		}
	}
	return len(words) == 0
}

// Command returns "lab models".
func Command() *cobra.Command {
	var forms []string
	var asJSON bool
	b := &bench{}
	cmd := &cobra.Command{
		Use: "models PROVIDER/MODEL...", Short: "Play small tasks with real models, and judge the work by hidden tests", Args: cobra.MinimumNArgs(1),
		Long: "Plays small bugs and features, each in a repository of its own, as `forge run` does, and then runs tests\n" +
			"that no agent has seen. Providers are set as for the program: ANTHROPIC_API_KEY, OPENAI_API_KEY,\n" +
			"OPENAI_BASE_URL. Verified falsely is what was verified, and fails a hidden test; a lost attempt is one\n" +
			"that ended in a fault. With --record DIR, requests and answers are kept as they went over the wire;\n" +
			"--replay DIR answers with them, and asks no model.",
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, form := range forms {
				if !slices.Contains([]string{"", agent.FormPlain, agent.FormTools}, form) {
					return fmt.Errorf("there is no form %q: %s, %s, or none", form, agent.FormPlain, agent.FormTools)
				}
			}
			list, err := readTasks(b.only)
			if err != nil || len(list) == 0 {
				return errors.Join(err, errors.New("there are no such tasks"))
			}
			list = slices.DeleteFunc(list, func(t task) bool {
				tool := t.lacks(true)
				if tool != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "%-16s left out: %s needs %s, outside of home directories\n", t.Name, languages[t.Lang].name, tool)
				}
				return tool != ""
			})
			clean, err := b.prepare(cmd.Context())
			if err != nil {
				return err
			}
			defer clean()
			var all []row
			var failed error
			for _, name := range names {
				for _, form := range forms {
					sum := row{Model: name, Form: cmp.Or(form, "auto")}
					for _, t := range list {
						one, err := b.play(cmd.Context(), name, form, t)
						if cmd.Context().Err() != nil {
							return err
						}
						if err != nil { // the others can be played all the same
							failed = errors.Join(failed, fmt.Errorf("play %s with %s: %w", t.Name, name, err))
							continue
						}
						sum.add(one)
						one.show(cmd.OutOrStdout(), asJSON)
					}
					all = append(all, sum)
				}
			}
			if !asJSON {
				show(cmd.OutOrStdout(), all)
			}
			return failed
		},
	}
	cmd.Flags().StringSliceVar(&forms, "form", []string{""}, "forms to ask in: "+agent.FormPlain+", "+agent.FormTools+"; empty: as the program chooses")
	cmd.Flags().StringSliceVar(&b.only, "task", nil, "only tasks whose names begin so, such as 01,02 (default: all)")
	cmd.Flags().StringVar(&b.record, "record", "", "a folder to keep what goes over the wire, for one model and form")
	cmd.Flags().StringVar(&b.replay, "replay", "", "a folder with a recording, in place of a model")
	cmd.Flags().StringVar(&b.exe, "forge", "", "the program, for the processes that work in the sandbox (default: it is built)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a line of JSON for each task")
	return cmd
}

// bench plays tasks one after the other.
type bench struct {
	only                []string
	record, replay, exe string
}

// prepare builds the program where it is not given.
func (b *bench) prepare(ctx context.Context) (clean func(), err error) {
	if b.exe != "" {
		return func() {}, nil
	}
	dir, err := demo.TempDir() // which the user of the sandbox may pass
	if err != nil {
		return nil, err
	}
	clean = func() { os.RemoveAll(dir) } //nolint:errcheck // of a folder for temporary files
	b.exe = filepath.Join(dir, "forge")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.exe, "./cmd/forge")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		clean()
		return nil, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return clean, nil
}

// row is a line of the table: what came of some tasks.
type row struct {
	Model, Form                                    string
	Tasks, Verified, Handed, Hidden, Falsely, Lost int
	Calls                                          int
	Tokens, MicroUSD                               int64
	Seconds                                        float64
}

func (r *row) add(p Play) {
	r.Tasks++
	r.Lost += p.Lost
	r.Calls += p.Calls
	r.Tokens += p.Tokens
	r.MicroUSD += p.MicroUSD
	r.Seconds += p.Seconds
	for _, c := range []struct {
		is bool
		n  *int
	}{{p.Verified, &r.Verified}, {p.Handed, &r.Handed}, {p.Hidden, &r.Hidden}, {p.Verified && !p.Hidden, &r.Falsely}} {
		if c.is {
			*c.n++
		}
	}
}

func show(out io.Writer, rows []row) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.AppendHeader(table.Row{"model", "form", "tasks", "verified", "put to a person", "hidden tests passed", "verified falsely", "attempts lost", "steps", "tokens", "USD", "minutes"})
	for _, r := range rows {
		t.AppendRow(table.Row{r.Model, r.Form, r.Tasks, r.Verified, r.Handed, r.Hidden, r.Falsely, r.Lost, r.Calls, r.Tokens,
			fmt.Sprintf("%.4f", float64(r.MicroUSD)/1e6), fmt.Sprintf("%.1f", r.Seconds/60)})
	}
	fmt.Fprintln(out)
	t.Render()
}

func (p Play) show(out io.Writer, asJSON bool) {
	if asJSON {
		_ = json.NewEncoder(out).Encode(p)
		return
	}
	hidden := "hidden tests fail"
	if p.Hidden {
		hidden = "hidden tests pass"
	}
	fmt.Fprintf(out, "%-16s %-9s %-17s %2d steps %6d tokens %6.1fs  %s\n", p.Task, p.State, hidden, p.Calls, p.Tokens, p.Seconds, p.Ended)
}
