package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"forge/github/githubtest"
)

func labCommand() *cobra.Command {
	var listen, hook string
	cmd := &cobra.Command{
		Use: "lab", Short: "Start a GitHub on this machine, to try Forge out by hand", Args: noArgs,
		Long: "Starts the local GitHub alone, with the App installed on one repository. It prints the\n" +
			"environment for `forge serve` in a second terminal; then open the pages and label the issue.",
		RunE: func(cmd *cobra.Command, _ []string) error { return lab(cmd, listen, hook) },
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:3000", "the loopback address to listen on")
	cmd.Flags().StringVar(&hook, "hook", "http://127.0.0.1:8080/webhook", "where webhooks go")
	return cmd
}

func lab(cmd *cobra.Command, listen, hook string) (err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	dir, err := tempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Addr: listen, Manifest: embedded("app.yml"), HookURL: hook, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	issue, err := demoRepository(gh)
	if err != nil {
		return err
	}
	key := filepath.Join(dir, "app.pem")
	tape := filepath.Join(dir, "tape.txtar")
	if err := errors.Join(os.WriteFile(key, gh.PrivateKey, 0o600), os.WriteFile(tape, embedded("demo/tape.txtar"), 0o600)); err != nil {
		return err
	}
	fmt.Fprintf(out, "A GitHub is at %s. The issue: %s/acme/cart/issues/%d\n\nIn a second terminal:\n\n", gh.URL, gh.URL, issue)
	fmt.Fprintf(out, "  export FORGE_APP_ID=%d FORGE_PRIVATE_KEY_FILE=%s FORGE_WEBHOOK_SECRET=%s\n", gh.AppID, key, gh.WebhookSecret)
	fmt.Fprintf(out, "  export FORGE_GITHUB_URL=%s FORGE_MODEL=tape:%s FORGE_STATE_DIR=$(mktemp -d)\n", gh.URL, tape)
	fmt.Fprintf(out, "  forge serve\n\nThen give the issue the label \"forge\". The tape knows this one issue; with FORGE_MODEL=anthropic/… or\nopenai/… and a key, any will do. Ctrl-C ends it.\n")
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}
