package quality

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/measure"
	"forge/pipeline/text"
)

// Kind says how a value is read: the name before the colon, and what follows it.
type Kind struct {
	Name, Arg string
}

// The ways to read a value.
const (
	Number = "number" // the last number printed
	JSON   = "json"   // a number in a JSON document on standard output
	Regex  = "regex"  // the last match on standard output
	Lines  = "lines"  // lines printed that are not empty
	Exit   = "exit"   // the exit code
	Size   = "size"   // the sum of the sizes of files
	SARIF  = "sarif"  // the findings in a SARIF file
)

// ParseKind reads a value's setting.
func ParseKind(s string) (Kind, error) {
	name, arg, has := strings.Cut(s, ":")
	k := Kind{Name: name, Arg: arg}
	switch name {
	case Number, Lines, Exit:
		if has {
			return k, fmt.Errorf("is %q; %s stands alone", s, name)
		}
		return k, nil
	case JSON:
		_, err := jsonPath(arg)
		return k, err
	case Regex:
		re, err := regexp.Compile(arg)
		switch {
		case arg == "" || err != nil:
			return k, fmt.Errorf("is %q, which is no regular expression: %w", s, cmpErr(err, errors.New("nothing follows the colon")))
		case re.NumSubexp() > 1:
			return k, fmt.Errorf("is %q; it must have one group at most, which is the number: write the others as (?:…)", s)
		}
		return k, nil
	case Size, SARIF:
		if strings.TrimSpace(arg) == "" || strings.HasPrefix(arg, "/") || strings.Contains("/"+arg+"/", "/../") {
			return k, fmt.Errorf("is %q; after %s: stands a path from the root of the repository, such as %s:dist/%s", s, name, name,
				map[string]string{Size: "*.js", SARIF: "result.sarif"}[name])
		}
		return k, nil
	}
	return k, fmt.Errorf("is %q; it must be number, lines, exit, json:PATH, regex:RE, size:GLOB or sarif:FILE", s)
}

func cmpErr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// Output is what a command left.
type Output struct {
	Exit   int
	Stdout []byte
	Stderr []byte
}

// Read reads the value that a command printed. Sizes and SARIF files are read by others
// of this package: they are no output.
func (k Kind) Read(o Output) (measure.Reading, error) {
	switch {
	case k.Name == Exit:
		if o.Exit == 126 || o.Exit == 127 {
			return measure.Reading{}, failed(o)
		}
		return measure.One(float64(o.Exit)), nil
	case k.Name == Lines:
		n := lines(o.Stdout)
		// A search that finds nothing ends with 1, and says nothing.
		if o.Exit != 0 && n == 0 && (o.Exit != 1 || len(bytes.TrimSpace(o.Stderr)) > 0) || o.Exit > 125 {
			return measure.Reading{}, failed(o)
		}
		return measure.One(float64(n)), nil
	case k.Name == JSON:
		v, err := k.readJSON(o.Stdout)
		if err != nil && o.Exit != 0 || o.Exit > 125 {
			return measure.Reading{}, failed(o)
		}
		return one(v, err)
	case o.Exit != 0:
		return measure.Reading{}, failed(o)
	case k.Name == Number:
		v, _, err := lastNumber(string(o.Stdout))
		return one(v, err)
	case k.Name == Regex:
		return one(k.match(string(o.Stdout)))
	}
	return measure.Reading{}, fmt.Errorf("the value %s is not read from output", k.Name)
}

func one(v float64, err error) (measure.Reading, error) {
	if err != nil {
		return measure.Reading{}, err
	}
	return measure.One(v), nil
}

// failed says how a command ended that gives no value.
func failed(o Output) error {
	said := text.FirstLine(strings.TrimSpace(string(o.Stderr)))
	if said == "" {
		said = text.FirstLine(strings.TrimSpace(string(o.Stdout)))
	}
	if said == "" {
		return fmt.Errorf("the command ended with %d and printed nothing", o.Exit)
	}
	return fmt.Errorf("the command ended with %d: %s", o.Exit, text.Clip(said, 200))
}

func lines(out []byte) (n int) {
	for line := range bytes.Lines(out) {
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
	}
	return n
}

var (
	numberWord = lazyregexp.New(`^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)
	unitEnd    = lazyregexp.New(`^(?:%|[a-zA-Zµμ]{1,5}(?:/[a-z]+)?)?[.,;:)]?$`)
	grouped    = lazyregexp.New(`^[-+]?\d{1,3}(?:[,_'’]\d{3})+`)
	spaced     = lazyregexp.New(`(\d)[\x{00a0}\x{2007}\x{2009}\x{202f}](\d{3})`)
	noNumber   = lazyregexp.New(`(?i)^[-+]?(?:nan|inf|infinity)[.,;:)%]?$`)
)

// lastNumber finds the last word that is a number, and the unit that stands behind it, in
// that word or the next.
func lastNumber(out string) (v float64, unit string, err error) {
	for range 2 { // groups next to each other
		out = spaced.ReplaceAllString(out, "$1'$2")
	}
	words := strings.Fields(out)
	for i := len(words) - 1; i >= 0; i-- {
		w := strings.TrimLeft(words[i], "(=:")
		n := numberWord.FindString(w)
		switch {
		case noNumber.MatchString(w):
			return 0, "", fmt.Errorf("the command printed %s, which is no value", w)
		case grouped.MatchString(w):
			return 0, "", fmt.Errorf("the command printed %s: print numbers without separators", w)
		case n != "" && unitEnd.MatchString(w[len(n):]):
			unit := strings.TrimRight(w[len(n):], ".,;:)")
			if unit == "" && i+1 < len(words) && w == n {
				unit = unitWord(words[i+1])
			}
			v, err := parseNumber(n)
			return v, unit, err
		}
	}
	if strings.TrimSpace(out) == "" {
		return 0, "", errors.New("the command printed nothing")
	}
	return 0, "", fmt.Errorf("the command printed no number: %s", text.Clip(text.FirstLine(strings.TrimSpace(out)), 100))
}

// parseNumber reads a number that was printed; what is not finite is none.
func parseNumber(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%s is no value: print a finite number", text.Clip(s, 60))
	}
	return v, nil
}

func (k Kind) match(out string) (float64, error) {
	re, err := regexp.Compile(k.Arg)
	if err != nil {
		return 0, err
	}
	all := re.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		if strings.TrimSpace(out) == "" {
			return 0, errors.New("the command printed nothing")
		}
		return 0, fmt.Errorf("nothing that the command printed matches %s", k.Arg)
	}
	last := all[len(all)-1]
	return parseNumber(last[len(last)-1])
}

var pathStep = lazyregexp.New(`^(?:\.([A-Za-z_][\w-]*)|\[(\d{1,6})\]|\["([^"]+)"\])`)

// jsonPath takes $.a.b[0].length apart.
func jsonPath(s string) (steps []any, err error) {
	rest, ok := strings.CutPrefix(s, "$")
	if !ok {
		rest = "." + s
	}
	for rest != "" {
		m := pathStep.FindStringSubmatch(rest)
		switch {
		case m == nil:
			return nil, fmt.Errorf(`is "json:%s"; after json: stands a path such as $.violations.length or $.files[0].size`, s)
		case m[2] != "":
			n, _ := strconv.Atoi(m[2]) // digits alone
			steps = append(steps, n)
		default:
			steps = append(steps, m[1]+m[3])
		}
		rest = rest[len(m[0]):]
	}
	return steps, nil
}

// readJSON finds the number at the path. What stands before the document, such as a
// greeting of npm's, is passed over.
func (k Kind) readJSON(out []byte) (float64, error) {
	steps, err := jsonPath(k.Arg)
	if err != nil {
		return 0, err
	}
	doc, err := document(out)
	if err != nil {
		return 0, err
	}
	for i, step := range steps {
		switch at := doc.(type) {
		case map[string]any:
			name, _ := step.(string)
			next, has := at[name]
			switch {
			case has:
				doc = next
				continue
			case name == "length" && i == len(steps)-1:
				return float64(len(at)), nil
			}
		case []any:
			if n, is := step.(int); is && n < len(at) {
				doc = at[n]
				continue
			}
			if step == "length" && i == len(steps)-1 {
				return float64(len(at)), nil
			}
		}
		return 0, fmt.Errorf("the JSON that the command printed has no %s", k.Arg)
	}
	n, is := doc.(json.Number)
	if !is {
		return 0, fmt.Errorf("at %s stands no number in the JSON that the command printed", k.Arg)
	}
	return parseNumber(n.String())
}

// document decodes the JSON document in an output.
func document(out []byte) (any, error) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return nil, errors.New("the command printed nothing")
	}
	for rest := out; len(rest) > 0; {
		if line := bytes.TrimLeft(rest, " \t"); line[0] == '{' || line[0] == '[' || len(rest) == len(out) {
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var doc any
			if err := d.Decode(&doc); err == nil && !d.More() {
				return doc, nil
			}
		}
		next := bytes.IndexByte(rest, '\n')
		if next < 0 {
			break
		}
		rest = bytes.TrimLeft(rest[next+1:], "\r\n")
	}
	return nil, fmt.Errorf("the command printed no JSON: %s", text.Clip(text.FirstLine(string(out)), 100))
}

// Sum makes a reading of the sizes of files.
func Sum(files []measure.Part) (measure.Reading, error) {
	if len(files) == 0 {
		return measure.Reading{}, errors.New("no file is there that it matches")
	}
	total := 0.0
	for _, f := range files {
		total += f.Value
	}
	r := measure.One(total)
	r.Parts = files
	return r, nil
}

// Breakdown reads lines of "value name"; others are passed over.
func Breakdown(out []byte) (parts []measure.Part) {
	for line := range strings.Lines(string(out)) {
		value, name, ok := strings.Cut(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), " ")
		v, err := parseNumber(value)
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			continue
		}
		parts = append(parts, measure.Part{Name: text.Clip(name, 200), Value: v})
	}
	return parts
}
