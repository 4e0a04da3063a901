package text

import "testing"

func TestLines(t *testing.T) {
	for _, c := range []struct{ what, got, want string }{
		{"FirstLine", FirstLine("\n one \ntwo"), "one "},
		{"FirstLine of nothing", FirstLine(" \n"), ""},
		{"OneLine", OneLine(" a\n\tb  c "), "a b c"},
		{"Clip of what fits", Clip("größe", 5), "größe"},
		{"Clip", Clip("größer", 5), "größ…"},
		{"Head", Head("größe", 3), "gr"},
		{"ClipBytes", ClipBytes("größe", 3), "gr…"},
		{"ClipBytes of what fits", ClipBytes("größe", 7), "größe"},
		{"Within", Within("two words", 7), "two…"},
		{"Plural of one", Plural(1, "run", "runs"), "1 run"},
		{"Plural", Plural(0, "run", "runs"), "0 runs"},
		{"USD", USD(1_255_000), "$1.25"},
		{"USDExact", USDExact(1_250), "$0.0013"},
		{"Fence", Fence("go", "x"), "```go\nx\n```"},
		{"Fence around a fence", Fence("", "````\nx\n````\n"), "`````\n````\nx\n````\n`````"},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.what, c.got, c.want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 999: "999 bytes", 12345: "12.3 kB", 2_500_000: "2.5 MB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}
