package learnings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/learn/export"
	"forge/pipeline"
	"forge/pipeline/store"
)

func exportCommand() *cobra.Command {
	var scope string
	var all bool
	cmd := &cobra.Command{
		Use: "export [DIR|-]", Short: "Write what is remembered as JSON, one file for a scope",
		Long: "Write what is remembered as JSON: OWNER/NAME.json for a repository, OWNER.json for an\n" +
			"organisation, in DIR. Without DIR, or with -, the one scope that is chosen goes to the output.\n" +
			"The files can be kept in git, reviewed, and read by `forge memory import`.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return shell.Usage("export takes one directory at most, got %q", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			scopes, err := scopesOf(scope)
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				f := store.MemoryFilter{Scopes: scopes, Limit: memory.Everything}
				if all {
					f.States = []pipeline.LearningState{"*"}
				}
				entries, err := entriesOf(cmd.Context(), db, f)
				if err != nil {
					return err
				}
				if len(entries) == 0 {
					return errors.New("export memory: nothing is remembered there that is in use; `forge memory list --all` shows all there is")
				}
				if len(args) == 0 || args[0] == "-" {
					return exportOne(cmd.OutOrStdout(), entries)
				}
				return exportAll(cmd.OutOrStdout(), args[0], entries)
			})
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "only that of OWNER/NAME or OWNER")
	cmd.Flags().BoolVar(&all, "all", false, "also what is out of use: withdrawn, merged, retired, forgotten")
	return cmd
}

// entriesOf reads learnings with their evidence, by scope.
func entriesOf(ctx context.Context, db *store.DB, f store.MemoryFilter) (map[string][]export.Entry, error) {
	list, err := db.Learnings(ctx, f)
	if err != nil {
		return nil, err
	}
	out := map[string][]export.Entry{}
	for _, l := range list {
		evidence, err := db.Evidence(ctx, l.ID)
		if err != nil {
			return nil, err
		}
		out[l.Scope] = append(out[l.Scope], export.Entry{Learning: l, Evidence: evidence})
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func exportOne(out io.Writer, entries map[string][]export.Entry) error {
	scopes := sortedKeys(entries)
	if len(scopes) > 1 {
		return shell.Usage("there are %d scopes (%s): choose one with --scope, or give a directory", len(scopes), memory.OneLine(strings.Join(scopes, ", "), 200))
	}
	_, err := out.Write(export.Write(scopes[0], entries[scopes[0]]))
	return err
}

// exportName is the file of a scope within a directory.
func exportName(scope string) string {
	kind, name, _ := strings.Cut(scope, ":")
	owner, repo, both := strings.Cut(name, "/")
	switch {
	case !scopeForms.MatchString(scope) || strings.Trim(owner, ".") == "":
	case kind == "org":
		return owner + ".json"
	case both:
		return owner + "/" + repo + ".json"
	}
	return url.PathEscape(scope) + ".json" // a local repository, which nobody owns
}

// exportAll writes a file for each scope; none can get out of the directory.
func exportAll(out io.Writer, dir string, entries map[string][]export.Entry) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("export memory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("export memory: %w", err)
	}
	defer root.Close()
	for _, scope := range sortedKeys(entries) {
		name := exportName(scope)
		if parent := filepath.Dir(name); parent != "." {
			if err := root.MkdirAll(parent, 0o755); err != nil {
				return fmt.Errorf("export memory of %s: %w", scope, err)
			}
		}
		if err := root.WriteFile(name, export.Write(scope, entries[scope]), 0o644); err != nil {
			return fmt.Errorf("export memory of %s: %w", scope, err)
		}
		fmt.Fprintf(out, "%s: %d learning(s) of %s\n", filepath.Join(dir, name), len(entries[scope]), scope)
	}
	return nil
}

func importCommand() *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Take in what `forge memory export` wrote",
		Long: "Take in files that `forge memory export` wrote, perhaps edited since: FILE is one, a directory with\n" +
			"some (*.json), or - for the input. A learning is known by its scope and key: one that is there\n" +
			"already gets the file's words and the evidence that it has not got, with you in its history;\n" +
			"its confidence follows from base and evidence. What was forgotten stays forgotten, and what a file\n" +
			"calls forgotten is forgotten here. When a file has a mistake, nothing is taken in.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return shell.Usage("import takes files: %s", cmd.UseLine())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			entries, err := readMemory(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				now := time.Now()
				if err := checkEntries(entries, now); err != nil {
					return err
				}
				steps, err := planImport(cmd.Context(), db, mergeEntries(entries))
				if err != nil {
					return err
				}
				if !check {
					if err := carryOut(cmd.Context(), db, server.OSUser(), now, steps); err != nil {
						return fmt.Errorf("import memory: %w", err)
					}
				}
				return reportImport(cmd.OutOrStdout(), steps, check)
			})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "read the files and say what would change, without changing it")
	return cmd
}

// readMemory reads all files; its error names every file with a mistake.
func readMemory(in io.Reader, names []string) (entries []export.Entry, err error) {
	var errs []error
	take := func(name string, data []byte, err error) {
		scope, found, readErr := "", []export.Entry(nil), err
		if err == nil {
			scope, found, readErr = export.Read(data)
		}
		if readErr == nil && !scopeForms.MatchString(scope) {
			readErr = fmt.Errorf("the scope is %q: want repo:OWNER/NAME or org:OWNER", scope)
		}
		if readErr != nil {
			errs = append(errs, fmt.Errorf("import %s: %w", name, readErr))
		}
		entries = append(entries, found...)
	}
	for _, name := range names {
		if name == "-" {
			data, err := io.ReadAll(in)
			take("the input", data, err)
			continue
		}
		found := 0
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path != name && !strings.HasSuffix(path, ".json") {
				return err
			}
			found++
			data, err := os.ReadFile(path)
			take(path, data, err)
			return nil
		})
		if err == nil && found == 0 {
			err = errors.New("there is no file *.json in it")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("import %s: %w", name, err))
		}
	}
	return entries, errors.Join(errs...)
}

// skew is how far another machine's clock may be ahead.
const skew = 24 * time.Hour

// checkEntries says what no learning can have, of all that files hold: a moment in the
// future, for one, from which it would never fade.
func checkEntries(entries []export.Entry, now time.Time) error {
	var errs []error
	for _, e := range entries {
		l := &e.Learning
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("import %s of %s: %s", l.Key, l.Scope, fmt.Sprintf(format, args...)))
		}
		for _, m := range []struct {
			name string
			at   time.Time
		}{{"created", l.Created}, {"touched", l.Touched}} {
			if m.at.After(now.Add(skew)) {
				bad("%s is in the future: %s", m.name, m.at.Format(time.DateOnly))
			}
		}
		for _, v := range e.Evidence {
			if v.At.After(now.Add(skew)) {
				bad("the evidence %s is of the future: %s", v.Key, v.At.Format(time.DateOnly))
			}
		}
		if err := errors.Join(learn.CheckTags(l.Tags), learn.CheckPaths(l.Paths)); err != nil {
			bad("%v", err)
		}
	}
	return errors.Join(errs...)
}

// tidyIndented is learn.Tidy for words that may be code, whose first line is indented.
func tidyIndented(s string) string {
	body := strings.TrimLeft(s, " \t")
	return s[:len(s)-len(body)] + learn.Tidy(body, maxImported)
}

// mergeEntries makes the same learning one: the words of the last, the evidence
// of all; forgotten once is forgotten.
func mergeEntries(entries []export.Entry) []export.Entry {
	at := map[[2]string]int{}
	var out []export.Entry
	for _, e := range entries {
		k := [2]string{e.Learning.Scope, e.Learning.Key}
		i, known := at[k]
		if !known {
			at[k] = len(out)
			out = append(out, e)
			continue
		}
		e.Evidence = append(slices.Clone(out[i].Evidence), newer(out[i].Evidence, e.Evidence)...)
		slices.SortStableFunc(e.Evidence, func(a, b pipeline.Evidence) int { return cmp.Or(cmp.Compare(a.Key, b.Key), b.At.Compare(a.At)) })
		e.Evidence = slices.CompactFunc(e.Evidence, func(a, b pipeline.Evidence) bool { return a.Key == b.Key })
		if out[i].Learning.State == pipeline.LearningForgotten {
			e.Learning.State = pipeline.LearningForgotten
		}
		out[i] = e
	}
	return out
}

// newer returns the pieces of evidence that are not there yet, or as of earlier.
func newer(there, from []pipeline.Evidence) (out []pipeline.Evidence) {
	for _, e := range from {
		i := slices.IndexFunc(there, func(t pipeline.Evidence) bool { return t.Key == e.Key })
		if i < 0 || e.At.After(there[i].At) {
			e.Learning = 0
			out = append(out, e)
		}
	}
	return out
}

// importStep is what is to be done for one learning.
type importStep struct {
	learning pipeline.Learning // as it comes from the file; ID is that of the one that is there, 0 for none
	was      string            // the words that are there
	edit     bool
	forget   bool
	evidence []pipeline.Evidence // to be added
	remark   string
}

// planImport compares what is there with what the files say.
func planImport(ctx context.Context, db *store.DB, entries []export.Entry) ([]importStep, error) {
	known := map[[2]string]pipeline.Learning{}
	read := map[string]bool{}
	var steps []importStep
	for _, e := range entries {
		l := e.Learning
		if !read[l.Scope] {
			read[l.Scope] = true
			list, err := db.Learnings(ctx, store.MemoryFilter{Scopes: []string{l.Scope}, States: []pipeline.LearningState{"*"}, Limit: memory.Everything})
			if err != nil {
				return nil, err
			}
			for _, k := range list {
				known[[2]string{k.Scope, k.Key}] = k
			}
		}
		old, there := known[[2]string{l.Scope, l.Key}]
		var evidence []pipeline.Evidence
		if there {
			var err error
			if evidence, err = db.Evidence(ctx, old.ID); err != nil {
				return nil, err
			}
		}
		steps = append(steps, stepOf(e, old, evidence))
	}
	return steps, nil
}

// stepOf compares a file's entry with the learning that is there, the zero one for
// none, and its evidence.
func stepOf(e export.Entry, old pipeline.Learning, evidence []pipeline.Evidence) importStep {
	l := e.Learning
	l.Source = cmp.Or(l.Source, pipeline.SourceImport)
	s := importStep{evidence: newer(evidence, e.Evidence), was: old.Content}
	weighed := l
	if weighed.Weigh(e.Evidence); l.Confidence != 0 && l.Confidence != weighed.Confidence {
		s.remark = fmt.Sprintf("its confidence is not taken in: base and evidence make it %.2f; change the base", weighed.Confidence)
	}
	if old.ID == 0 || l.Content != old.Content {
		l.Content = learn.Tidy(l.Content, maxImported)
	}
	if old.ID == 0 || l.Context != old.Context {
		l.Context = tidyIndented(l.Context)
	}
	l.ID = old.ID
	s.learning = l
	if old.ID == 0 {
		return s
	}
	switch {
	case old.State == pipeline.LearningForgotten:
		if s.evidence = nil; l.State != pipeline.LearningForgotten {
			s.remark = "it was forgotten here, and stays so"
		}
		return s
	case l.State == pipeline.LearningForgotten:
		s.forget = true
	}
	s.edit = l.Type != old.Type || l.Category != old.Category || l.Content != old.Content || l.Context != old.Context || l.Base != old.Base ||
		!slices.Equal(l.Paths, old.Paths) || !slices.Equal(l.Tags, old.Tags)
	return s
}

// maxImported bounds the words of one learning from a file, in bytes: as much as
// the longest that Forge makes by itself.
const maxImported = 8000

// does says in a word what a step does.
func (s *importStep) does() string {
	switch {
	case s.learning.ID == 0:
		return "new"
	case s.forget:
		return "forgotten"
	case s.edit:
		return "changed"
	case len(s.evidence) > 0:
		return "more evidence"
	}
	return "the same"
}

// carryOut makes all steps in one transaction.
func carryOut[T any](ctx context.Context, st memory.Store[T], by pipeline.Actor, at time.Time, steps []importStep) error {
	return st.Tx(ctx, func(ctx context.Context, tx T) error {
		for _, s := range steps {
			l := s.learning
			if l.ID == 0 {
				what := "imported"
				if l.Run != 0 { // a number of the installation that it comes from, where another run has it here
					what = fmt.Sprintf("imported: learnt in run %d of the installation that it comes from", l.Run)
					l.Run = 0
				}
				ids, err := st.SaveLearnings(ctx, tx, []pipeline.Learning{l})
				if err != nil {
					return err
				}
				if err := st.NoteLearning(ctx, tx, ids[0], by, at, what); err != nil {
					return err
				}
			}
			if s.edit {
				err := st.EditLearning(ctx, tx, l.ID, by, at, func(old *pipeline.Learning) error {
					old.Type, old.Category, old.Content, old.Context, old.Base, old.Paths, old.Tags = l.Type, l.Category, l.Content, l.Context, l.Base, l.Paths, l.Tags
					return nil
				})
				if err != nil {
					return err
				}
			}
			if len(s.evidence) > 0 {
				if err := st.ApplyEvidence(ctx, tx, l.Scope, s.evidence); err != nil {
					return err
				}
				if l.ID != 0 {
					if err := st.NoteLearning(ctx, tx, l.ID, by, at, fmt.Sprintf("%d piece(s) of evidence imported", len(s.evidence))); err != nil {
						return err
					}
				}
			}
			if s.forget {
				if err := st.ForgetLearning(ctx, tx, l.ID, by, at, "so says an imported file"); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func reportImport(out io.Writer, steps []importStep, check bool) error {
	counts := map[string]int{}
	for i := range steps {
		s := &steps[i]
		what := s.does()
		counts[what]++
		if check && what != "the same" || s.remark != "" {
			line := fmt.Sprintf("%s: %s of %s: %s", what, s.learning.Key, s.learning.Scope, memory.OneLine(s.learning.Content, 80))
			if s.edit && s.was != s.learning.Content {
				line += fmt.Sprintf(" (was: %s)", memory.OneLine(s.was, 80))
			}
			if s.remark != "" {
				line += "; " + s.remark
			}
			fmt.Fprintln(out, line)
		}
	}
	would := ""
	if check {
		would = " Nothing was changed: this was a check."
	}
	_, err := fmt.Fprintf(out, "%d learning(s) read: %d new, %d changed, %d with more evidence, %d forgotten, %d the same.%s\n",
		len(steps), counts["new"], counts["changed"], counts["more evidence"], counts["forgotten"], counts["the same"], would)
	return err
}
