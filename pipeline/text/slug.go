package text

import "strings"

// Slug turns words into a short name for branches and files: lower-case letters,
// digits and single dashes, at most n of them, without credentials, "task" when nothing is left.
func Slug(words string, n int) string {
	var b []byte
	for _, c := range []byte(strings.ToLower(Scrub(words))) {
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-':
			b = append(b, '-')
		}
	}
	s := strings.Trim(string(b[:min(n, len(b))]), "-")
	if s == "" {
		return "task"
	}
	return s
}
