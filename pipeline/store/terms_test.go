package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forge/learn"
	"forge/pipeline"
)

// subject draws texts, paths and categories with few parts, so that they meet.
func subject(t *rapid.T, name string) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"wrap", "Wrapped", "errors", "error", "parseURL", "the", "url", "retry", "loops",
		"it's", "nil \x00", "Grüße", "cache", "x", "lock's"}), 0, 12)
	return strings.Join(parts.Draw(t, name), " ")
}

func drawLearning(t *rapid.T, n int) pipeline.Learning {
	paths := []string{"api/a.go", "api", "api/", "api/**", "api/*.go", "*/a.go", "web/[ab].go", "web/b.go", `api/\a.go`, "**", "", "api/v2/*",
		"a[1]/x.go", "a[1]", "nul\x00.go"}
	return pipeline.Learning{
		Key: fmt.Sprint("k/", n), Scope: rapid.SampledFrom([]string{site, site, "repo:acme/other"}).Draw(t, "scope"),
		Created:  hours(rapid.IntRange(-2, 2).Draw(t, "created")),
		Type:     rapid.SampledFrom([]pipeline.LearningType{pipeline.LearningSemantic, pipeline.LearningProcedural}).Draw(t, "type"),
		Category: rapid.SampledFrom([]pipeline.Category{"", "style", "correctness", "o\x00dd"}).Draw(t, "category"),
		Content:  subject(t, "content"), Context: subject(t, "context"),
		Paths:   rapid.SliceOfN(rapid.SampledFrom(paths), 0, 3).Draw(t, "paths"),
		Source:  rapid.SampledFrom([]pipeline.LearningSource{pipeline.SourceDismissal, pipeline.SourceReflection}).Draw(t, "source"),
		Finding: rapid.SampledFrom([]string{"", "fp1", "fp2"}).Draw(t, "finding"), Weight: 1, Base: 0.5, Author: ann,
		State: rapid.SampledFrom([]pipeline.LearningState{pipeline.LearningActive, pipeline.LearningActive, pipeline.LearningWithdrawn,
			pipeline.LearningForgotten}).Draw(t, "state"),
	}
}

func drawSignal(t *rapid.T, n int) pipeline.Signal {
	s := pipeline.Signal{
		Scope: site, Key: fmt.Sprint("s/", rapid.IntRange(0, n).Draw(t, "key")), At: hours(rapid.IntRange(-3, 5).Draw(t, "at")), Actor: ann, Weight: 1,
		Kind: rapid.SampledFrom([]pipeline.SignalKind{pipeline.SignalDismissed, pipeline.SignalApplied, pipeline.SignalIgnored,
			pipeline.SignalRewritten, pipeline.SignalGap}).Draw(t, "kind"),
		Off:     rapid.IntRange(0, 4).Draw(t, "off") == 0,
		File:    rapid.SampledFrom([]string{"", "api/a.go", "api/v2/c.go", "web/b.go", "a.go", "a[1]/x.go", "nul\x00.go"}).Draw(t, "file"),
		Finding: rapid.SampledFrom([]string{"", "fp1", "fp3"}).Draw(t, "finding"), Text: subject(t, "text"), Before: "a", After: "b",
	}
	if rapid.IntRange(0, 5).Draw(t, "about") > 0 {
		s.About = &pipeline.Finding{Category: rapid.SampledFrom([]pipeline.Category{"", "style", "correctness", "o\x00dd"}).Draw(t,
			"finding's category"), Message: subject(t, "message"), Rule: subject(t, "rule")}
	}
	return s
}

// The judge says of what it is shown the same as of all that there is: what a
// signal touches is looked up, and nothing is missed.
func TestTouchedIsAll(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		ctx := context.Background()
		shown, skipped := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			err := d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
				for _, table := range []string{"evidence", "memory_history", "memory_terms", "signals", "memories"} {
					if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
						return err
					}
				}
				var list []pipeline.Learning
				for i := range rapid.IntRange(1, 6).Draw(t, "learnings") {
					list = append(list, drawLearning(t, i))
				}
				ids, err := d.SaveLearnings(ctx, tx, list)
				if err != nil {
					return err
				}
				if rapid.Bool().Draw(t, "edited") {
					words := subject(t, "new words")
					err := d.EditLearning(ctx, tx, ids[0], ann, now, func(l *pipeline.Learning) error { l.Content, l.Paths = words, []string{"web"}; return nil })
					if err != nil {
						return err
					}
				}
				for i := range rapid.IntRange(1, 5).Draw(t, "signals") {
					s := drawSignal(t, i)
					_, err := d.LearnSignal(ctx, tx, s, func(s pipeline.Signal, known []pipeline.Learning, later []pipeline.Signal) ([]pipeline.Learning,
						[]pipeline.Evidence) {
						all, err := learningsBy(ctx, tx, `m.scope = $1 ORDER BY m.id`, s.Scope)
						if err != nil {
							t.Fatal(err)
						}
						got, want := learn.Judge(s, known, later), learn.Judge(s, all, later)
						if diff := cmp.Diff(want, got); diff != "" {
							t.Fatalf("Judge(%+v) of what is touched (-all +touched):\n%s", s, diff)
						}
						shown, skipped = shown+len(known), skipped+len(all)-len(known)
						return got.Learnings, got.Evidence
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		if shown == 0 || skipped == 0 {
			t.Errorf("%d learnings were shown, %d were not: the test shows nothing", shown, skipped)
		}
	})
}

// A learning says what it is about once, whatever is done to it, and not what it
// was about before.
func TestTermsFollowEdits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d *DB) {
		id := save(t, d, learningOf("a", "Wrap errors", 0.5))[0]
		save(t, d, learningOf("a", "Wrap errors", 0.7))
		terms := func() string {
			rows, err := d.reader.Query(`SELECT term FROM memory_terms WHERE learning = $1 ORDER BY term`, id)
			must(t, err)
			list, err := collect(rows, "terms", func(s *string) error { return rows.Scan(s) })
			must(t, err)
			slices.Sort(list)
			return strings.Join(list, " ")
		}
		want(t, "terms", terms(), ". f:correctness:api/a.go f:correctness:b \uFFFD.go w:doubt w:error w:wrap")
		must(t, d.EditLearning(t.Context(), nil, id, ann, now, func(l *pipeline.Learning) error {
			l.Content, l.Context, l.Category, l.Paths = "Close files", "", "style", []string{"api/*.go"}
			return nil
		}))
		want(t, "terms after an edit", terms(), ". g:style:api w:clos")
	})
}
