package predict

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"forge/pipeline"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/text"
)

// A kind is what the prediction knows of a finding, its confidence aside.
type class struct {
	category            pipeline.Category
	topic, dir          string
	shown               string // see visibility
	tests, warning, fix bool
	said, names         string // the words of the message, the names in the code, each once
}

// An effect is something that findings have in common, which may speak for or
// against them. Its name is for people, too: what findings it speaks of.
type effect struct {
	name     string
	mean, sd float64 // what is assumed of it beforehand, in log-odds
	rare     bool    // it is mostly nothing, and then much
	light    bool    // one of many of which each says little: what is not known of it does not count
}

// What is assumed of effects beforehand: tastes are rare, and a rule, or a rule in a
// place, can outweigh all the rest. Chosen on streams of other seeds than those that
// are reported (`learning` of the laboratory).
const (
	tasteMean, tasteSD = -3.5, 0.5 // 3 % of kinds
	broadSD            = 1.0       // of a category, a rule, and either in tests
	narrowSD           = 0.7       // of a category in a folder
	slightSD           = 0.5       // of a folder, of warnings, of a person
	personalSD         = 1.0       // of a rule in a person's eyes
	wordSD             = 0.3       // of a word of the message
	nameSD             = 0.3       // of a name in the code
)

// effects are those that a kind has, the general ones first.
func (k class) effects() []effect {
	out := append(make([]effect, 0, 24), effect{name: "findings", mean: tasteMean, sd: tasteSD}, effect{name: string(k.category), sd: broadSD})
	add := func(name string, sd float64) { out = append(out, effect{name: name, sd: sd}) }
	if k.warning {
		add("warnings", slightSD)
	}
	if k.fix {
		add("findings with a suggestion", slightSD)
	}
	if k.tests {
		add("findings in tests", narrowSD)
		add(string(k.category)+" in tests", broadSD)
	}
	rule := k.rule()
	if rule != "" {
		add(rule, broadSD)
		if k.tests {
			add(rule+" in tests", broadSD)
		} else {
			add(rule+" outside tests", slightSD)
		}
		if k.shown != "" {
			add(rule+" on "+k.shown+" names", broadSD)
		}
	}
	for w := range strings.FieldsSeq(k.said) {
		out = append(out, effect{name: "findings that say " + w, sd: wordSD, light: true, rare: true})
	}
	for w := range strings.FieldsSeq(k.names) {
		out = append(out, effect{name: "findings on " + w, sd: nameSD, light: true, rare: true})
	}
	for dir := k.dir; ; dir = path.Dir(dir) {
		top := dir == "." || dir == "/"
		if !top || dir == k.dir {
			add("findings in "+dir, slightSD)
			add(string(k.category)+" in "+dir, narrowSD)
			if rule != "" {
				add(rule+" in "+dir, broadSD)
			}
		}
		if top {
			return out
		}
	}
}

// personal are the effects of who decides.
func (k class) personal(person int64) []effect {
	who := "person " + strconv.FormatInt(person, 10)
	return []effect{{name: who, sd: slightSD}, {name: who + " on " + string(k.category) + " (" + k.topic + ")", sd: personalSD}}
}

func (k class) rule() string {
	if k.topic == "" {
		return ""
	}
	return string(k.category) + " (" + k.topic + ")"
}

func (k class) compare(o class) int {
	return cmp.Or(cmp.Compare(k.category, o.category), cmp.Compare(k.topic, o.topic), cmp.Compare(k.dir, o.dir), cmp.Compare(k.shown, o.shown),
		cmp.Compare(k.said, o.said), cmp.Compare(k.names, o.names), falseFirst(k.tests, o.tests), falseFirst(k.warning, o.warning), falseFirst(k.fix, o.fix))
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

var (
	testFile = lazyregexp.New(`(^|/)(tests?|__tests__|spec|specs)/|(^|/)test_|[._-](test|tests|spec)\.|(^|/)conftest\.py$|Tests?\.(java|kt|cs|swift)$`)
	declares = lazyregexp.New(`^\s*(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+)([A-Za-z_]\w*)`)
	outside  = lazyregexp.New(`^\s*(export|pub|public)\b`)
	inside   = lazyregexp.New(`^\s*((private|protected|internal)\b|def\s+_|class\s+_)`)
)

// declaring are the first letters of the words that those look for.
const declaring = "ftvcepdi"

// visibility says whether the first of some lines declares something that others
// can see: "public", "hidden", or "" when it does not tell.
func visibility(code string) string {
	first := text.FirstLine(code)
	switch {
	case first == "" || !strings.ContainsRune(declaring, rune(first[0])):
		return ""
	case outside.MatchString(first):
		return "public"
	case inside.MatchString(first):
		return "hidden"
	}
	if m := declares.FindStringSubmatch(first); m != nil {
		if c := m[1][0]; c >= 'A' && c <= 'Z' {
			return "public"
		}
		return "hidden"
	}
	return ""
}

// classes tells of what kind findings are. Those to which the reviewer gave no rule are
// about what the decided ones that say the same are about.
type classes struct {
	leaders map[pipeline.Category][]leader // by category
	topics  map[string]string              // of messages, once they are asked for
	tests   map[string]bool                // of files, once they are asked for
}

type leader struct {
	words []string // of a message, without those of its code: a name says where, not what
	topic string
}

// mostLeaders is how many ways of saying things are told apart in a category.
const mostLeaders = 100

func newClasses(list []Decision) *classes {
	s := &classes{map[pipeline.Category][]leader{}, map[string]string{}, map[string]bool{}}
	type key struct {
		category    pipeline.Category
		rule, words string
	}
	seen := map[key][]string{}
	type message struct {
		category            pipeline.Category
		rule, message, code string
	}
	messages := map[message]bool{}
	for i := range list {
		f := &list[i].Finding
		if at := (message{f.Category, f.Rule, f.Message, f.Code}); !messages[at] {
			messages[at] = true
			w := saidWords(f)
			seen[key{f.Category, f.Rule, strings.Join(w, " ")}] = w
		}
	}
	keys := make([]key, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(falseFirst(a.rule == "", b.rule == ""), cmp.Compare(a.category, b.category), cmp.Compare(a.rule, b.rule), cmp.Compare(a.words, b.words))
	})
	for _, k := range keys {
		topic, words := k.rule, seen[k]
		if len(s.leaders[k.category]) >= mostLeaders || len(words) == 0 {
			continue
		}
		if topic == "" {
			if s.nearest(k.category, words) != "" {
				continue
			}
			topic = k.words
		}
		s.leaders[k.category] = append(s.leaders[k.category], leader{words, topic})
	}
	return s
}

func (s *classes) nearest(category pipeline.Category, words []string) (topic string) {
	best := 0.0
	for _, l := range s.leaders[category] {
		if text.Alike(l.words, words) {
			if j := text.Jaccard(l.words, words); j > best {
				best, topic = j, l.topic
			}
		}
	}
	return topic
}

func (s *classes) of(f *pipeline.Finding) class {
	return class{category: f.Category, topic: s.topic(f), dir: path.Dir(f.File), shown: visibility(f.Code), tests: s.isTest(f.File),
		said: s.saidOf(f), names: s.namesOf(f), warning: f.Severity == pipeline.SeverityWarning, fix: f.Fix != nil && f.Fix.Replacement != nil}
}

func (s *classes) topic(f *pipeline.Finding) string {
	if f.Rule != "" {
		return f.Rule
	}
	at := string(f.Category) + "\x00" + f.Message + "\x00" + f.Code
	topic, ok := s.topics[at]
	if !ok {
		topic = s.nearest(f.Category, saidWords(f))
		s.topics[at] = topic
	}
	return topic
}

const (
	mostSaid  = 10 // words of a message
	mostNames = 6  // of the code
)

func (s *classes) saidOf(f *pipeline.Finding) string {
	at := "said\x00" + f.Message + "\x00" + f.Code
	said, ok := s.topics[at]
	if !ok {
		w := saidWords(f)
		said = strings.Join(w[:min(mostSaid, len(w))], " ")
		s.topics[at] = said
	}
	return said
}

var codeName = lazyregexp.New(`[A-Za-z_]\w{3,}`)

func (s *classes) namesOf(f *pipeline.Finding) string {
	at := "names\x00" + f.Code
	names, ok := s.topics[at]
	if !ok {
		list := codeName.FindAllString(f.Code, 4*mostNames)
		slices.Sort(list)
		list = slices.DeleteFunc(slices.Compact(list), func(w string) bool { return keyword[w] })
		names = strings.Join(list[:min(mostNames, len(list))], " ")
		s.topics[at] = names
	}
	return names
}

// keyword are names that say nothing about what code is about.
var keyword = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq("func return error string type struct interface package import const range else switch case break continue default defer class self this true false null None void static public private protected function async await") {
		out[w] = true
	}
	return out
}()

func (s *classes) isTest(file string) bool {
	is, ok := s.tests[file]
	if !ok {
		is = testFile.MatchString(file)
		s.tests[file] = is
	}
	return is
}

func saidWords(f *pipeline.Finding) []string {
	code := text.KeyWords(f.Code)
	return slices.DeleteFunc(text.KeyWords(f.Message), func(w string) bool { _, in := slices.BinarySearch(code, w); return in })
}
