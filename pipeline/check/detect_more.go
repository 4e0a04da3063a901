package check

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
)

var cargoLacks = []lack{{
	lazyregexp.New(`(?m)^error: no matching package named .*|failed to (?:get|download|load source for dependency|fetch) .*|attempting to make an HTTP request, but --offline was specified`),
	"crates are not downloaded " + noNetwork + ": vendor them (cargo vendor)",
}}

var cargoWorkspace = lazyregexp.New(`(?m)^\s*\[workspace\]`)

func (c *checker) cargoSuites(ctx context.Context, v *survey) ([]*suite, error) {
	var out []*suite
	for _, dir := range topmost(v.with("Cargo.toml")) {
		data, err := c.open(ctx, dir, "Cargo.toml")
		if err != nil {
			return nil, err
		}
		s := newSuite("cargo test", dir, formatCargo, "cargo", "test", "--no-fail-fast")
		if cargoWorkspace.Match(data) {
			s = newSuite("cargo test", dir, formatCargo, "cargo", "test", "--workspace", "--no-fail-fast")
		}
		s.alone, s.lacks = true, cargoLacks
		s.env = []string{"CARGO_TERM_COLOR=never", "RUST_BACKTRACE=0", "CARGO_NET_OFFLINE=true"}
		out = append(out, s.require(v, "cargo"))
	}
	return out, nil
}

var (
	mavenLacks = []lack{{
		lazyregexp.New(`Cannot access \S+ \([^)]*\) in offline mode and the artifact \S+ has not been downloaded|Could not (?:resolve|transfer|find) artifact \S+|Non-resolvable parent POM|PluginResolutionException|\d+ required artifacts? (?:is|are) missing`),
		"Maven's plugins or dependencies are not in its local repository " + noNetwork + fetchIt,
	}}
	gradleLacks = []lack{
		{lazyregexp.New(`UnknownHostException: (?:services|downloads)\.gradle\.org|Downloading https://services\.gradle\.org\S*`), "needs `gradle` on the server: the wrapper wants to download it " + noNetwork},
		{lazyregexp.New(`No cached version of \S+ available for offline mode|Could not (?:resolve|download|GET) \S+|Plugin \[id: [^\]]*\] was not found`), "Gradle's plugins or dependencies are not in its cache " + noNetwork + fetchIt},
	}
	dotnetLacks = []lack{{
		lazyregexp.New(`error NU1(?:301|101|102)\b[^\n]*`), "NuGet packages are not on the server " + noNetwork + ": vendor them",
	}}
)

// jvmSuites finds Maven's and Gradle's outermost builds: each builds its modules.
func (c *checker) jvmSuites(_ context.Context, v *survey) ([]*suite, error) {
	var out []*suite
	maven := topmost(v.with("pom.xml"))
	for _, dir := range maven {
		s := newSuite("mvn test", dir, formatReports, "mvn", "-B", "-o", "-fae", "test")
		s.lacks = mavenLacks
		out = append(out, s.require(v, "mvn"))
	}
	gradle := []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
	for _, dir := range topmost(v.with(gradle...)) {
		if slices.Contains(maven, dir) {
			continue // the same tests, built by either
		}
		tool := "gradle"
		if !v.tools[tool] && v.has(dir, "gradlew") {
			tool = "./gradlew"
		}
		s := newSuite(tool+" test", dir, formatReports, tool, "--offline", "--continue", "--console=plain", "cleanTest", "test") // what was built before is not up to date
		s.lacks = gradleLacks
		if tool == "gradle" {
			s.require(v, tool)
		}
		out = append(out, s)
	}
	return out, nil
}

func (c *checker) dotnetSuites(_ context.Context, v *survey) ([]*suite, error) {
	var dirs []string
	for dir, names := range v.dirs {
		if slices.ContainsFunc(names, func(n string) bool {
			return slices.Contains([]string{".sln", ".slnx", ".csproj", ".fsproj", ".vbproj"}, path.Ext(n))
		}) {
			dirs = append(dirs, dir)
		}
	}
	var out []*suite
	for _, dir := range topmost(dirs) {
		s := newSuite("dotnet test", dir, formatReports, "dotnet", "test", "--nologo", "--logger", "trx")
		s.env = []string{"DOTNET_CLI_TELEMETRY_OPTOUT=1", "DOTNET_NOLOGO=1", "DOTNET_CLI_UI_LANGUAGE=en"}
		s.lacks = dotnetLacks
		out = append(out, s.require(v, "dotnet"))
	}
	return out, nil
}

var rubyLacks = []lack{{
	lazyregexp.New(`Bundler::GemNotFound|Could not find (?:gem )?\S+ in (?:locally installed gems|any of the sources)[^\n]*|bundler: command not found: \S+|cannot load such file -- (?:rspec|minitest|bundler|rake)\S*|Could not find gem [^\n]*|Could not find 'bundler'[^\n]*`),
	"gems are not installed " + noNetwork,
}}

// rubySuites finds specs for RSpec, and tests for Minitest or test-unit. Each is
// started as Rake or Rails would where that is known, else directly.
func (c *checker) rubySuites(ctx context.Context, v *survey) ([]*suite, error) {
	var out []*suite
	for _, dir := range topmost(rubyRoots(v)) {
		bundled := v.has(dir, "Gemfile")
		start := func(name string, f format, args ...string) *suite {
			if bundled {
				args = append([]string{"bundle", "exec"}, args...)
			}
			s := newSuite(name, dir, f, args...)
			s.lacks = rubyLacks
			s.env = []string{"NO_COLOR=1"}
			if bundled {
				return s.require(v, "ruby", "bundle")
			}
			return s.require(v, "ruby")
		}
		if v.within(dir, rubySpecs) {
			s := start("rspec", formatRSpec, "rspec")
			s.report = []string{"--no-color", "--format", "progress", "--format", "json", "--out", "{}"}
			if !bundled {
				s.require(v, "rspec")
			}
			out = append(out, s)
		}
		if !v.within(dir, rubyTests) {
			continue
		}
		task, err := c.rakeTest(ctx, v, dir)
		if err != nil {
			return nil, err
		}
		if task {
			s := start("rake test", formatMinitest, "rake", "test", "TESTOPTS=-v")
			if !bundled {
				s.require(v, "rake")
			}
			out = append(out, s)
		} else {
			out = append(out, start("ruby test", formatMinitest, "ruby", "-Ilib", "-Itest", "-e",
				`Dir["./test/**/{*_test,test_*}.rb"].sort.each { |f| require f }`, "--", "-v"))
		}
	}
	return out, nil
}

// rubyRoots are the directories that Ruby projects start in.
func rubyRoots(v *survey) []string {
	var out []string
	for dir, names := range v.dirs {
		base := path.Base(dir)
		switch {
		case v.has(dir, "Gemfile", ".rspec"), v.has(dir, "Rakefile"), slices.ContainsFunc(names, func(n string) bool { return path.Ext(n) == ".gemspec" }):
			out = append(out, dir)
		case v.has(dir, rubySpecs, rubyTests) && (base == "spec" || base == "test"):
			out = append(out, path.Dir(dir))
		}
	}
	return out
}

var rakeTask = lazyregexp.New(`Rake::TestTask|Minitest::TestTask|Rails\.application\.load_tasks|\btask\s+:?"?test\b`)

func (c *checker) rakeTest(ctx context.Context, v *survey, dir string) (bool, error) {
	if !v.has(dir, "Rakefile") {
		return false, nil
	}
	data, err := c.open(ctx, dir, "Rakefile")
	return rakeTask.Match(data), err
}

var phpLacks = []lack{{
	lazyregexp.New(`vendor/autoload\.php[^\n]*|Class "?PHPUnit\\\S* not found`), "vendor is not there: dependencies are not installed (composer install) " + noNetwork,
}}

func (c *checker) phpSuites(ctx context.Context, v *survey) ([]*suite, error) {
	config := []string{"phpunit.xml", "phpunit.xml.dist"}
	var out []*suite
	for _, dir := range topmost(v.with(append(config, "composer.json")...)) {
		if !v.has(dir, config...) && !v.within(dir, phpTests) {
			continue
		}
		installed, err := c.ws.List(ctx, path.Join(dir, "vendor/bin"))
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		runner := "phpunit"
		for _, name := range []string{"phpunit", "pest"} {
			if err == nil && slices.Contains(installed, name) {
				runner = "vendor/bin/" + name
			}
		}
		args := []string{runner}
		if runner == "phpunit" && !v.has(dir, config...) {
			args = append(args, "tests")
		}
		s := newSuite(path.Base(runner), dir, formatJUnit, args...)
		s.report = []string{"--log-junit", "{}"}
		s.lacks = phpLacks
		s.require(v, "php")
		if runner == "phpunit" {
			s.require(v, "phpunit")
		}
		out = append(out, s)
	}
	return out, nil
}

var (
	makeTarget = lazyregexp.New(`(?m)^(test|check)\s*:(?:[^=]|$)`)
	justTarget = lazyregexp.New(`(?m)^@?(test|check)(?:\s+[^:=]*)?:(?:[^=]|$)`)
)

// ctestSuite is that of a CMake project that has tests. It is built outside of the work tree.
func (c *checker) ctestSuite(ctx context.Context, v *survey) ([]*suite, error) {
	if !v.has(".", "CMakeLists.txt") {
		return nil, nil
	}
	text, err := c.open(ctx, ".", "CMakeLists.txt")
	if err != nil || !bytes.Contains(text, []byte("enable_testing(")) && !bytes.Contains(text, []byte("include(CTest)")) {
		return nil, err
	}
	s := newSuite("ctest", ".", formatJUnit, "ctest")
	s.args = []string{"sh", "-c", `at=$(mktemp -d) && cmake -S . -B "$at" >&2 && cmake --build "$at" --parallel 2 >&2 &&
ctest --test-dir "$at" --output-on-failure --output-junit "$PWD/$1"`, "sh"}
	s.report = []string{"{}"}
	return []*suite{s.require(v, "cmake", "ctest")}, nil
}

// makeSuite is the last resort: a target of that name in the root.
func (c *checker) makeSuite(ctx context.Context, v *survey) ([]*suite, error) {
	for _, at := range []struct {
		tool, name string
		target     *lazyregexp.Regexp
	}{
		{"make", "GNUmakefile", makeTarget}, {"make", "makefile", makeTarget}, {"make", "Makefile", makeTarget},
		{"just", "justfile", justTarget}, {"just", "Justfile", justTarget}, {"just", ".justfile", justTarget},
	} {
		if !v.has(".", at.name) {
			continue
		}
		data, err := c.open(ctx, ".", at.name)
		if err != nil {
			return nil, err
		}
		if at.tool == "make" {
			data = []byte(withIncludes(string(data), func(name string) []byte {
				more, err := c.ws.Read(ctx, path.Clean(name))
				if err != nil {
					return nil // make says what is missing
				}
				return more
			}))
		}
		if m := at.target.FindSubmatch(data); m != nil {
			target := strings.TrimSpace(string(m[1]))
			return []*suite{newSuite(at.tool+" "+target, ".", formatAny, at.tool, target).require(v, at.tool)}, nil
		}
	}
	return nil, nil
}
