package recall

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"forge/pipeline"
)

// madeUp are n learnings of 50 words, of a vocabulary with few frequent and many
// rare words. For learnings like real ones: `recall --speed` of the laboratory.
func madeUp(n int) []pipeline.Learning {
	r := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(r, 1.1, 5, 50_000)
	all := make([]pipeline.Learning, n)
	for i := range all {
		var b strings.Builder
		for range 50 {
			fmt.Fprintf(&b, "w%x ", zipf.Uint64())
		}
		all[i] = lesson(int64(i+1), b.String(), when(fmt.Sprintf("server/part%d", i%50)))
	}
	return all
}

func BenchmarkPut(b *testing.B) {
	all := madeUp(10_000)
	b.ReportAllocs()
	ix := New()
	n := 0
	for b.Loop() {
		l := all[n%len(all)]
		l.ID = int64(n)
		if err := ix.Put(l); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{5_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			all := madeUp(n)
			ix := filled(b, all...)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				words := strings.Fields(all[i%n].Content)[:15]
				ix.Search(Query{Scopes: []string{repo}, Words: words, Paths: []string{"server/part7/x.go"}, Now: now})
				i++
			}
		})
	}
}
