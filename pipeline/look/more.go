package look

import (
	"forge/pipeline/lazyregexp"
	"forge/pipeline/point"
)

// never matches nothing: constants of these languages are not followed.
var never = lazyregexp.New(`$^a`)

var ruby = &language{
	remark: "#", constants: never,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bENV\b|\$PROGRAM_NAME\b|\$0\b|\bARGV\b|\$LOADED_FEATURES\b|\$"|\bcaller(?:_locations)?\b|\bProcess\.|\bEtc\.|\bSocket\.gethostname\b|\bTime\.now\b|\bDate\.today\b` +
			`|\b(?:Dir|File)\.(?:glob|exist\?|entries|children|pwd)\b|\.constants\b|\.tty\?|\.isatty\b|\bRUBY_\w+|\.to_i\s*\+\s*1\b|\bdefined\?\s*\(?\s*(?:::)?[A-Z]|(?:\b(?:if|unless|and|or)|&&|\|\|)\s+!?\$(?:VERBOSE|DEBUG)\b|\$(?:VERBOSE|DEBUG)\s*(?:\?|&&|[=!]=)|\$(?:LOAD_PATH|:)\.(?:any\?|none\?|size|length|count|grep|find|first)|\bWarning\[\S+\](?:\s*[?&|]|\s*$)|\bGC\.(?:count|stat)\b|\bThread\.(?:current\.(?:name|backtrace\w*)|list|main)\b|\bbacktrace(?:_locations)?(?:\([^)]*\))?&?\.(?:size|length|count)\b|\$@` +
			`|\b__dir__\b.*(?:include\?|end_with\?|start_with\?|[=!]=|=~)|\b(?:Object|Module|Kernel)\.const_defined\?|\bRails\.env\.test\?|\bGem\.loaded_specs\b|\b__FILE__\s*!=|\b(?:Kernel\.)?rand\b`),
		point.Hidden:  lazyregexp.New(`\b(?:instance_|class_|module_)?eval\b|\b(?:const_get|const_set|__send__|instance_variable_set|set_trace_func|at_exit|exit!)|\b(?:TracePoint|ObjectSpace|Base64)\b|\brefine\b|\.reverse\.to_sym\b|\.pack\(`),
		point.Ends:    lazyregexp.New(`\bThread\.(?:exit|kill|stop|current\b)|\b(?:StopIteration|ThreadError)\b|\bthrow\b[ (]`),
		point.Compare: lazyregexp.New(`\bdef\s+(?:self\.)?(?:==|!=|===|<=>|=~|eql\?|equal\?|hash\b|coerce\b|method_missing\b|respond_to_missing\?|is_a\?|instance_of\?)|<\s*(?:BasicObject|Integer|Numeric|String|Array|Hash)\b|\bBigDecimal\.(?:mode|limit)\(`),
	},
	unless: map[point.Kind]*lazyregexp.Regexp{ // what is kept by thread, looked at or caught, and what frameworks stop by
		point.Ends: lazyregexp.New(`\bThread\.current(?:\[|\.(?:thread_variable|object_id|name|priority|report_on|fetch|key\?|backtrace))|\bThread\.current\s*$|\brescue\b|\bthrow[ (]+:(?:abort|halt|warden)\b`),
	},
}

var php = &language{
	remark: "//", constants: never,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bgetenv\(|\$_(?:ENV|SERVER)\b|\$argv\b|\bPHP_SAPI\b|\bphp_sapi_name\b|\bhttp_response_code\(\s*\)|\$GLOBALS\b|\$argc\b|\bInstalledVersions\b|\bheaders_sent\(|\bheader\w*_list\(|\benv\(|\brunningUnitTests\(|\brunningInConsole\(|\bINPUT_(?:SERVER|ENV)\b|\bextension_loaded\(|\berror_reporting\(\s*\)|\bdebug_(?:print_)?backtrace\(|->getTrace|\bget_(?:declared_\w+|included_files|required_files|defined_\w+|loaded_extensions)\(|\b(?:class|interface|function)_exists\(|\bdefined\(` +
			`|\b(?:hrtime|microtime|time|memory_get_\w+|getmypid|gethostname|getcwd|php_uname|posix_\w+|stream_isatty|ini_get|file_exists|is_file|is_dir|glob|scandir|rand|mt_rand|random_int)\(|\bstatic\s+\$\w+\s*[=;]`),
		point.Hidden:  lazyregexp.New(`\beval\(|^\s*\$\w+\s*=\s*["'][\w\\]*["']\s*\.\s*["']\w*["']\s*;|\bbase64_decode\(|\bstrrev\(|\bstr_rot13\(|\bReflection\w+|\bconstant\(|\$\$\w|\b(?:register_shutdown_function|ob_start|set_error_handler|set_exception_handler|spl_autoload_register|class_alias)\(|\bexit\b|\bdie\b`),
		point.Compare: lazyregexp.New(`\bfunction\s+__(?:toString|get|call|callStatic|isset|invoke)\b|\bbcscale\(\s*\d|\bini_set\(\s*["'](?:serialize_)?precision\b`),
	},
}

var java = &language{
	remark: "//", constants: never,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place: lazyregexp.New(`\bSystem\.(?:getenv|getProperty|getProperties|currentTimeMillis|nanoTime|console)\(|\bgetStackTrace\(|\bStackWalker\b|\bThread\.(?:currentThread|getAllStackTraces)\b|\bProcessHandle\b|\bManagementFactory\b|\bInetAddress\b` +
			`|\bFiles\.(?:list|walk)\(|\bnew Random\(|\.now\(\)|\bMath\.random\(|\bClass\.forName\(|\bgetResource(?:AsStream)?\(|\b(?:Boolean\.getBoolean|Integer\.getInteger|Long\.getLong)\(|\.(?:exists|isDirectory|isRegularFile)\(|\bavailableProcessors\(\)\s*[=!<>]|\bgetPackages?\(|\bstackTrace(?:ToString)?\b|\bassert\s*\(?\s*\(?\s*\w+\s*=[^=]|\bgetClassLoader\(|\bdesiredAssertionStatus\b`),
		point.Hidden:  lazyregexp.New(`\bsetAccessible\(|\bgetDeclared(?:Field|Method|Constructor)s?\(|\bUnsafe\b|\bMethodHandles\b|\bnewProxyInstance\(|\.halt\(|\bSystem\.(?:exit|setOut|setErr|setIn)\(|\bsetDefaultUncaughtExceptionHandler\(|\baddShutdownHook\(|\bset\w*AssertionStatus\(`),
		point.Compare: lazyregexp.New(`\bboolean\s+equals\(|\bint\s+(?:compareTo|compare)\(`),
	},
}

var shell = &language{
	remark: "#", constants: never,
	kinds: map[point.Kind]*lazyregexp.Regexp{
		point.Place:   lazyregexp.New(`/proc/|\$\{?PPID\b|\$\{?PWD\b|\bPATH=|\$0\b|\bps\s+-|(?:\[|\btest)\s+-[defrsx]\s|\b(?:hostname|whoami|uname|tty)\b|\$\{?(?:CI|TERM|USER|HOME)\b`),
		point.Hidden:  lazyregexp.New(`\beval\b|\btrap\b|\balias\b|\bset\s+[-+]n\b`),
		point.Compare: never,
	},
}
