package secrets

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Secrets of one's own are looked for in windows of that many bytes, so that a part
// is found, too; what is shorter, but not too short, as a whole.
const (
	window   = 16
	shortest = 8
)

// ownRule is the name under which the caller's own secrets are found.
const ownRule = "forge-secret"

// own finds given values in text.
type own struct {
	windows map[string]bool
	hashes  map[uint64]bool // of the windows: a map of numbers is asked for each byte
	whole   []string        // shorter than a window
}

// newOwn prepares the values in all forms in which they are looked for.
func newOwn(values []string) *own {
	o := &own{windows: map[string]bool{}, hashes: map[uint64]bool{}}
	for _, v := range values {
		for _, part := range parts(v) {
			for _, form := range forms(part) {
				o.add(form)
			}
		}
	}
	slices.Sort(o.whole)
	o.whole = slices.Compact(o.whole)
	return o
}

func (o *own) add(form string) {
	if len(form) < window {
		if len(form) >= shortest {
			o.whole = append(o.whole, form)
		}
		return
	}
	for i := range len(form) - window + 1 {
		w := form[i : i+window]
		if distinct(w) < 6 { // "0000000000000000" is in many texts
			continue
		}
		o.windows[w] = true
		o.hashes[hashOf(w)] = true
	}
}

func distinct(s string) int {
	var seen [256]bool
	n := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			n++
		}
	}
	return n
}

// parts are what of a value is secret: of a key in PEM, its body, line by line and
// as one, and the bytes that it stands for; of a URL, the password.
func parts(value string) []string {
	value = strings.TrimSpace(value)
	if strings.Contains(value, "-----BEGIN ") {
		var body []string
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "-----") && !strings.Contains(line, ":") {
				body = append(body, line)
			}
		}
		joined := strings.Join(body, "")
		all := []string{joined}
		if raw, err := base64.StdEncoding.DecodeString(joined); err == nil {
			all = append(all, string(raw))
		}
		return all
	}
	if u, err := url.Parse(value); strings.Contains(value, "://") {
		if err != nil { // a password that should have been escaped
			_, rest, _ := strings.Cut(value, "://")
			_, password, _ := strings.Cut(rest[:max(0, strings.LastIndexByte(rest, '@'))], ":")
			return []string{password}
		}
		all := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
		if password, ok := u.User.Password(); ok {
			all = append(all, password)
		}
		return all
	}
	return []string{value}
}

// forms are the spellings of a value. A value within a longer one that is in base64
// begins at any of three bits: each gives other characters.
func forms(value string) []string {
	if len(value) < shortest {
		return nil
	}
	all := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))), url.QueryEscape(value)}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	for shift := range 3 {
		padded := append(make([]byte, shift), value...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			text := enc.EncodeToString(padded)
			text = text[[]int{0, 2, 3}[shift]:]
			if len(padded)%3 != 0 { // its last character depends on what follows
				text = text[:len(text)-1]
			}
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// The hash is Rabin and Karp's: it is rolled on by one byte at a time.
const prime = 1099511628211

// primeOut takes the byte that leaves a window out of its hash.
var primeOut = func() uint64 {
	p := uint64(1)
	for range window - 1 {
		p *= prime
	}
	return p
}()

func hashOf(s string) uint64 {
	var h uint64
	for i := range len(s) {
		h = h*prime + uint64(s[i])
	}
	return h
}

// find returns the places where values, or parts of them, are.
func (o *own) find(block string) []match {
	var found []match
	for _, w := range o.whole {
		for at := 0; ; {
			i := strings.Index(block[at:], w)
			if i < 0 {
				break
			}
			found = append(found, match{rule: ownRule, start: at + i, end: at + i + len(w)})
			at += i + len(w)
		}
	}
	if len(o.windows) == 0 || len(block) < window {
		return found
	}
	h := hashOf(block[:window])
	start, end := -1, 0
	for i := 0; ; i++ {
		if o.hashes[h] && o.windows[block[i:i+window]] {
			if start >= 0 && i > end {
				found = append(found, match{rule: ownRule, start: start, end: end})
				start = -1
			}
			if start < 0 {
				start = i
			}
			end = i + window
		}
		if i+window >= len(block) {
			break
		}
		h = (h-uint64(block[i])*primeOut)*prime + uint64(block[i+window])
	}
	if start >= 0 {
		found = append(found, match{rule: ownRule, start: start, end: end})
	}
	return found
}
