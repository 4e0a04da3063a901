package shell

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"forge/cmd/forge/settings"
)

// The flag goes before the environment, which goes before the file.
func TestDashboardFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		env  string
		want string // mode, or a part of the error
	}{
		{nil, "", "local"}, {nil, "off", "off"}, {[]string{"--dashboard=github"}, "off", "github"}, {[]string{"--dashboard", "local"}, "", "local"},
		{[]string{"--dashboard=everybody"}, "", "must be one of off, local, github"},
	} {
		cmd := &cobra.Command{Use: "x"}
		DashboardFlag(cmd)
		if err := cmd.ParseFlags(c.args); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"HOME": t.TempDir(), "FORGE_DASHBOARD": c.env}
		cfg, err := settings.Server("", overridden(cmd, func(name string) string { return env[name] }))
		got := cfg.Dashboard
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%v with FORGE_DASHBOARD=%s: %s, want %s", c.args, c.env, got, c.want)
		}
	}
}
