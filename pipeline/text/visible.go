package text

import "unicode"

// Visible drops characters that are not seen, for [strings.Map]: controls, format characters (zero
// width, direction, tags), variation selectors, fillers.
func Visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Co, r):
		return -1
	case r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0 || r == 0x034F || r == 0x2800 || r == 0x17B4 || r == 0x17B5:
		return -1
	}
	return r
}
