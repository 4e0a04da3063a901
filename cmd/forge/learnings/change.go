package learnings

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/memory"
	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

func editCommand() *cobra.Command {
	var content, context, category string
	var confidence float64
	var paths, tags []string
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Change a learning's words, category, confidence, paths or tags",
		Long: "Change a learning. Who did it, when, and what it was before is kept. --confidence is what it has\n" +
			"before decay, with the evidence that there is; evidence to come goes on from there.",
		Example: "  forge memory edit 7 --content \"Wrap errors with the activity and its inputs\" --path 'api/*.go' --path store.go\n  forge memory edit 7 --confidence 0.9",
		Args:    shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningNumber(args[0])
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed
			edit := learn.Edit{}
			if given("content") {
				edit.Content = &content
			}
			if given("context") {
				edit.Context = &context
			}
			if given("category") {
				c := pipeline.Category(category)
				edit.Category = &c
			}
			if given("confidence") {
				edit.Confidence = &confidence
			}
			if given("path") {
				edit.Paths = &paths
			}
			if given("tag") {
				edit.Tags = &tags
			}
			if err := edit.Check(); err != nil {
				return shell.Usage("%w; `%s --help` says what can be changed", err, cmd.CommandPath())
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				evidence, err := db.Evidence(cmd.Context(), id)
				if err != nil {
					return err
				}
				change := func(l *pipeline.Learning) error {
					if edit.Tags != nil {
						tags := learn.KeepStand(*edit.Tags, l.Tags)
						edit.Tags = &tags
					}
					return edit.Apply(l, evidence)
				}
				if err := db.EditLearning(cmd.Context(), nil, id, server.OSUser(), time.Now(), change); err != nil {
					return noLearning(err)
				}
				l, err := db.Learning(cmd.Context(), id)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d of %s is changed: %s. Its confidence is %.2f.\n", id, l.Scope,
					memory.OneLine(l.Content, 80), l.Confidence)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&content, "content", "", "its words")
	cmd.Flags().StringVar(&context, "context", "", "when it matters; \"\" for always")
	cmd.Flags().StringVar(&category, "category", "", "of findings: "+text.Join(pipeline.Categories(), ", ")+"; \"\" for none")
	cmd.Flags().Float64Var(&confidence, "confidence", 0, "from 0 to 1, before decay")
	cmd.Flags().StringArrayVar(&paths, "path", nil, "a file that it is about; can be given several times, replaces what there is; \"\" for none")
	cmd.Flags().StringArrayVar(&tags, "tag", nil, "a word to find it by; can be given several times, replaces what there is but for stands:…; \"\" for none")
	return cmd
}

func forgetCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "forget ID", Short: "Take a learning out of use, for good", Args: shell.Args(1),
		Example: "  forge memory forget 7 --why \"we left that library\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningNumber(args[0])
			if err != nil {
				return err
			}
			return shell.WithStore(cmd, func(db *store.DB) error {
				l, err := db.Learning(cmd.Context(), id)
				if err != nil {
					return noLearning(err)
				}
				if l.State == pipeline.LearningForgotten {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d was forgotten before: `forge memory show %d` says by whom.\n", id, id)
					return err
				}
				if err := db.ForgetLearning(cmd.Context(), nil, id, server.OSUser(), time.Now(), learn.Tidy(why, learn.MaxWords)); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d of %s is forgotten: %s\n", id, l.Scope, memory.OneLine(l.Content, 80))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, for the learning's history")
	return cmd
}
