package secrets

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkScan reads the source of net/http: some 1.5 MB of ordinary code.
func BenchmarkScan(b *testing.B) {
	s := New("yLq8Zr3vT0nXc6Bm1Ws9Kd4Hf7Jg2Pa5")
	files, err := filepath.Glob("/usr/local/go/src/net/http/*.go")
	if err != nil {
		b.Fatal(err)
	}
	var all [][]byte
	var size int64
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, text)
		size += int64(len(text))
	}
	b.SetBytes(size)
	for b.Loop() {
		for i, text := range all {
			s.Scan(files[i], text)
		}
	}
}
