package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/shell"
	"forge/pipeline/store"
)

func backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup [FILE]", Short: "Copy the database, while a server runs or not, and check the copy",
		Long: "Copy the SQLite database to FILE, or into the directory of backups, where the server puts\n" +
			"one by itself every hour (backup_every, backup_keep, backup_dir). Every page of it is checked.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return shell.Usage("backup takes one FILE at most, got %q", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return shell.WithStoreAndConfig(cmd, func(db *store.DB, cfg settings.Config) (err error) {
				path := ""
				if len(args) == 0 {
					path, err = server.BackUp(cmd.Context(), db, cfg, time.Now())
				} else if path, err = filepath.Abs(args[0]); err == nil {
					err = db.Backup(cmd.Context(), path)
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", path)
				return err
			})
		},
	}
}

func restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the place of the database",
		Long: "Check a backup, move the SQLite database aside and put the backup in its place. No server may\n" +
			"run meanwhile. Afterwards the server looks at GitHub for what it did since the backup, so that\n" +
			"nothing is done twice, and asks for deliveries of the last three days again.",
		Args: shell.Args(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := shell.Configure(cmd)
			if err != nil {
				return err
			}
			address := cfg.DatabaseURL.Reveal()
			aside, err := store.Restore(cmd.Context(), args[0], address, time.Now())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s is in its place: %s\n", args[0], address)
			if aside != "" {
				fmt.Fprintf(out, "What was there: %s\n", aside)
			}
			return nil
		},
	}
}
