package server

import (
	"testing"
)

func TestRevertOf(t *testing.T) {
	for message, want := range map[string]string{
		"Revert \"Change A\" (#2)":                                                              "“Change A”",
		"Revert \"Revert \"Change A\"\" (#3)":                                                   "",
		"Revert \"Revert \"Revert \"A\"\"\"":                                                    "“A”",
		"Reapply \"Change A\"\n\nThis reverts commit 0123456789.":                               "",
		"Merge pull request #2 from acme/revert-1-feat\n\nRevert \"Change A\"":                  "“Change A”",
		"Merge pull request #2 from acme/revert-1-feat":                                         "Merge pull request #2 from acme/revert-1-feat",
		"Merge pull request #2 from acme/feat\n\nChange A":                                      "",
		"Take it back\n\nThis reverts commit 0123456789abcdef0123456789abcdef01234567.":         "by “Take it back”",
		"Change A\n\nIt would be wrong to say that this reverts commit 0123456789 of long ago.": "",
		"Revert to the older library":                                                           "",
		"":                                                                                      "",
	} {
		if got := revertOf(message); got != want {
			t.Errorf("revertOf(%q) = %q, want %q", message, got, want)
		}
	}
}
