package secrets

import (
	"encoding/base64"
	"math"
	"strings"
)

// secretNames end the names of what is secret, in small letters and without what is
// between their words.
var secretNames = []struct {
	end  string
	word bool // it must be a word of its own: "pass" also ends "bypass"
}{
	{"password", false}, {"passwd", false}, {"passphrase", false}, {"secret", false}, {"token", false}, {"credential", false}, {"pwd", true}, {"pass", true},
	{"auth", true}, {"key", true},
	{"apikey", false}, {"accesskey", false}, {"secretkey", false}, {"privatekey", false}, {"encryptionkey", false}, {"signingkey", false}, {"authkey", false},
	{"masterkey", false}, {"sharedkey", false}, {"presharedkey", false}, {"accountkey", false}, {"servicekey", false}, {"adminkey", false}, {"licensekey", false},
	{"appkey", false}, {"applicationkey", false}, {"jwtkey", false}, {"hmackey", false}, {"aeskey", false}, {"storagekey", false}, {"webhookkey", false},
	{"deploykey", false}, {"rolekey", false}, {"cryptkey", false}, {"integrationkey", false}, {"secretkeybase", false},
}

// publicWords in a name say that what it names is no secret, though it ends as one.
var publicWords = wordSet("public pub publishable csrf xsrf next prev previous page pagination continuation continue cursor sync resume cancel cancellation " +
	"hash hashed digest checksum encrypted sealed fingerprint idempotency cache primary foreign sort partition design site anon")

// stages at a name's end say where the secret is used.
var stages = wordSet("prod production dev development staging stage live test testing local ci old new")

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// namesSecret reports whether a name is of a secret; alone whether that is "key", which
// is said of much else.
func namesSecret(name string) (yes, alone bool) {
	parts := nameWords(name)
	for len(parts) > 1 && (stages[parts[len(parts)-1]] || strings.Trim(parts[len(parts)-1], "0123456789") == "") {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return false, false
	}
	last := strings.TrimRight(parts[len(parts)-1], "0123456789")
	if last != "pass" {
		last = strings.TrimSuffix(last, "s")
	}
	squeezed := strings.Join(parts[:len(parts)-1], "") + last
	for _, n := range secretNames {
		if !strings.HasSuffix(squeezed, n.end) || n.word && last != n.end {
			continue
		}
		if n.end == "key" {
			if len(parts) > 1 {
				continue
			}
			alone = true
		}
		for _, p := range parts {
			if publicWords[p] {
				return false, false
			}
		}
		return true, alone
	}
	return false, false
}

// nameWords splits a name at its marks and where a large letter begins a word.
func nameWords(name string) []string {
	var all []string
	start := 0
	add := func(end int) {
		if end > start {
			all = append(all, strings.ToLower(name[start:end]))
		}
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == '.':
			add(i)
			start = i + 1
		case c >= 'A' && c <= 'Z' && i > start && (joins(name[i-1]) || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'):
			add(i)
			start = i
		}
	}
	add(len(name))
	return all
}

// assignedRule is the name of what a name tells to be secret.
const assignedRule = "assigned-secret"

const mostName = 80

// assigned returns the values in a line that are given to a name of a secret and look as
// if chance had made them, in the form of a match: as a whole, and what is secret of it.
// It knows the ways of programs, of settings (env, yml, ini, properties), of XML and of
// command lines.
func assigned(line string) [][]int {
	var found [][]int
	for at := 0; at < len(line); {
		if !inName(line[at]) {
			at++
			continue
		}
		start := at
		for at < len(line) && inName(line[at]) {
			at++
		}
		name := line[start:at]
		if at-start < 3 || at-start > mostName || at == len(line) || start > 0 && line[start-1] == '/' { // of a path
			continue
		}
		value, quoted := valueAfter(line, start, at)
		if value < 0 {
			continue
		}
		secret, alone := namesSecret(strings.Trim(name, "-."))
		if !secret || alone && !quoted {
			continue
		}
		end := value
		for end < len(line) && inValue(line[end], quoted) {
			end++
		}
		if v := line[value:end]; ended(line, end, quoted) && drawn(v, quoted) && !(alone && (len(v) < 32 || notMixed(v))) {
			found = append(found, []int{start, end, value, end})
			at = end
		}
	}
	return found
}

func inName(c byte) bool {
	return joins(c) || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
}

func inValue(c byte, quoted bool) bool {
	if c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`\\<>{},;|", c) >= 0 {
		return false
	}
	return quoted || strings.IndexByte("()[]&#", c) < 0
}

// ended reports whether a value that ends at a place is all of what is there, and not
// the beginning of a call, a sentence or a template.
func ended(line string, end int, quoted bool) bool {
	if end == len(line) {
		return true
	}
	if quoted {
		return strings.IndexByte("\"'`\\", line[end]) >= 0
	}
	rest := strings.TrimLeft(line[end:], " \t")
	return rest == "" || strings.IndexByte("(<[{|", line[end]) < 0 && (rest[0] != '(' || line[end] != ' ') || strings.HasPrefix(line[end:], "</")
}

func skip(line string, at int, set string, most int) int {
	for n := 0; at < len(line) && n < most && strings.IndexByte(set, line[at]) >= 0; n++ {
		at++
	}
	return at
}

// valueAfter returns where the value begins that is given to the name between start and
// end, -1 when none is; and whether it is in quotes.
func valueAfter(line string, start, end int) (at int, quoted bool) {
	closed := skip(line, end, "\\\"'`])", 4)
	at = skip(line, closed, " \t", 4)
	if at == len(line) {
		return -1, false
	}
	rest, needQuote := line[at:], false
	switch {
	case strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "=>"), strings.HasPrefix(rest, "?="):
		at += 2
	case strings.HasPrefix(rest, "||="):
		at += 3
	case rest[0] == ':':
		at = typed(line, at+1)
	case rest[0] == '=':
		at++
	case rest[0] == ',':
		at, needQuote = at+1, true
	case rest[0] == '>' && (start > 0 && line[start-1] == '<' || closed > end):
		at++
	case closed > end && strings.HasPrefix(rest, "value="):
		at += len("value=")
	case closed == end && at > end && (strings.HasPrefix(line[start:], "--") || strings.HasPrefix(line, "ENV ")): // --token VALUE
	default:
		return -1, false
	}
	at = skip(line, at, " \t", 4)
	open := skip(line, at, "\\\"'`", 3)
	quoted = open > at
	if needQuote && !quoted || open >= len(line) {
		return -1, false
	}
	return open, quoted
}

// typed skips a type between a colon and "=", as in TypeScript and Rust.
func typed(line string, at int) int {
	end := skip(line, at, " &'", 4)
	from := end
	for end < len(line) && (inName(line[end]) || line[end] == ' ') && end-from < 30 {
		end++
	}
	if end > from && end < len(line) && line[end] == '=' && (end+1 == len(line) || line[end+1] != '=') && strings.HasSuffix(line[:end], " ") {
		return end + 1
	}
	return at
}

// drawn reports whether a value looks as if it had been drawn by chance: it is no word,
// path, address, reference, or what identifies rather than opens.
func drawn(v string, quoted bool) bool {
	if notValue(v) {
		return false
	}
	for _, p := range []string{"base64:", "hex:", "0x", "0X"} {
		if strings.HasPrefix(v, p) {
			if v = v[len(p):]; p[0] == '0' && len(v) == 40 {
				return false // an account's address
			}
		}
	}
	n := len(strings.TrimRight(v, "="))
	if n < 12 || n > 200 {
		return false
	}
	if strings.Trim(v, "0123456789abcdef") == "" || strings.Trim(v, "0123456789ABCDEF") == "" {
		return n >= 32 && n%8 == 0 && entropy(v) >= 3 && strings.Trim(v, "0123456789") != ""
	}
	if isUUID(v) || entropy(v) < min(4, 0.8*math.Log2(float64(n))) {
		return false
	}
	if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "=")); err == nil && legible(string(raw)) {
		return len(raw) < n && drawn(strings.TrimSpace(string(raw)), quoted)
	}
	if quoted && n >= 20 && entropy(v) >= 4 && !notMixed(v) && !wordy(v) {
		return true
	}
	return mixed(v, n)
}

// notValue refuses what stands for a value or leads to one.
func notValue(v string) bool {
	if v == "" || strings.IndexByte("$%@&*:!.,/-(", v[0]) >= 0 || strings.HasPrefix(v, "eyJ") || strings.HasPrefix(v, "arn:") {
		return true
	}
	for _, mark := range []string{"://", "${", "$(", "{{", "%s", "%(", "...", "::", "->", "==", "&&"} {
		if strings.Contains(strings.TrimRight(v, "="), mark) {
			return true
		}
	}
	at := strings.IndexByte(v, '@')
	return at > 0 && strings.Contains(v[at:], ".") || strings.Count(v, ".") > 2 || strings.Count(v, "/") > 2 && strings.Count(v, "/")*8 > len(v)
}

// mixed reports whether the kinds of characters change as often as chance makes them,
// and the letters do not follow one another as in words.
func mixed(v string, n int) bool {
	lower, upper, _, _ := classes(v)
	changes, digits := 0, 0
	for i := range len(v) {
		if v[i] >= '0' && v[i] <= '9' {
			digits++
		}
		if i > 0 && kindOf(v[i]) != kindOf(v[i-1]) {
			changes++
		}
	}
	if words(v) || wordy(v) {
		return false
	}
	switch {
	case lower && upper && digits > 0:
		return changes*4 >= n
	case lower && upper:
		return n >= 14 && changes*5 >= n*2
	}
	return (lower || upper) && digits > 1 && n >= 20 && changes*10 >= n*3
}

func kindOf(c byte) byte {
	switch {
	case c >= 'a' && c <= 'z':
		return 'a'
	case c >= 'A' && c <= 'Z':
		return 'A'
	case c >= '0' && c <= '9':
		return '0'
	}
	return '-'
}

// commonPairs are the 150 most frequent pairs of letters in English text and names of
// programs: most pairs of words are among them, and of chance's a fifth.
var commonPairs = func() (all [26 * 26]bool) {
	for _, p := range strings.Fields(`
ab ac ad ag ai al am an ap ar as at au be bl bo bu by ca ce ch ci ck co cr ct da de di do du ea ec ed ee ef el em en ep er es et ev ex ey
fa fe fi fo fr ge gh gi gr ha he hi ho ic id ie if ig il im in io ir is it iv ke ki la le li ll lo ly ma me mi mo mp na nc nd ne ng ni no ns nt
ob od of ol om on oo op or os ot ou ow pa pe pl po pr ra rd re ri ro rs rt ru ry sa sc se sh si so sp ss st su ta te th ti to tr tu ty
ub ul un up ur us ut ve vi wa we wh wi wo`) {
		all[int(p[0]-'a')*26+int(p[1]-'a')] = true
	}
	return all
}()

// wordy reports whether the letters of a value follow one another as in words.
func wordy(v string) bool {
	v = strings.ToLower(v)
	pairs, common := 0, 0
	for i := 1; i < len(v); i++ {
		if kindOf(v[i-1]) == 'a' && kindOf(v[i]) == 'a' {
			pairs++
			if commonPairs[int(v[i-1]-'a')*26+int(v[i]-'a')] {
				common++
			}
		}
	}
	return pairs >= 4 && common*20 >= pairs*11
}

func isUUID(v string) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' && strings.Trim(v, "0123456789abcdefABCDEF-") == ""
}
