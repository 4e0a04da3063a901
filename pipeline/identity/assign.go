package identity

import "math"

// match assigns new findings to known ones, at most one to one, so that the sum of
// the scores is greatest. It returns for each new one the known one, or -1.
func match(j *judge, olds, news []*candidate) []int {
	out := make([]int, len(news))
	scores := make([][]float64, len(news))
	some := false
	for i, n := range news {
		out[i] = -1
		scores[i] = make([]float64, len(olds))
		for k, o := range olds {
			if s, ok := j.score(o, n); ok {
				scores[i][k], some = s, true
			}
		}
	}
	if !some {
		return out
	}
	for i, k := range assign(scores) {
		if k >= 0 && scores[i][k] > 0 {
			out[i] = k
		}
	}
	return out
}

// assign returns for each row the column that it gets, or -1, so that the sum of
// the scores is greatest: the Hungarian method with potentials, O(rows² · columns).
// Scores are not negative; 0 is no pair.
func assign(scores [][]float64) []int {
	rows, cols := len(scores), len(scores[0])
	width := cols + rows // a column without a score for each row: nobody must take a pair
	cost := func(i, j int) float64 {
		if j < cols {
			return -scores[i][j]
		}
		return 0
	}
	u, v := make([]float64, rows+1), make([]float64, width+1)
	owner, way := make([]int, width+1), make([]int, width+1) // 1-based; 0 is nobody
	for i := 1; i <= rows; i++ {
		owner[0] = i
		at := 0
		least, used := make([]float64, width+1), make([]bool, width+1)
		for j := range least {
			least[j] = math.Inf(1)
		}
		for owner[at] != 0 {
			used[at] = true
			row, delta, next := owner[at], math.Inf(1), 0
			for j := 1; j <= width; j++ {
				if used[j] {
					continue
				}
				if c := cost(row-1, j-1) - u[row] - v[j]; c < least[j] {
					least[j], way[j] = c, at
				}
				if least[j] < delta {
					delta, next = least[j], j
				}
			}
			for j := range used {
				if used[j] {
					u[owner[j]] += delta
					v[j] -= delta
				} else {
					least[j] -= delta
				}
			}
			at = next
		}
		for at != 0 {
			owner[at] = owner[way[at]]
			at = way[at]
		}
	}
	out := make([]int, rows)
	for j := 1; j <= width; j++ {
		if i := owner[j]; i > 0 {
			out[i-1] = -1
			if j <= cols {
				out[i-1] = j - 1
			}
		}
	}
	return out
}
