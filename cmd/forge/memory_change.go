package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forge/learn"
	"forge/pipeline"
	"forge/pipeline/store"
)

func memoryEditCommand() *cobra.Command {
	var content, context string
	var confidence float64
	var paths []string
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Change a learning's words, confidence or paths",
		Long: "Change a learning. Who did it, when, and what it was before is kept. --confidence is what it has\n" +
			"before decay, with the evidence that there is; evidence to come goes on from there.",
		Example: "  forge memory edit 7 --content \"Wrap errors with the activity and its inputs\" --path 'api/*.go' --path store.go\n  forge memory edit 7 --confidence 0.9",
		Args:    nArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningNumber(args[0])
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed
			edit := memoryEdit{}
			if given("content") {
				edit.content = &content
			}
			if given("context") {
				edit.context = &context
			}
			if given("confidence") {
				edit.confidence = &confidence
			}
			if given("path") {
				edit.paths = &paths
			}
			if err := edit.check(); err != nil {
				return err
			}
			return withStore(cmd, func(db *store.DB) error {
				evidence, err := db.Evidence(cmd.Context(), id)
				if err != nil {
					return err
				}
				edit.evidence = sumOf(evidence)
				if err := db.EditLearning(cmd.Context(), nil, id, osUser(), time.Now(), edit.apply); err != nil {
					return noLearning(err)
				}
				l, err := db.Learning(cmd.Context(), id)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d of %s is changed: %s. Its confidence is %.2f.\n", id, l.Scope, oneLine(l.Content, 80), l.Confidence)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&content, "content", "", "its words")
	cmd.Flags().StringVar(&context, "context", "", "when it matters; \"\" for always")
	cmd.Flags().Float64Var(&confidence, "confidence", 0, "from 0 to 1, before decay")
	cmd.Flags().StringArrayVar(&paths, "path", nil, "a file that it is about; can be given several times, replaces what there is; \"\" for none")
	return cmd
}

// memoryEdit is what to change of a learning; nil leaves it as it is.
type memoryEdit struct {
	content, context *string
	confidence       *float64
	paths            *[]string
	evidence         float64 // what the evidence that there is does to confidence
}

// sumOf is what evidence does to confidence, in whole millionths as
// [pipeline.Learning.Weigh] counts it.
func sumOf(evidence []pipeline.Evidence) float64 {
	var micro float64
	for _, e := range evidence {
		if !e.Off {
			micro += math.Round(e.Delta * 1e6)
		}
	}
	return micro / 1e6
}

func (e *memoryEdit) check() error {
	switch {
	case e.content == nil && e.context == nil && e.confidence == nil && e.paths == nil:
		return usage("edit changes nothing: give --content, --context, --confidence or --path")
	case e.content != nil && learn.Tidy(*e.content, maxMemory) == "":
		return usage("--content is empty: `forge memory forget ID` takes a learning out of use")
	case e.confidence != nil && !(*e.confidence >= 0 && *e.confidence <= 1):
		return usage("--confidence is a number from 0 to 1, got %v", *e.confidence)
	}
	for _, text := range []*string{e.content, e.context} {
		if text != nil && len(*text) > maxMemory {
			return usage("these words have %d bytes, over %d: say it shorter", len(*text), maxMemory)
		}
	}
	return nil
}

func (e *memoryEdit) apply(l *pipeline.Learning) error {
	if l.State == learn.Forgotten {
		return fmt.Errorf("it is forgotten: what people forget is out of use for good")
	}
	if e.content != nil {
		l.Content = learn.Tidy(*e.content, maxMemory)
	}
	if e.context != nil {
		l.Context = learn.Tidy(*e.context, maxMemory)
	}
	if e.paths != nil {
		l.Paths = nil
		for _, p := range *e.paths {
			if p = strings.TrimSpace(p); p != "" && !slices.Contains(l.Paths, p) {
				l.Paths = append(l.Paths, p)
			}
		}
	}
	if e.confidence == nil {
		return nil
	}
	base := math.Round((*e.confidence-e.evidence)*1e6) / 1e6
	if base < 0 || base > 1 {
		return fmt.Errorf("its evidence changes confidence by %+.2f, so that it can be from %.2f to %.2f, not %v: see `forge memory show %d`",
			e.evidence, max(0, min(1, e.evidence)), max(0, min(1, 1+e.evidence)), *e.confidence, l.ID)
	}
	l.Base = base
	return nil
}

func memoryForgetCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use: "forget ID", Short: "Take a learning out of use, for good", Args: nArgs(1),
		Example: "  forge memory forget 7 --why \"we left that library\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := learningNumber(args[0])
			if err != nil {
				return err
			}
			return withStore(cmd, func(db *store.DB) error {
				l, err := db.Learning(cmd.Context(), id)
				if err != nil {
					return noLearning(err)
				}
				if l.State == learn.Forgotten {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d was forgotten before: `forge memory show %d` says by whom.\n", id, id)
					return err
				}
				if err := db.ForgetLearning(cmd.Context(), nil, id, osUser(), time.Now(), learn.Tidy(why, maxMemory)); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "Learning %d of %s is forgotten: %s\n", id, l.Scope, oneLine(l.Content, 80))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "the reason, for the learning's history")
	return cmd
}
