package shell

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"forge/cmd/forge/settings"
	"forge/learn/metrics"
	"forge/pipeline/store"
	"forge/pipeline/text"
)

// WithStore runs f with the server's database open.
func WithStore(cmd *cobra.Command, f func(db *store.DB) error) error {
	return WithStoreAndConfig(cmd, func(db *store.DB, _ settings.Config) error { return f(db) })
}

// WithStoreAndConfig is [WithStore] for what needs the configuration, too.
func WithStoreAndConfig(cmd *cobra.Command, f func(db *store.DB, cfg settings.Config) error) (err error) {
	cfg, log, err := Configure(cmd)
	if err != nil {
		return err
	}
	db, err := cfg.OpenStore(cmd.Context(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db, cfg)
}

// CheckDays refuses a period that nothing is kept for.
func CheckDays(days int) error {
	near := metrics.NearestPeriod(days)
	if near == days {
		return nil
	}
	return Usage("--days %d: metrics are kept for 7, 30 and 90 days; did you mean --days %d?", days, near)
}

// CheckRepo refuses a repository that no run was ever in; "" is all of them.
func CheckRepo(ctx context.Context, db *store.DB, repo string) error {
	if repo == "" {
		return nil
	}
	known, err := db.Repos(ctx)
	if err != nil || slices.Contains(known, repo) {
		return err
	}
	switch near := text.Nearest(repo, known); {
	case near != "":
		return Usage("--repo %s: no run was ever in it; did you mean %s?", repo, near)
	case len(known) == 0:
		return Usage("--repo %s: there are no runs yet in any repository", repo)
	}
	return Usage("--repo %s: no run was ever in it; there are runs in %s", repo, strings.Join(known[:min(5, len(known))], ", "))
}
