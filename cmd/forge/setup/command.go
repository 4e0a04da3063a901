package setup

import (
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"forge/cmd/forge/shell"
)

// Command is `forge setup`.
func Command() *cobra.Command {
	o := Options{}
	cmd := &cobra.Command{
		Use: "setup", Short: "Register the GitHub App, write its key and the settings, and have it installed", Args: shell.NoArgs,
		Long: "Opens a page on this machine that asks what is to be decided, has GitHub register the App,\n" +
			"and writes its key, its secrets and a commented forge.yml, which only you can read. Then it\n" +
			"waits until the App is installed, and makes the label. When it is interrupted, start it again:\n" +
			"it goes on where it stopped.",
		Example: "  forge setup\n  forge setup --terminal --poll --model anthropic/MODEL\n  forge setup --org acme --url https://forge.acme.dev --dir /etc/forge --write systemd",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Port < 0 || o.Port > 65535 {
				return fmt.Errorf("--port %d: ports are from 1 to 65535", o.Port)
			}
			if o.Unit != "" && o.Unit != unitSystemd && o.Unit != unitCompose {
				return fmt.Errorf("--write %s: there are %s and %s", o.Unit, unitSystemd, unitCompose)
			}
			o.In, o.Out, o.Getenv = cmd.InOrStdin(), cmd.OutOrStdout(), shell.Getenv(cmd)
			if provider, _, ok := strings.Cut(o.Answers.Model, "/"); ok { // a key never comes as an argument: others could read it
				o.Key = o.Getenv(strings.ToUpper(provider) + "_API_KEY")
			}
			if fd := os.Stdin.Fd(); o.In == os.Stdin && term.IsTerminal(fd) {
				o.Secret = func() (string, error) {
					line, err := term.ReadPassword(fd)
					return string(line), err
				}
			}
			return Run(cmd.Context(), o)
		},
	}
	f, a := cmd.Flags(), &o.Answers
	f.StringVar(&o.Dir, "dir", ".", "the folder of forge.yml, the key and the secrets")
	f.StringVar(&a.GitHub, "github", "", "the address of a GitHub Enterprise server; default: github.com")
	f.StringVar(&a.Org, "org", "", "the organisation that owns the App; default: you")
	f.StringVar(&a.Name, "name", "", "the App's name; default: forge")
	f.StringVar(&a.URL, "url", "", "the address at which GitHub reaches this server, such as https://forge.example.com")
	f.BoolVar(&a.Poll, "poll", false, "GitHub cannot reach this server: read deliveries through its API")
	f.StringVar(&a.Model, "model", "", "provider/model; its key is taken from the environment, or asked for")
	f.StringVar(&a.Base, "model-url", "", "the address of an OpenAI-compatible server")
	f.BoolVar(&o.Terminal, "terminal", false, "ask here instead of on a page")
	f.IntVar(&o.Port, "port", 0, "the page's port on 127.0.0.1; default: any")
	f.StringVar(&o.Unit, "write", "", "also write what starts the server at boot: systemd or compose")
	f.BoolVar(&o.Replace, "replace", false, "move files that are there to NAME.old")
	return cmd
}
