package metrics

import (
	"math"
	"math/bits"

	"forge/learn/impact"
	"forge/pipeline/record"
)

const z95 = 1.959963984540054 // two-sided 95 % of the normal distribution

// Values are counted in buckets: one for each value under 8, then eight for every
// doubling. So a quantile is known to within 6.25 % of itself.
const (
	subBits = 3
	subs    = 1 << subBits
)

// bucketOf returns the bucket of a value; what is below 0 counts as 0.
func bucketOf(v int64) int {
	if v < subs {
		return int(max(0, v))
	}
	shift := bits.Len64(uint64(v)) - 1 - subBits
	return (shift+1)*subs + int(v>>shift) - subs
}

// BucketRange returns the least and the greatest value of a bucket.
func BucketRange(bucket int) (low, high int64) {
	if bucket < subs {
		return int64(bucket), int64(bucket)
	}
	shift := bucket/subs - 1
	low = int64(bucket%subs+subs) << shift
	return low, low + (1<<shift - 1)
}

// buckets is more than there are of any value.
const buckets = 64 * subs

// total is what the rows of a period add up to.
type total struct {
	n, sum  int64
	squares float64
	sizes   []int64 // observations by bucket, of metrics with a distribution
}

func (t *total) add(r *record.MetricRow, dist bool) {
	t.n += r.N
	t.sum += r.Total
	t.squares += r.Squares
	if !dist || r.Bucket < 0 || r.Bucket >= buckets {
		return
	}
	if missing := r.Bucket + 1 - len(t.sizes); missing > 0 {
		t.sizes = append(t.sizes, make([]int64, missing)...)
	}
	t.sizes[r.Bucket] += r.N
}

// estimate turns sums into a figure; nil when there is no observation. Shares get
// Wilson's interval, means Student's: for values that are far from normal, such
// as times, and few, it is a rough one.
func (t *total) estimate(d Definition) *Estimate {
	if t == nil || t.n <= 0 {
		return nil
	}
	n := float64(t.n)
	e := &Estimate{N: t.n, Value: float64(t.sum) / n}
	switch {
	case d.Kind == Share:
		low, high := impact.Wilson(int(t.sum), int(t.n), z95)
		e.Interval, e.Method = &[2]float64{low, high}, "Wilson"
	case t.n > 1:
		variance := max(0, t.squares-float64(t.sum)*e.Value) / (n - 1)
		half := impact.Student95(n-1) * math.Sqrt(variance/n)
		e.Interval, e.Method = &[2]float64{max(0, e.Value-half), e.Value + half}, "Student"
	}
	if d.Dist {
		median, p90 := t.quantile(0.5), t.quantile(0.9)
		e.Median, e.P90 = &median, &p90
	}
	return e
}

// quantile returns the value under which the share q lies, by the middle of its
// bucket.
func (t *total) quantile(q float64) float64 {
	rank := int64(math.Ceil(q * float64(t.n)))
	var sum int64
	for b, n := range t.sizes {
		if sum += n; sum >= max(1, rank) {
			low, high := BucketRange(b)
			return float64(low) + float64(high-low)/2
		}
	}
	return 0 // unreachable: the buckets hold all observations
}
