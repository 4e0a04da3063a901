package ranking_test

import (
	"os"
	"testing"

	"forge/lab/ranking"
)

// sharedSets are labelled sets of real projects, kept beside the checkout.
const sharedSets = "../../../../shared/recall"

// The ranking must stay as good as it was: on the labelled sets of real projects
// where they are at hand, else on a small one that was made up (covers L5).
func TestQuality(t *testing.T) {
	t.Parallel()
	dir, want := sharedSets, 0.62
	if _, err := os.Stat(dir); err != nil {
		dir, want = "testdata", 0.9
	}
	sets, err := ranking.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var plain, product []ranking.Figures
	for _, s := range sets {
		for _, r := range []struct {
			ranking ranking.Ranking
			all     *[]ranking.Figures
		}{{ranking.NewPlain(), &plain}, {ranking.NewProduct(), &product}} {
			each, err := s.Each(r.ranking)
			if err != nil {
				t.Fatal(err)
			}
			*r.all = append(*r.all, ranking.Mean(each))
		}
		p, q := plain[len(plain)-1], product[len(product)-1]
		t.Logf("%s: nDCG@5 %.3f, plain bm25 %.3f", s.Name, q.NDCG, p.NDCG)
		if q.NDCG <= p.NDCG {
			t.Errorf("%s: nDCG@5 of recall is %.3f, not over that of plain bm25, %.3f", s.Name, q.NDCG, p.NDCG)
		}
	}
	if got := ranking.Mean(product).NDCG; got < want {
		t.Errorf("mean nDCG@5 over the %d sets of %s is %.3f, want %.2f or more", len(sets), dir, got, want)
	}
}
