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
	{ruleDetects, lazyregexp.New(`=\s*(?:File\.basename[ (]+)?\$(?:PROGRAM_NAME|0)\b`), lazyregexp.New(`(?:include\?|end_with\?|start_with\?|match\??|=~|===?|!=|\bwhen\b).*` + rubyRunner), "looks at the name of the program for a test's"},
}

// rubyRunner is a program that runs tests, or one of them, in a text or an expression.
const rubyRunner = `["'/](?:[^"' ]*/)?(?:rake|r?spec|minitest|_?test|\w*_(?:test|spec)|test_)\b`

// moreReaches are what is looked for in languages whose code is seen by its words alone.
var moreReaches = map[string][]reach{
	".rb":  rubyReaches,
	".php": {{ruleDetects, lazyregexp.New(`(?:^|[^/])(?:\bPHPUnit\b|\b(?:__)?PHPUNIT_\w+|["'\\]Pest\\|["']phpunit\b)`), nil, namesTests}},
	".ex":  {{ruleDetects, lazyregexp.New(`^[^#]*\bExUnit\b|^[^#]*:ex_unit\b`), nil, namesTests}},
	".jvm": {{ruleDetects, lazyregexp.New(`\b(?:org\.junit|junit\.framework|org\.testng|org\.spockframework|io\.kotest|kotlin\.test|org\.scalatest|org\.apache\.maven\.surefire)\b|"(?:[^"]*[./])?(?:junit|testng|surefire)\b`), nil, namesTests}},
	".net": {{ruleDetects, lazyregexp.New(`\b(?i:xunit|nunit)\b|\bMicrosoft\.VisualStudio\.Test(?:Tools|Platform)\b|"(?i:testhost)\b`), nil, namesTests}},
}

// families are the endings of files by those under which they are looked at.
var families = map[string]string{
	".exs": ".ex", ".java": ".jvm", ".kt": ".jvm", ".scala": ".jvm", ".groovy": ".jvm", ".cs": ".net", ".fs": ".net", ".vb": ".net",
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
