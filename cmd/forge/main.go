package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"forge/cmd/forge/audit"
	"forge/cmd/forge/incidents"
	"forge/cmd/forge/learnings"
	"forge/cmd/forge/pause"
	"forge/cmd/forge/server"
	"forge/cmd/forge/servers"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/setup"
	"forge/cmd/forge/shell"
	"forge/pipeline/sandbox"
)

func main() {
	// A worker holds no rights and needs no commands: it is a loop over its input.
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		if err := sandbox.Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "forge worker:", err)
			os.Exit(shell.Failed)
		}
		return
	}
	// So is a bridge, which runs in a sandbox.
	if len(os.Args) > 1 && os.Args[1] == "bridge" {
		os.Exit(sandbox.Bridge(os.Args[2:]))
	}
	if err := sandbox.Private(); err != nil {
		fmt.Fprintln(os.Stderr, "forge:", err)
		os.Exit(shell.Failed)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	code, err := shell.ExitCode(root.ExecuteContext(ctx))
	if err != nil {
		fmt.Fprintln(stderr, "forge:", err)
	}
	return code
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "forge",
		Short: "A GitHub App that turns labelled issues into reviewed, tested pull requests",
		Long: "Forge plans, implements, reviews and tests what an issue asks for, sends the work\n" +
			"back until it is verified, and asks a human when going on does not help.\n\n" +
			"Try it without an account:  forge demo",
		Version: server.Version(), Args: shell.KnownCommand,
		RunE:         func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true}, SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("forge {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return shell.Usage("%w\nSee `%s --help`.", err, c.CommandPath())
	})
	shell.Flags(root)
	root.AddCommand(incidents.Commands()...)
	root.AddCommand(audit.Command(), servers.Command())
	root.AddCommand(pause.Commands()...)
	root.AddCommand(
		serveCommand(), setup.Command(), initCommand(), demoCommand(), doctorCommand(), runCommand(), runsCommand(), showCommand(),
		answerCommand(), resumeCommand(), resetCommand(), learnings.Command(), deliveriesCommand(), busCommand(), backupCommand(), restoreCommand(),
		replayCommand(), metricsCommand(),
		monitoringCommand(), configCommand(), versionCommand(),
	)
	return root
}

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "About configuration", Args: shell.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "schema", Short: "Print the JSON schema of .github/forge.yml, for editors", Args: shell.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(settings.Schema())
			return err
		},
	})
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: shell.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "forge", server.Version()) },
	}
}
