package text

import "strings"

// Nearest returns the known word that a mistyped one most probably means: at most
// a third of its letters away (two in a short one), or one that begins with it or
// that it begins with; "" when there is none.
func Nearest(word string, known []string) string {
	if len(word) > 100 {
		return ""
	}
	low := strings.ToLower(strings.ReplaceAll(word, "-", "_"))
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := distance(low, k); d < least {
			best, least = k, d
		}
	}
	if best != "" || len(low) < 4 {
		return best
	}
	for _, k := range known {
		if strings.HasPrefix(k, low) || strings.HasPrefix(low, k) {
			return k
		}
	}
	return ""
}

// distance is Levenshtein's, in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, cost)
		}
	}
	return row[len(b)]
}
