package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"forge/cmd/forge/server"
	"forge/cmd/forge/shell"
)

func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: "init OWNER/NAME", Short: "Propose a repository's settings by a pull request, after trying its tests", Args: shell.Args(1),
		Example: "  forge init acme/shop",
		RunE: func(cmd *cobra.Command, args []string) error {
			owner, name, ok := strings.Cut(args[0], "/")
			if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
				return shell.Usage("init takes OWNER/NAME, got %q", args[0])
			}
			cfg, log, err := shell.Configure(cmd)
			if err != nil {
				return err
			}
			if err := cfg.Ready(); err != nil {
				return shell.Usage("%w", err)
			}
			a, err := server.New(cmd.Context(), server.Options{Config: cfg, Log: log})
			if err != nil {
				return err
			}
			defer a.Close()
			fmt.Fprintf(cmd.OutOrStdout(), "Trying the tests of %s …\n", args[0])
			url, made, err := a.Onboard(cmd.Context(), owner, name)
			if err != nil {
				return err
			}
			word := "The pull request is there already"
			if made {
				word = "Opened"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", word, url)
			return nil
		},
	}
}
