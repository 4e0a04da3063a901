package look

import (
	"regexp"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// language is how a language writes down what there is to look at.
type language struct {
	remark    string
	kinds     map[point.Kind]*lazyregexp.Regexp
	constants *lazyregexp.Regexp                // a constant of a file with its value; the name is the only group
	unless    map[point.Kind]*lazyregexp.Regexp // lines that are none, although they look like it
	chance    *chance
}

var python = &language{
	remark: "#",
	chance: pyChance,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\b(?:environ\w*|getenv|argv|orig_argv|executable|std(?:in|out|err)\.isatty|isatty|getcwd|getp?pid|gethostname|getuser|getlogin|uname|node\(\)|cwd\(\)|home\(\)|expanduser|gettempdir)\b` +
			`|\b(?:platform|socket|getpass|pwd|site|sysconfig|inspect|gc|traceback|linecache|resource|psutil|termios|pty|tty|faulthandler|pkgutil|tracemalloc|threading\.(?:enumerate|active_count|main_thread|current_thread))\b` +
			`|\bsys\.(?:modules|path|flags|warnoptions|gettrace|getprofile|getrecursionlimit|getrefcount|_\w+|meta_path|excepthook|unraisablehook|version\w*|platform)|\b(?:from|import)\s+sys\b.*\b(?:modules|_getframe|as)\b` +
			`|__file__|\b(?:rglob|i?glob|iterdir|listdir|scandir|walk)\(|\b(?:catch_warnings|showwarning|findCaller|active_children)\b|\bRecursionError\b` +
			`|\bsys\.std(?:in|out|err)\b\s*(?:\.(?:name|fileno|encoding|errors|buffer|line_buffering)|is\b|[!=]=)|\bwarnings\.filters\b|\b(?:root|getLogger\(\))\.(?:handlers|level|hasHandlers)|\b(?:get_terminal_size|which|fstat|lstat)\(|\bos\.(?:access|stat|path\.(?:exists|isdir|isfile|getsize|getmtime))\(` +
			`|\bimportlib\.(?:metadata|util)\b|\bfrom\s+importlib\b|\b(?:find_spec|find_loader|iter_modules|walk_packages)\(|\bmetadata\.(?:version|distributions?|metadata|files|requires|packages_distributions)\(` +
			`|\bPackageNotFoundError\b|\b__debug__\b|(?:^|[^.\w])__name__\s*[!=]=\s*["'][^_]|\b(?:hasattr|dir|vars)\(\s*builtins\b|\bsys\.std(?:in|out|err)\.closed\b|\bnext\(\s*_?\w+\s*,\s*\w+\s*\)|\bexcept\b.*\bAssertionError\b|\bglobal\s+\w|\bnonlocal\s+\w|\b(?:itertools\.)?count\(\s*\d*\s*\)|\b(?:perf_counter|process_time|monotonic|thread_time)(?:_ns)?\b|\btime\.time(?:_ns)?\(|\b(?:now|today|utcnow)\(\)`),
		point.Hidden: lazyregexp.New(`\b(?:__import__|import_module|eval|exec|compile|globals|locals|vars|setattr|delattr)\(|\bgetattr\(\s*[^,]+,\s*[^"'\s]|\bgetattr\(\s*[^,]+,\s*["'][^"']*["']\s*[+%.]` +
			`|__(?:dict|class|bases|base|mro|subclasses|globals|builtins|code|closure|getattribute|loader|spec|traceback|reduce\w*)__|\b(?:tb_frame|f_back|f_code|f_globals|f_locals|gi_frame|cr_frame|ag_frame|co_\w+)\b|\b_getframe\b` +
			`|\[::-1\]\s*[)\]]|\bchr\(|fromhex|b64decode|\bcodecs\.decode|["']\s*["']\s*\.join\(map\(|\bctypes\b`),
		point.Ends: lazyregexp.New(`\b(?:SystemExit|StopIteration|StopAsyncIteration|GeneratorExit|KeyboardInterrupt|BaseException)\b|\b(?:sys|_thread)\.exit\b|\bfrom\s+(?:sys|_thread)\s+import\b.*\bexit\b|(?:^|[^.\w])(?:exit|quit)\(|\binterrupt_main\(`),
		point.Compare: lazyregexp.New(`\bdef __(?:eq|ne|lt|le|gt|ge|contains|bool|sub|rsub|abs|float|int|index|getattr|getattribute|instancecheck|subclasscheck|hash|round)__\b|["']__\w*["']\s*\+|\+\s*["']\w*__["']|["']__(?:eq|ne|lt|le|gt|ge|contains|bool|sub|rsub|abs)__["']` +
			`|\b__(?:eq|ne|lt|le|gt|ge|contains|bool|sub|rsub)__\s*=|^class\s+\w+\((?:[\w.]+,\s*)*(?:int|float|str|bytes|list|dict|tuple|set|frozenset|complex|Decimal|Fraction)\b|\btype\(\s*["']\w+["']\s*,` +
			// what numbers are rounded to and hold as near for all of the process
			`|\bgetcontext\(\)\.\w+\s*(?:\[[^\]]*\]\s*)?=[^=]|=\s*(?:decimal\.)?getcontext\(\)\s*$|\bsetcontext\(|\b(?:Default|Basic|Extended)Context\.\w+\s*=[^=]|\bmp\.(?:dps|prec)\s*=[^=]` +
			`|\b(?:np|numpy)\.(?:seterr\w*|set_printoptions)\(|\bset_default_dtype\(|^\s*(?:math|cmath|operator|statistics|decimal|fractions|numpy|np|builtins|functools|filecmp|difflib|copy|json|re|datetime)\.\w+\s*=[^=]`),
	},
	constants: lazyregexp.New(`^([A-Za-z_]\w*)\s*(?::[^=]+)?=\s*[-+]?(?:["'\[{(]|\d|True\b|False\b|Decimal\(|frozenset\()`),
	unless: map[point.Kind]*lazyregexp.Regexp{
		point.Ends:   lazyregexp.New(`\bexcept\b|\b(?:isinstance|issubclass)\(|\bdef\s|:\s*(?:type\[)?BaseException\b`),
		point.Hidden: lazyregexp.New(`\.__class__\.__name__|\bre\.compile\(|super\(|\.__dict__\b\s*[)\]]?\s*$`),
	},
}

var javascript = &language{
	remark: "//",
	chance: jsChance,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bprocess\.(?:env|argv\w*|execArgv|title|pid|ppid|cwd|uptime|hrtime|memoryUsage|release|platform|version\w*|std(?:in|out|err)\.isTTY|_\w+|binding|getActive\w+|listener\w*|eventNames|report|config|mainModule|exitCode)` +
			`|\b(?:columns|getWindowSize|hasColors|getColorDepth|isTTY)\b|\bprocess\b\s*[;,)]|=\s*process\b|["'](?:node:)?process["']|\btypeof\s+(?:window|document|navigator)\b|\bnavigator\.\w|\bObject\.(?:keys|getOwnPropertyNames|entries)\(\s*(?:globalThis|global|window|self)\b|\b__(?:dirname|filename)\b|\bimport\.meta\b|\b(?:readdir|opendir|glob)(?:Sync)?\(|\b(?:exists|stat|access|lstat)(?:Sync)?\(|\brequire\.(?:main|cache|resolve|extensions)\b|\bmodule\.(?:parent|children|paths|id|filename|loaded)\b` +
			`|\b(?:hostname|homedir|userInfo|tmpdir|loadavg|networkInterfaces)\(\)|["'](?:node:)?(?:os|vm|v8|inspector|async_hooks|worker_threads|module|perf_hooks|diagnostics_channel|cluster|repl|test)["']|\bperformance\.now\(|\bDate\.now\(|\bnew Date\(\d*\)|\bresolvedOptions\(|\bgetTimezoneOffset\(|\basyncId\(|\bDeno\b|\bBun\b`),
		point.Hidden: lazyregexp.New("\\b(?:eval|Function)\\(|\\.constructor\\b|\\bReflect\\.|\\b(?:globalThis|global|process|window|self)\\s*\\[|\\brequire\\(\\s*[^\"'`\\s]|\\bimport\\(\\s*[^\"'`\\s]|\\b(?:require|import)\\([^)]*\\+|\\[\\s*[\"'`][^\"'`]*[\"'`]\\s*\\+|\\+\\s*[\"'`][^\"'`]*[\"'`]\\s*\\]" +
			"|\\bfromCharCode\\b|\\batob\\(|\\bfrom\\([^)]*(?:base64|hex)|\\bError\\b[^;]*\\.stack\\b|\\.stack\\b|\\bprepareStackTrace\\b|\\bcaptureStackTrace\\b|\\bstackTraceLimit\\b|\\bgetCallSites?\\b|\\.reverse\\(\\)\\.join|\\.caller\\b|\\barguments\\.callee"),
		point.Compare: lazyregexp.New(`\bvalueOf\b|\btoPrimitive\b|\bhasInstance\b|\basymmetricMatch\b|\binspect\.custom\b|\bnew Proxy\(|\bsetPrototypeOf\b|\bprototype\.\w+\s*=|\b(?:includes|indexOf|has|some|every|equals|isEqual|toJSON|toString)\s*(?:\([^()]*\)\s*\{|:\s*(?:\(|function|\w+\s*=>))` +
			`|\bclass\s+\w+\s+extends\s+(?:Array|Number|String|Boolean|Map|Set|Date|Object|BigInt)\b|\bObject\.assign\([^;]*(?:=>|function)|\bdefinePropert(?:y|ies)\(|\b(?:Decimal|BigNumber)\.(?:set|config)\(|\b(?:Big\.(?:DP|RM)|(?:Math|Number)\.\w+)\s*=[^=]`),
	},
	constants: lazyregexp.New("^(?:export\\s+)?(?:const|let|var)\\s+(\\w+)\\s*(?::[^=]+)?=\\s*(?:[-+]?\\d|[\"'`\\[{]|Object\\.freeze\\(|new (?:Map|Set)\\()"),
	unless: map[point.Kind]*lazyregexp.Regexp{
		point.Hidden: lazyregexp.New(`\bthis\.constructor\.name\b|\berr(?:or)?\.stack\b`),
	},
}

var golang = &language{
	remark: "//",
	chance: goChance,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bos\.(?:Args|Environ|Getenv|LookupEnv|Executable|Getwd|Getp?pid|Hostname|UserHomeDir|TempDir|Stat|Lstat|ReadDir|DirFS|Getuid)\b|\bruntime\.(?:Callers?\w*|Stack|FuncForPC|Frame\w*|NumGoroutine|ReadMemStats|MemStats|NumCgoCall|GOROOT|Version)\b` +
			`|\b(?:debug|pprof|trace|metrics|buildinfo|plugin|syscall|unix|expvar)\.\w|\bruntime\.(?:GOMAXPROCS|NumCPU)\(\d*\)\s*[=!<>]|\blog\.(?:Flags|Prefix|Writer)\(|\bos\.Open\(\s*"|\bflag\.(?:Lookup|Visit\w*|CommandLine|Parsed|N\w+|Args?)\b|\b(?:filepath|fs)\.(?:Walk\w*|Glob)\b|\btesting\b|\buser\.Current\b|\btime\.(?:Now|Since)\(|\bexec\.LookPath\(|\bos\.Std(?:in|out|err)\.(?:Stat|Name|Fd)\(|\bModeCharDevice\b|\bIsTerminal\(|\batomic\.(?:Add\w+|Int\d+|Uint\d+)\b`),
		point.Hidden:  lazyregexp.New(`\bunsafe\.|\breflect\.\w+\([^)]*\)[^;]*(?:\.Pointer\(|UnsafePointer|PkgPath\(|UnsafeAddr|MethodByName\(\s*[^"])|//go:linkname|\bhex\.DecodeString\(|\bbase64\.\w+\.DecodeString\(\s*"|\[\]byte\{'|string\(\[\](?:byte|rune)\{`),
		point.Ends:    lazyregexp.New(`\bGoexit\b`),
		point.Compare: lazyregexp.New(`^func \([^)]*\) (?:Equal|Is|As|Cmp|Compare|Less|GoString|Format)\(`),
	},
	constants: lazyregexp.New("^(?:(?:const|var)\\s+|\\s*)([A-Za-z_]\\w*)(?:\\s+[\\w.\\[\\]*]+)?\\s+=\\s*(?:[-+]?\\d|[\"`']|map\\[|\\[\\]|true\\b|false\\b)"),
}

var rust = &language{
	remark: "//",
	chance: rsChance,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bcfg(?:!|_attr)?\(|\benv::(?:vars?(?:_os)?|args(?:_os)?|current_exe|current_dir|temp_dir|home_dir)\b|\b(?:option_)?env!\(|\b(?:module_path|file|line|column)!\(\)|\binclude_(?:str|bytes)!\([^)]*(?:Cargo|\.rs\b)|\bcatch_unwind\(|\bthread::panicking\(|\bstatic\s+mut\b|\bstatic\s+\w+\s*:[^=]*\b(?:Mutex|RwLock|Cell|RefCell)<|\bdebug_assert\w*!\(.*(?:[^=!<>+*/-]=[^=>]|\{|\.(?:set|store|push|insert|fetch_\w+)\()|\bprocess::(?:id|parent_id)\(|\bthread::current\(\)|\bBacktrace\b|\bLocation::caller\(` +
			`|\b(?:Instant|SystemTime|Utc|Local)::now\(|\bstatic\s+(?:mut\s+)?\w+\s*:\s*(?:\w+::)*Atomic\w+|\bis_terminal\(|\bfs::(?:metadata|read_dir|exists)\(|\.(?:try_)?exists\(\)|\bcargo:{1,2}rustc-(?:cfg|env)\b`),
		point.Hidden:  lazyregexp.New(`\btransmute\b|\basm!\(|#\[(?:unsafe\()?(?:no_mangle|export_name|link_section|ctor)\b|\bno_implicit_prelude\b`),
		point.Compare: lazyregexp.New(`\bimpl\b.*\b(?:PartialEq|PartialOrd|Ord|Hash|Deref)\b.*\bfor\b`),
	},
	constants: lazyregexp.New(`^(?:pub(?:\([^)]*\))?\s+)?(?:const|static)\s+(\w+)\s*:[^=]+=\s*(?:[-+]?\d|["'\[&]|true\b|false\b)`),
	unless: map[point.Kind]*lazyregexp.Regexp{ // what the code is built for, or for tests alone
		point.Place: lazyregexp.New(`\bcfg!?\((?:all|any|not|target_\w+|unix|windows|feature|test|"[^"]*"|[\s(),=])*\)\]?\s*(?:[{&|!)].*)?$|\bcfg_attr\([^,]*,\s*(?:derive|allow|deny|warn|no_std|doc|serde|inline|must_use|non_exhaustive)\b`),
	},
}

var languages = map[string]*language{
	".rs": rust, ".py": python, ".pyw": python, ".go": golang,
	".js": javascript, ".mjs": javascript, ".cjs": javascript, ".jsx": javascript, ".ts": javascript, ".mts": javascript, ".cts": javascript, ".tsx": javascript,
	".rb": ruby, ".php": php, ".java": java, ".kt": java, ".sh": shell, ".bash": shell,
}

// plain reports whether a line is none of its kind after all.
func (l *language) plain(k point.Kind, f *File, i int) bool {
	re, line := l.unless[k], f.Added[i].Text
	return re != nil && re.MatchString(line) || k == point.Ends && f.endsWell(i) || k == point.Place && (configures(f.Added, i) || asBefore(f, line))
}

// constant returns the name of a constant that a line gives another value.
func (l *language) constant(f *File, line string) string {
	m := l.constants.FindStringSubmatch(line)
	if m == nil || len(m[1]) < 3 {
		return ""
	}
	was := regexp.MustCompile(`^\s*(?:export\s+)?(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|let|var|static)\s+)?` + regexp.QuoteMeta(m[1]) + `\b[^=]*=[^=]`)
	for _, gone := range f.Gone {
		if was.MatchString(gone) && strings.TrimSpace(gone) != strings.TrimSpace(line) {
			return m[1]
		}
	}
	return ""
}
