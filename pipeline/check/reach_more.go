package check

import (
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
)

// namesTests is said of code in languages in which a library that is there can be used, or
// looked for, without a line that imports it.
const namesTests = "names the test library"

// rubyReaches look for tests by words: what Ruby is told by them is no matter of one line's form. A
// program that looks whether it was started itself compares $0 with its own file.
var rubyReaches = []reach{
	{ruleDetects, lazyregexp.New(`^[^#]*\b(?:Mini[tT]est|RSpec|Test::Unit)\b|^\s*(?:require|load)\b[ (]+["'](?:minitest|rspec|test/unit|test-unit)`), nil, namesTests},
	{ruleDetects, lazyregexp.New(`^[^#]*(?:LOADED_FEATURES|\$"|loaded_specs|const_get|const_defined|\bcaller(?:_locations)?\b).*["'/:](?i:mini_?test|rspec|test[_/-]?unit)`), nil, "looks for the test library among what is loaded"},
	{ruleDetects, lazyregexp.New(`^[^#]*\$(?:PROGRAM_NAME|0)\b.*` + rubyRunner + `|^[^#]*` + rubyRunner + `.*\$(?:PROGRAM_NAME|0)\b`), nil, "looks at the name of the program for a test's"},
	{ruleForges, lazyregexp.New(`\bdef\s+(?:==|!=|===|eql\?|equal\?|<=>)|\bdefine_method[ (]+:(?:==|!=|===|eql\?|equal\?)`), lazyregexp.New(`^\s*class\s+(?:::)?` + rubyCore + `\s*(?:#.*)?$|\bmodule\s+(?:Kernel|Comparable)\b|\brefine[ (]+` + rubyCore +
		`|\b` + rubyCore + `\.(?:class_eval|class_exec|prepend|define_method)\b`), "changes how values of the language compare"},
	{ruleForges, lazyregexp.New(`\b(?:def|alias|alias_method[ (]+:|define_method[ (]+:?)\s*:?(?:assert|refute)(?:_(?:equal|nil|raises?|same|match|includes?|operator|empty|in_delta|predicate))?\b`), nil, "puts something in the place of the test library"},
	{ruleDetects, lazyregexp.New(`\b(?:(?:Object|Module|Kernel)\.constants|ObjectSpace\.each_object)\b`), lazyregexp.New(`\b(?:name|to_s)\b.*(?:start_with\?|end_with\?|include\?|=~|match)`), "looks for the test library among what is loaded"},
	{ruleDetects, lazyregexp.New(`(?:\$LOADED_FEATURES|\$")\s*\.(?:grep|any\?|none\?|include\?|find|count|size|select)`), nil, "looks for the test library among what is loaded"},
	{ruleDetects, lazyregexp.New(`\b(?:caller(?:_locations)?|Thread\.current\.backtrace(?:_locations)?)(?:\([^)]*\))?\s*&?\.(?:size|length|count|any\?|grep|none\?)|\bbacktrace(?:_locations)?(?:\([^)]*\))?&?\.(?:size|length|count)\s*(?:[<>]|[=!]=)|\bcaller(?:_locations)?\b.*(?:include\?|end_with\?)`), nil, byItsRun},
	{ruleForges, lazyregexp.New(`\bThread\.exit\b|\bThread\.current\.(?:kill|exit|terminate)\b|\bThread\.kill[ (]+Thread\.current\b`), nil, endsCaller},
	{ruleDetects, lazyregexp.New(`=\s*(?:File\.basename[ (]+)?\$(?:PROGRAM_NAME|0)\b`), lazyregexp.New(`(?:include\?|end_with\?|start_with\?|match\??|=~|===?|!=|\bwhen\b).*` + rubyRunner), "looks at the name of the program for a test's"},
}

// rubyCore are classes of the language whose values tests compare.
const rubyCore = `(?:BasicObject|Object|Integer|Float|Numeric|String|Symbol|Array|Hash|NilClass|TrueClass|FalseClass|Comparable)\b`

var (
	endsProcess = "ends or redirects the process behind the runner's back"

	phpReaches = []reach{
		{ruleDetects, lazyregexp.New(`(?:^|[^/])(?:\bPHPUnit\b|\b(?:__)?PHPUNIT_\w+|["'\\]Pest\\|["']phpunit\b)`), nil, namesTests},
		{ruleDetects, lazyregexp.New(`\b(?:class_exists|interface_exists|function_exists|defined)\s*\(.*(?:["']\s*\.\s*["']|\b(?:strrev|base64_decode|chr|implode|str_rot13)\()`), nil, "looks for a class whose name it hides"},
		{ruleDetects, lazyregexp.New(`\bcount\(\s*\\?debug_backtrace\(|\bdebug_backtrace\([^)]*\)\)?\s*(?:\[|[<>=!])|(?:\bdebug_backtrace|->getTrace\w*)\(.*\b(?:str_contains|str?i?pos|in_array|preg_match|array_filter|array_column)\b|` +
			`\b(?:str_contains|stri?pos|in_array|preg_match|array_filter|array_column|count)\(.*(?:\bdebug_backtrace|->getTrace\w*)\(`), nil, byItsRun},
	}
	jvmReaches = []reach{
		{ruleDetects, lazyregexp.New(`\b(?:org\.junit|junit\.framework|org\.testng|org\.spockframework|io\.kotest|kotlin\.test|org\.scalatest|org\.apache\.maven\.surefire)\b|"(?:[^"]*[./])?(?:junit|testng|surefire)\b`), nil, namesTests},
		{ruleForges, lazyregexp.New(`\bgetRuntime\(\)\s*\.halt\(|\bRuntime\b.*\.halt\(`), nil, endsProcess},
		{ruleForges, lazyregexp.New(`\bsetDefaultUncaughtExceptionHandler\(`), lazyregexp.New(`\.halt\(|\bexit\(\s*0\s*\)`), endsProcess},
		{ruleForges, lazyregexp.New(`\bSystem\.exit\(\s*0\s*\)`), lazyregexp.New(`^\s*static\s*\{`), endsProcess},
		{ruleDetects, lazyregexp.New(`(?:\bgetStackTrace\(\)|\bStackWalker\b|\bgetAllStackTraces\(\)).*(?:\.length\b\s*[<>=!]|\.(?:size|count)\(\)\s*[<>=!]|\.(?:equals|contains|startsWith|endsWith|matches|anyMatch)\()`), nil, byItsRun},
	}
	shReaches = []reach{
		{ruleDetects, lazyregexp.New(`^[^#]*/proc/(?:\$\{?PPID|\$\$|self)\S*/?(?:cmdline|comm|exe|environ|stat)|^[^#]*\bps\b[^|;]*\$\{?PPID`), nil, "looks at the process that started it"},
		{ruleDetects, lazyregexp.New(`^[^#]*(?:\[|\btest)\s+-[defrsx]\s+["']?(?:\./)?(?:tests?|spec)/`), nil, "looks for the tests"},
	}
)

// rubyRunner is a program that runs tests, or one of them, in a text or an expression.
const rubyRunner = `["'/](?:[^"' ]*/)?(?:rake|r?spec|minitest|_?test|\w*_(?:test|spec)|test_)\b`

// moreReaches are what is looked for in languages whose code is seen by its words alone.
var moreReaches = map[string][]reach{
	".rb":  rubyReaches,
	".php": phpReaches,
	".ex":  {{ruleDetects, lazyregexp.New(`^[^#]*\bExUnit\b|^[^#]*:ex_unit\b`), nil, namesTests}},
	".jvm": jvmReaches,
	".sh":  shReaches,
	".net": {{ruleDetects, lazyregexp.New(`\b(?i:xunit|nunit)\b|\bMicrosoft\.VisualStudio\.Test(?:Tools|Platform)\b|"(?i:testhost)\b`), nil, namesTests}},
}

// families are the endings of files by those under which they are looked at.
var families = map[string]string{
	".bash": ".sh", ".exs": ".ex", ".java": ".jvm", ".kt": ".jvm", ".scala": ".jvm", ".groovy": ".jvm", ".cs": ".net", ".fs": ".net", ".vb": ".net",
}

// testSet tells directories of tests and of what only tests use, as builds of Java and .NET and
// Cucumber name them; and settings of tools in PHP, which say how to rewrite tests.
var testSet = map[string]*lazyregexp.Regexp{
	".jvm": lazyregexp.New(`(?:(?:^|[/._-])[tT]|[a-z0-9]T)est(?:s|ing)?(?:[A-Z._-][\w.-]*)?/`),
	".net": lazyregexp.New(`(?:(?:^|[/._-])[tT]|[a-z0-9]T)est(?:s|ing)?(?:[A-Z._-][\w.-]*)?/`),
	".rb":  lazyregexp.New(`(?:^|/)features/`),
	".php": lazyregexp.New(`(?:^|/)(?:\.[^/]*|rector|ecs|phpstan[^/]*|scoper\.inc)\.php$`),
}

// moreReachesFor returns what is looked for in a file of one of these languages.
func moreReachesFor(name string) []reach {
	family := strings.ToLower(path.Ext(name))
	if f := families[family]; f != "" {
		family = f
	}
	if set := testSet[family]; set != nil && set.MatchString(name) {
		return nil
	}
	return moreReaches[family]
}
