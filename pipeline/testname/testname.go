// Package testname takes the names of tests apart as the test runners of several
// languages write them: "pkg.TestX/sub", "file::Class::test_x[1-2]", "suite > name"; and
// tells the files that hold tests.
package testname

import (
	"strings"

	"forge/pipeline/lazyregexp"
)

// ID is a test's name taken apart: "pkg" "TestX" "/sub", or "file::class" "test_x" "[1-2]".
type ID struct{ Container, Base, Param string }

var (
	goName = lazyregexp.New(`^(.*?)\.((?:Test|Example|Fuzz|Benchmark)[^/.]*)(/.*)?$`)
	pyBase = lazyregexp.New(`^([^\[(]*[^\[( ])(\[.*\]| \(.*\))$`)
)

var (
	testPath = lazyregexp.New(`(?i)(?:^|/)(?:tests?|specs?|__tests__)/.*\.\w+$|(?:_test|_spec|\.test|\.spec|-test|-spec)\.\w+$|(?:^|/)(?:test_[^/]*|tests)\.py$|(?:Tests?|Spec|IT)\.(?:java|kt|cs|scala|swift|groovy)$`)
	dataPath = lazyregexp.New(`(?i)\.(?:json|ya?ml|txt|md|xml|csv|golden|snap|toml|txtar|svg|png|html?)$|(?:^|/)testdata/`)
)

// IsFile tells test code by its path; data of tests is not meant.
func IsFile(name string) bool { return testPath.MatchString(name) && !IsData(name) }

// IsData tells files that hold no code, wherever they are, and all that tests read.
func IsData(name string) bool { return dataPath.MatchString(name) }

// Parse takes a name apart. What has no container is all base.
func Parse(name string) ID {
	if m := goName.FindStringSubmatch(name); m != nil && !strings.Contains(name, "::") && !strings.Contains(name, " > ") {
		return ID{m[1], m[2], m[3]}
	}
	id := ID{Base: name}
	if m := pyBase.FindStringSubmatch(name); m != nil {
		id.Base, id.Param = m[1], m[2]
	}
	for _, sep := range []string{" > ", "::", "."} {
		if i := strings.LastIndex(id.Base, sep); i >= 0 && (sep != "." || !strings.Contains(id.Base, " ")) {
			id.Container, id.Base = id.Base[:i], id.Base[i+len(sep):]
			break
		}
	}
	return id
}

// Same reports whether a name that a person or a model wrote stands for a test: its
// whole name, the end of it, or the table or file that it belongs to.
func Same(test, name string) bool {
	if name == "" {
		return false
	}
	test = strings.TrimSuffix(test, " [build]")
	for _, full := range []string{test, strings.TrimSuffix(test, Parse(test).Param)} {
		if full == name || strings.HasSuffix(full, name) && isBoundary(full[len(full)-len(name)-1]) {
			return true
		}
	}
	return strings.HasPrefix(test, name) && isBoundary(test[len(name)])
}

func isBoundary(c byte) bool { return strings.IndexByte("./:>([ ", c) >= 0 }
