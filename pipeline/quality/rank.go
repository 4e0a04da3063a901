package quality

import "slices"

// Alpha is the probability under which a difference is taken for one.
const Alpha = 0.05

// RankTest returns how probable it is that two lists of measures differ as much as these
// do, or more, when nothing differs: the two-sided test of Mann and Whitney. It is exact,
// also where values are equal: all ways to share the ranks out are counted.
func RankTest(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 1
	}
	ranks := doubledRanks(slices.Concat(a, b))
	sum, total := 0, 0
	for i, r := range ranks {
		total += r
		if i < len(a) {
			sum += r
		}
	}
	// ways[k][s] counts the ways to take k ranks with the sum s.
	ways := make([][]float64, len(a)+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := len(a); k > 0; k-- {
			for s := total; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var all, low, high float64
	for s, n := range ways[len(a)] {
		all += n
		if s <= sum {
			low += n
		}
		if s >= sum {
			high += n
		}
	}
	return min(1, 2*min(low, high)/all)
}

// smallest returns the least that RankTest can return for lists of these lengths.
func smallest(a, b int) float64 {
	ways := 1.0
	for i := 1; i <= a; i++ {
		ways = ways * float64(b+i) / float64(i)
	}
	return min(1, 2/ways)
}

// doubledRanks returns the rank of each value, times two: equal values share theirs.
func doubledRanks(values []float64) []int {
	sorted := slices.Sorted(slices.Values(values))
	out := make([]int, len(values))
	for i, v := range values {
		first, _ := slices.BinarySearch(sorted, v)
		last := first
		for last < len(sorted) && sorted[last] == v {
			last++
		}
		out[i] = first + 1 + last
	}
	return out
}
