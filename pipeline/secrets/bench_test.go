package secrets

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is code of this program, again and again.
func source(b *testing.B, size int) []byte {
	b.Helper()
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		b.Skip("the program's source is not here")
	}
	var all []byte
	for len(all) < size {
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, text...)
		}
	}
	return all[:size]
}

// BenchmarkScan shows that the time grows with the size alone: of ordinary code, of one
// line as minifiers make it, and of what many rules look at.
func BenchmarkScan(b *testing.B) {
	s := New("yLq8Zr3vT0nXc6Bm1Ws9Kd4Hf7Jg2Pa5")
	for _, size := range []int{1 << 20, 10 << 20} {
		code := source(b, size)
		line := bytes.ReplaceAll(code, []byte("\n"), []byte(" "))
		keys := []byte(strings.Repeat(`token: "gl sk- key- pat SK AKIA eyJ re_ SG. oy2 cio AIza ghp_ " `, size/64))
		for name, text := range map[string][]byte{"code": code, "line": line, "keys": keys} {
			b.Run(name+"/"+map[bool]string{true: "1MB", false: "10MB"}[size == 1<<20], func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					s.Scan("a.txt", text)
				}
			})
		}
	}
}
