package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"forge/cmd/forge/audit"
	"forge/cmd/forge/evaluate"
	"forge/cmd/forge/incidents"
	"forge/cmd/forge/pause"
	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/cmd/forge/setup"
	"forge/pipeline/sandbox"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitWaiting = 3 // for a human
)

func main() {
	// A worker holds no rights and needs no commands: it is a loop over its input.
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		if err := sandbox.Worker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "forge worker:", err)
			os.Exit(exitFailed)
		}
		return
	}
	// So is a bridge, which runs in a sandbox.
	if len(os.Args) > 1 && os.Args[1] == "bridge" {
		os.Exit(sandbox.Bridge(os.Args[2:]))
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
	err := root.ExecuteContext(ctx)
	var coded *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &coded):
		if coded.err != nil {
			fmt.Fprintln(stderr, "forge:", coded.err)
		}
		return coded.code
	}
	fmt.Fprintln(stderr, "forge:", err)
	return exitFailed
}

// exitError is an error with an exit code of its own. Without err it is silent.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "forge",
		Short: "A GitHub App that turns labelled issues into reviewed, tested pull requests",
		Long: "Forge plans, implements, reviews and tests what an issue asks for, sends the work\n" +
			"back until it is verified, and asks a human when going on does not help.\n\n" +
			"Try it without an account:  forge demo",
		Version: server.Version(), Args: knownCommand,
		RunE:         func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true}, SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("forge {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w\nSee `%s --help`.", err, c.CommandPath())
	})
	root.PersistentFlags().String("config", "", "the server's configuration file (default: forge.yml in the working directory, when there is one)")
	root.PersistentFlags().Bool("verbose", false, "log what a developer wants to know, too")
	root.PersistentFlags().String("log-format", formatText, "how log lines are written: text or json")
	root.AddCommand(incidents.Shell{Usage: usage, NoArgs: noArgs, Args: nArgs, Store: withStoreAndConfig}.Commands()...)
	root.AddCommand(audit.Shell{Usage: usage, NoArgs: noArgs, Store: withStore}.Command())
	root.AddCommand(pause.Shell{Usage: usage, NoArgs: noArgs, Store: withStore}.Commands()...)
	root.AddCommand(
		serveCommand(), setup.Command(noArgs), initCommand(), demoCommand(), labCommand(), doctorCommand(), runCommand(), runsCommand(), showCommand(),
		answerCommand(), resumeCommand(), resetCommand(), memoryCommand(), deliveriesCommand(), busCommand(), backupCommand(), restoreCommand(),
		replayCommand(), evaluate.Shell{Usage: usage, NoArgs: noArgs, OneArg: nArgs(1), Progress: progress}.Command(), metricsCommand(),
		monitoringCommand(), configCommand(), versionCommand(),
	)
	return root
}

func configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "About configuration", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{
		Use: "schema", Short: "Print the JSON schema of .github/forge.yml, for editors", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(settings.Schema())
			return err
		},
	})
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "forge", server.Version()) },
	}
}

// knownCommand refuses words that are no command, and names the nearest one.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(" Did you mean `%s %s`?", cmd.CommandPath(), near[0])
	}
	return usage("there is no command %q.%s\nSee `%s --help`.", args[0], hint, cmd.CommandPath())
}

// noArgs and oneArg are cobra's argument checks with our exit code.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q", cmd.CommandPath(), args)
	}
	return nil
}

func nArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %d argument(s), got %d: %s", cmd.CommandPath(), n, len(args), cmd.UseLine())
		}
		return nil
	}
}
