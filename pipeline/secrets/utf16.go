package secrets

import "unicode/utf16"

// inUTF8 returns a text that is in UTF-16 in UTF-8, and any other as it is: there, of each
// two bytes the same one is zero.
func inUTF8(content []byte) []byte {
	if len(content) < 32 {
		return content
	}
	zeros := [2]int{}
	for i, c := range content[:32] {
		if c == 0 {
			zeros[i%2]++
		}
	}
	if max(zeros[0], zeros[1]) < 12 || min(zeros[0], zeros[1]) > 1 {
		return content
	}
	big := zeros[0] > zeros[1]
	units := make([]uint16, 0, len(content)/2)
	for i := 0; i+1 < len(content); i += 2 {
		unit := uint16(content[i]) | uint16(content[i+1])<<8
		if big {
			unit = unit<<8 | unit>>8
		}
		units = append(units, unit)
	}
	return []byte(string(utf16.Decode(units)))
}
