// Package hub is a GitHub on this machine, to try Forge out by hand.
package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/shell"
	"forge/github/githubtest"
)

// Command returns "lab github".
func Command() *cobra.Command {
	var listen, hook string
	cmd := &cobra.Command{
		Use: "github", Short: "Start a GitHub on this machine, to try Forge out by hand", Args: shell.NoArgs,
		Long: "Starts the local GitHub alone, with the App installed on one repository. It prints the\n" +
			"environment for `forge serve` in a second terminal; then open the pages and label the issue.",
		RunE: func(cmd *cobra.Command, _ []string) error { return serve(cmd, listen, hook) },
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:3000", "the loopback address to listen on")
	cmd.Flags().StringVar(&hook, "hook", "http://127.0.0.1:8080/webhook", "where webhooks go")
	return cmd
}

func serve(cmd *cobra.Command, listen, hook string) (err error) {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	dir, err := demo.TempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Addr: listen, Manifest: demo.Manifest(), HookURL: hook, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gh.Close()) }()
	issue, err := demo.Loop.Repository(gh)
	if err != nil {
		return err
	}
	env, err := demo.Environment(gh, dir, demo.Loop.Tape())
	if err != nil {
		return err
	}
	if env["FORGE_LISTEN"], err = listenFor(hook); err != nil {
		return err
	}
	delete(env, "FORGE_DASHBOARD_LISTEN")
	fmt.Fprintf(out, "A GitHub is at %s. The issue: %s/acme/cart/issues/%d\n\nIn a second terminal:\n\n", gh.URL, gh.URL, issue)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(out, "  export %s=%s\n", name, env[name])
	}
	fmt.Fprintf(out, "  forge serve\n\nThen give the issue the label \"forge\". The tape knows this one issue; with FORGE_MODEL=anthropic/… or\nopenai/… and a key, any will do. Ctrl-C ends it.\n")
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return ctx.Err()
}

// listenFor is where the server must listen for webhooks to reach it at the address.
func listenFor(hook string) (string, error) {
	u, err := url.Parse(hook)
	if err != nil || u.Hostname() == "" || u.Path != "/webhook" {
		return "", shell.Usage("--hook %s: want an address such as http://127.0.0.1:8080/webhook", hook)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}
