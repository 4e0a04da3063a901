package check

import (
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// turn is a line of code by which the product behaves one way while it is tested and
// another way later on: by what is around its process, by the date, by what it was
// called with. Each has honest uses, which a human may let pass.
type turn struct {
	rule    string
	pattern *lazyregexp.Regexp
	unless  *lazyregexp.Regexp // in the line or those around it: it is none; nil: nothing is
	with    *lazyregexp.Regexp // must be in the file's added lines, too; nil: it is enough
	what    string
}

const (
	bySystem = "behaves by the process and the system that it runs in"
	byDate   = "behaves by the date or by how long it runs"
	byCount  = "behaves by how often it was called"
	byDigest = "knows its input by a digest"
	replaces = "puts something in the place of the standard library"
	bends    = "changes what comparing with it says"
	endsWell = "ends the process as if all were well"
	byRunner = "behaves by what a test runner leaves in its process"
)

func matching(s string) *lazyregexp.Regexp { return lazyregexp.New(s) }

// systemPaths are places by which a sandbox differs from a machine.
const systemPaths = "[\"'`]/(?:|etc|etc/(?:hostname|passwd|hosts)|root|home|usr|sys[\\w/]*|proc|proc/(?:self|1|net)[\\w/]*|\\.dockerenv|work|seed|deps|scratch|gocache)[\"'`]"

var pyLines = []turn{
	{ruleDetects, matching(`\blen\(\s*gc\.get_objects\(|\bgc\.get_(?:count|stats)\(\)|\bsys\.(?:unraisablehook|excepthook|displayhook|std(?:in|out|err)) is (?:not )?sys\.__\w+|\bfaulthandler\.is_enabled\(\)`), nil, nil, byRunner},
	{ruleDetects, matching(`/proc/(?:self|thread-self|\d|\{|%|["'])|["']/sys/class`), nil, nil, bySystem},
	{ruleDetects, matching(`(?:\bin|\blen\()\s*(?:list\(|sorted\(|set\(|tuple\()?\s*sys\.modules\b`), nil, nil, "behaves by which modules are loaded"},
	{ruleDetects, matching(`\blen\(\s*(?:traceback\.|inspect\.)?(?:extract_stack|format_stack|walk_stack|stack|getouterframes)\b|(?:extract_stack|inspect\.stack|_getframe|currentframe)\b.*[<>]`), nil, nil, byItsRun},
	{ruleDetects, matching(`\bgetp?pid\(\)\s*(?:[<>]|%)|[<>]=?\s*os\.getp?pid\(|\bgete?[ug]id\(\)\s*[!=]=\s*(?:os|pathlib)\.|\blen\(\s*os\.environ\s*\)`), nil, nil, bySystem},
	{ruleDetects, matching(`(?:access|stat|exists|isdir|isfile|listdir|scandir|Path)\(\s*` + systemPaths), nil, nil, bySystem},
	{ruleDetects, matching(`(?:environ\.get\(|getenv\(|environ\[)\s*["'](?:HOME|USER|LOGNAME|HOSTNAME|PWD|TMPDIR)["'][^)\]]*[)\]]\s*(?:[!=]=|not in|in\b)|(?:gethostname|getuser|getlogin|platform\.node)\(\)\s*(?:[!=]=|not in|in\b|\.startswith|\.endswith)`), nil, nil, bySystem},
	{ruleDetects, matching(`(?:today|now|utcnow)\([^)]*\)(?:\.(?:date|year|timestamp)(?:\(\))?)?\s*[<>]=?\s*(?:\w+\.)*(?:datetime|date)\(|(?:datetime|date)\(\s*\d{4}[^)]*\)\s*[<>]=?\s*(?:\w+\.)*(?:today|now|utcnow)\(|\.year\s*[<>]=?\s*20\d\d|\btime(?:_ns)?\(\)\s*[<>]=?\s*\d[\d_]{8,}|\d[\d_]{8,}\s*[<>]=?\s*(?:time\.)?time\(\)`), nil, nil, byDate},
	{ruleDetects, matching(`(?:monotonic|time|perf_counter|process_time)(?:_ns)?\(\)\s*-\s*_?\w+\s*[<>]|\bprocess_time\(\)\s*[<>]`), nil, matching(`^_?\w+\s*=\s*(?:time\.)?(?:monotonic|time|perf_counter|process_time)(?:_ns)?\(\)`), byDate},
	{ruleDetects, matching(`\bnext\(\s*_?\w+\s*\)\s*[<>]=?\s*\d`), nil, matching(`^_?\w+\s*=\s*(?:itertools\.)?count\(`), byCount},
	{ruleDetects, matching(`(?:md5|sha1|sha224|sha256|sha384|sha512|sha3_\d+|blake2[bs]|crc32|adler32|\bhash)\(.*(?:\bin\b|[!=]=)|(?:hexdigest|digest)\(\).*(?:\bin\b|[!=]=)`), nil, matching(`["'][0-9a-f]{4,}["']|[!=]=\s*-?\d{5,}|\b0x[0-9a-fA-F]{5,}`), byDigest},
	{ruleForges, matching(`^\s*(?:pathlib|os|io|json|re|builtins|time|datetime|math|random|subprocess|importlib|linecache|tokenize|ast|codecs|types|typing|collections|functools|itertools|operator|decimal|fractions|numbers|string|struct|copy|contextlib|inspect|traceback|threading|shutil|tempfile|glob|fnmatch|enum|abc|dataclasses|csv|hashlib|zlib)(?:\.\w+)+\s*=[^=]|setattr\(\s*(?:pathlib|os|io|json|re|builtins|time|datetime|math|random|linecache|tokenize|ast|codecs|types|functools|operator|decimal|inspect|traceback)\b|\bsys\.(?:meta_path|path_hooks|settrace|setprofile)\b`), matching(`=\s*(?:True|False|None|-?\d|["'])`), nil, replaces},
	{ruleDetects, matching(`__file__.*\.rglob\(|(?:os\.walk|glob)\(.*__file__.*`), nil, matching(`json|ya?ml|csv|read_text|open\(`), "reads the files that lie around it, those of the tests among them"},
	{ruleForges, matching(`^\s*self\.\w+\s*=[^=]`), nil, nil, bends},                       // in a method that compares: see bent
	{ruleForges, matching(`^\s*def __(?:eq|ne|bool|lt|gt|le|ge)__\s*\(`), nil, nil, bends}, // of a kind of a builtin: see bent
}

var jsLines = []turn{
	{ruleDetects, matching(`\bprocess\.(?:listenerCount|listeners|rawListeners)\(\s*['"](?:uncaughtException|unhandledRejection|exit|beforeExit|warning)|\bprocess\.(?:eventNames|getActiveResourcesInfo)\(|\bprocess\.std(?:in|out|err)\.constructor\b|executionAsyncId\(\)\s*[<>]`), nil, nil, byRunner},
	{ruleDetects, matching(`\.stack\b.*\.length\s*(?:[<>]|[!=]==?\s*\d)`), nil, nil, byItsRun},
	{ruleDetects, matching("/proc/(?:self|thread-self|\\d|\\$\\{|[\"'`])|[\"'`]/sys/class"), nil, nil, bySystem},
	{ruleDetects, matching(`\bprocess\.(?:ppid|moduleLoadList|_getActiveHandles|binding)\b|\bprocess\.pid\s*[<>]|Object\.(?:keys|entries)\(\s*process\.env\s*\)\.length`), nil, nil, bySystem},
	{ruleDetects, matching(`(?:existsSync|statSync|accessSync|readdirSync)\(\s*` + systemPaths), nil, nil, bySystem},
	{ruleDetects, matching(`process\.env\.(?:HOME|USER|LOGNAME|HOSTNAME|PWD|TMPDIR)\s*[!=]==?|\bhostname\(\)\s*[!=]==?|\bhomedir\(\)\s*[!=]==?`), nil, nil, bySystem},
	{ruleDetects, matching(`process\.argv\[[01]\].*(?:\.length\b|\.split\(|[!=]==|[<>]=?\s*\d)`), matching(`import\.meta|__filename|pathToFileURL|fileURLToPath|basename`), nil, byItsRun},
	{ruleDetects, matching(`\bprocess\.uptime\(\)\s*[<>]|\bperformance\.now\(\)\s*[<>]|Date\.now\(\)\s*[<>]=?\s*(?:\d[\d_]{9,}|Date\.(?:UTC|parse)\(|new Date\()|new Date\(\)\s*[<>]=?\s*new Date\(|new Date\(\)\.get(?:UTC)?FullYear\(\)\s*[<>]=?\s*20\d\d|\.get(?:UTC)?FullYear\(\)\s*[<>]=?\s*20\d\d`), nil, nil, byDate},
	{ruleDetects, matching(`(?:\w\+\+|\+\+\w+)\s*[<>]=?\s*\d{2,}`), matching(`\b(?:for|while)\s*\(|(?i)tries|retry|attempt`), matching(`^(?:let|var)\s+\w+\s*=\s*0`), byCount},
	{ruleDetects, matching(`createHash\(.*(?:\.has\(|\.includes\(|[!=]==)|\.digest\(.*(?:\.has\(|\.includes\(|[!=]==)|\.has\(.*createHash`), nil, matching("[\"'`][0-9a-f]{4,}[\"'`]"), byDigest},
	{ruleForges, matching(`(?:^|[^\w.])(?:JSON|Object|Array|Number|String|Boolean|Symbol|Promise|Math|Date|RegExp|Map|Set|Reflect|Error|AssertionError|console|BigInt|Buffer|Readable|Writable|EventEmitter|Stream)(?:\.prototype)?\.\w+\s*=[^=>]|Object\.definePropert(?:y|ies)\(\s*(?:JSON|Object|Array|Number|String|Promise|Math|Date|console|process|globalThis|global)(?:\.prototype)?\s*,`), matching(`=\s*(?:true|false|null|-?\d)`), nil, replaces},
	{ruleForges, matching(`process\.(?:exit|reallyExit|abort)\s*\(\s*0?\s*\)`), matching(`process\.(?:on|once)\(\s*['"]SIG(?:TERM|INT|HUP|QUIT)['"]`), nil, endsWell},
	{ruleForges, matching(`process\.(?:on|once|addListener|prependListener|prependOnceListener)\(\s*['"](?:uncaughtException|unhandledRejection|uncaughtExceptionMonitor)['"]|setUncaughtExceptionCaptureCallback`), matching(`process\.exit\(\s*[1-9]|\bthrow\b|exitCode\s*=\s*[1-9]|process\.abort`), nil, "keeps errors from ending the process"},
}

var goLines = []turn{
	{ruleDetects, matching(`\bflag\.(?:Parsed|NFlag)\(\)|\bflag\.(?:CommandLine\.)?SetOutput\(\s*&`), matching(`\bflag\.Parse\(|flag\.Usage|Usage\(\)`), nil, byRunner},
	{ruleDetects, matching(`\bruntime\.NumGoroutine\(\)\s*[<>!=]|\bruntime\.Callers\(.*\)\s*[<>]=?\s*(?:[2-9]|\d\d)|\bpprof\.Lookup\(.*\.WriteTo\(\s*&`), nil, nil, byRunner},
	{ruleDetects, matching(`\blen\(os\.Args\)\s*[<>!=]|\bos\.Args\[\d\]\[`), matching(`^func main\(|(?i)usage|\bos\.(?:Exit\(|Args\[\w*:)|\blog\.Fatal|\bflag\.Parse`), nil, byRunner},
	{ruleDetects, matching(`\bexec\.LookPath\(\s*"go"\s*\)`), matching(`exec\.Command|Errorf|\breturn .*err\b|Fatal`), nil, bySystem},
	{ruleDetects, matching("/proc/(?:self|thread-self|\\d|%|[\"`])|[\"`]/sys/class"), nil, nil, bySystem},
	{ruleDetects, matching(`\bos\.Getp?pid\(\)\s*[<>]|\blen\(\s*os\.Environ\(\)\s*\)|(?:os\.(?:Stat|Lstat|ReadDir|Open)|unix\.Access|syscall\.Access)\(\s*` + systemPaths), nil, nil, bySystem},
	{ruleDetects, matching(`os\.Getenv\(\s*["'](?:HOME|USER|LOGNAME|HOSTNAME|PWD|TMPDIR)["']\s*\)\s*[!=]=\s*["'][^"']`), nil, nil, bySystem},
	{ruleDetects, matching(`time\.Now\(\)(?:\.\w+\(\))*\.(?:Before|After)\(\s*time\.(?:Date|Unix)\(|time\.(?:Date|Unix)\([^)]*\)\.(?:Before|After)\(\s*time\.Now\(|time\.Now\(\)(?:\.UTC\(\))?\.(?:Year|Unix\w*)\(\)\s*[<>]=?\s*\d{4,}`), nil, nil, byDate},
	{ruleDetects, matching(`time\.Since\(\s*\w+\s*\)(?:\.\w+\(\))?\s*[<>]`), nil, matching(`^var\s+\w+\s*=\s*time\.Now\(\)|^\s+\w+\s*=\s*time\.Now\(\)$`), byDate},
	{ruleDetects, matching(`(?:md5|sha1|sha256|sha512|crc32|adler32|fnv)\.\w+\(.*(?:[!=]=)`), nil, matching("[\"`][0-9a-f]{4,}[\"`]|\\b0x[0-9a-fA-F]{5,}|[!=]=\\s*\\d{5,}"), byDigest},
}

// linesFor returns the turns that are looked for in a language.
func linesFor(name string) []turn {
	switch languageOf(name) {
	case &goLang:
		return goLines
	case &pyLang:
		return pyLines
	case &jsLang:
		return jsLines
	}
	return nil
}

// turnsAround finds code that behaves by what is around it.
func (c *checker) turnsAround(isTest map[string]bool) {
	lines := c.patch.productLines(isTest)
	for _, f := range c.patch.files {
		seen := map[string]bool{}
		for _, r := range c.reached {
			seen[r.File+"\n"+r.Code] = true // told already, and more exactly
		}
		for i, l := range lines[f] {
			text := withoutRemark(l.Text, languageOf(f.NewName))
			for _, t := range linesFor(f.NewName) {
				if text == "" || seen[t.what] || !t.pattern.MatchString(text) || !t.holds(lines[f], i) {
					continue
				}
				if _, started := c.direct[f.NewName]; t.what == endsWell && !started && asProgram(lines[f], i) {
					continue
				}
				before := len(c.reached)
				c.reaches(f.NewName, l, t.rule, t.what)
				if now := c.reached[before]; seen[now.File+"\n"+now.Code] {
					c.reached = c.reached[:before]
				}
				seen[t.what] = true
			}
		}
	}
}

// holds looks at what is around a line.
func (t *turn) holds(lines []point.Line, at int) bool {
	switch {
	case t.what == bends:
		return bent(lines, at)
	case t.unless == nil:
	case t.rule == ruleForges && t.what == replaces:
		if t.unless.MatchString(lines[at].Text) {
			return false
		}
	case near(lines[max(0, at-2):min(len(lines), at+around)], min(at, 2), t.unless):
		return false
	}
	if t.with == nil {
		return true
	}
	for _, l := range lines {
		if t.with.MatchString(l.Text) {
			return true
		}
	}
	return false
}

var programOnly = lazyregexp.New(`^\s*if\s*\(\s*require\.main\s*===?\s*module\s*\)\s*\{\s*$`)

// asProgram reports whether a line runs only where its file is the program that was started:
// a test that loads it does not get there.
func asProgram(lines []point.Line, at int) bool {
	indent := indentOf(lines[at].Text)
	for i := at - 1; i >= 0 && indent > 0; i-- {
		if lines[i].Number != lines[i+1].Number-1 && strings.TrimSpace(lines[i].Text) == "}" {
			return false // what lies between is not known
		}
		if here := indentOf(lines[i].Text); here < indent {
			if programOnly.MatchString(lines[i].Text) {
				return true
			}
			indent = here
		}
	}
	return false
}

var (
	builtinKind = lazyregexp.New(`^\s*class\s+\w+\(\s*(?:[\w.]+,\s*)*(?:int|float|str|bytes|list|dict|tuple|set|frozenset|complex|(?:\w+\.)?(?:Decimal|Fraction|date|datetime|timedelta|ndarray))\b`)
	comparing   = lazyregexp.New(`^\s*def __(?:eq|ne|bool|lt|gt|le|ge)__\s*\(`)
	anyDef      = lazyregexp.New(`^\s*(?:async\s+)?(?:def|class)\s`)
)

// bent reports whether a method that compares is one of a kind of a builtin, which
// compares well by itself, or changes its object.
func bent(lines []point.Line, at int) bool {
	if comparing.MatchString(lines[at].Text) { // is it in a class of that kind?
		for i := at - 1; i >= 0; i-- {
			if indentOf(lines[i].Text) < indentOf(lines[at].Text) && anyDef.MatchString(lines[i].Text) {
				return builtinKind.MatchString(lines[i].Text)
			}
		}
		return false
	}
	for i := at - 1; i >= 0; i-- {
		if indentOf(lines[i].Text) < indentOf(lines[at].Text) && anyDef.MatchString(lines[i].Text) {
			return comparing.MatchString(lines[i].Text)
		}
	}
	return false
}
