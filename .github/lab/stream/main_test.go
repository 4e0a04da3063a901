package stream

import (
	"flag"
	"os"
	"testing"
)

// A check here plays a whole stream: ten of them say as much as is worth their
// time. -rapid.checks asks for more.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "10"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
