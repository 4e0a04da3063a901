// Package module is how a plan splits a feature into modules that are built at the
// same time: what each owns, what they promise each other, in which order they can
// be built, and whether it pays. It is pure and stores nothing.
package module

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"forge/pipeline/lazyregexp"
)

// Module is a part of a feature that is built and validated by itself.
type Module struct {
	ID       string   `json:"id"` // a slug: "auth"
	Title    string   `json:"title"`
	Summary  string   `json:"summary"`
	Size     string   `json:"size"` // S, M or L: 1, 2 or 4 units of work
	Steps    []string `json:"steps"`
	Paths    []string `json:"paths"`           // globs of the files that it alone may change
	Needs    []string `json:"needs,omitempty"` // modules that must be merged before it can begin
	Criteria []string `json:"criteria,omitempty"`
}

// Promise is what one module can rely on another for.
type Promise struct {
	ID    string   `json:"id"`
	From  string   `json:"from"` // the module that keeps it
	To    []string `json:"to"`   // the modules that rely on it
	Text  string   `json:"text"`
	Probe string   `json:"probe"` // the test that shows it once both are there
}

// Split is a feature cut into modules.
type Split struct {
	Modules     []Module  `json:"modules"`
	Contract    []string  `json:"contract,omitempty"`    // files that all may read and no module may change: interfaces, types, the tests of promises
	Promises    []Promise `json:"promises,omitempty"`    //
	Integration []string  `json:"integration,omitempty"` // criteria that no module can meet alone
	Wiring      []string  `json:"wiring,omitempty"`      // what is left to do once the modules are merged, with the files it touches
	Dropped     []Module  `json:"dropped,omitempty"`     // modules that a revised plan does without
	Void        []Promise `json:"void,omitempty"`        // promises of which a side is left out with them: their tests count for nothing
}

// Integration is the name under which what belongs to no module is worked on.
const Integration = "integration"

// Limits are what a split is checked against.
type Limits struct {
	Max      int                    // modules
	Reserved func(word string) bool // words that no module may be called by: comments name a module before a command
	Criteria []string               // of the plan, by id
	Passing  []string               // names of tests that pass at the base
	Tree     []string               // paths of all files at the base

	Match   func(pattern, name string) bool // of globs: whether a path matches
	Overlap func(p, q string) bool          // whether a path can match both
	Same    func(test, probe string) bool   // whether two names are of one test
}

var slug = lazyregexp.New(`^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$`)

// Check returns what is wrong with a split, for the planner: one line each, with what
// would be right. There is nothing wrong with one that can be built.
func (s *Split) Check(l Limits) []string {
	var bad problems
	if n := len(s.Modules); n < 2 || n > l.Max {
		bad.add("there are %d modules; make 2 to %d of it, or none", n, l.Max)
	}
	ids := map[string]bool{}
	for i := range s.Modules {
		m := &s.Modules[i]
		switch {
		case !slug.MatchString(m.ID) || len(m.ID) > 24:
			bad.add("module id %q is not a short slug such as \"auth\" (small letters, digits, single dashes, at most 24)", m.ID)
		case m.ID == Integration || l.Reserved != nil && l.Reserved(m.ID):
			bad.add("module id %q means something else in comments; choose another", m.ID)
		case ids[m.ID]:
			bad.add("module id %q occurs twice", m.ID)
		}
		ids[m.ID] = true
		s.checkModule(m, &bad)
	}
	s.checkNeeds(ids, &bad)
	s.checkPaths(l, &bad)
	s.checkCriteria(l.Criteria, &bad)
	s.checkPromises(ids, l, &bad)
	return bad
}

type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

func (s *Split) checkModule(m *Module, bad *problems) {
	steps := strings.TrimSpace(strings.Join(m.Steps, ""))
	title, summary := strings.TrimSpace(m.Title), strings.TrimSpace(m.Summary)
	for field, missing := range map[string]bool{"a title": title == "", "a summary": summary == "", "steps": steps == "", "paths": len(m.Paths) == 0} {
		if missing {
			bad.add("module %s lacks %s", m.ID, field)
		}
	}
	slices.Sort(*bad) // a map has no order
	if units(m.Size) == 0 {
		bad.add("module %s has the size %q; it is S, M or L", m.ID, m.Size)
	}
}

// checkNeeds wants the modules that are needed to be there, and no circle.
func (s *Split) checkNeeds(ids map[string]bool, bad *problems) {
	for _, m := range s.Modules {
		for _, n := range m.Needs {
			if !ids[n] {
				bad.add("module %s needs %q, which is no module", m.ID, n)
			}
		}
	}
	if circle := s.circle(); len(circle) > 0 {
		bad.add("modules need each other in a circle: %s; cut it by a contract, or make one module of them", strings.Join(circle, ", "))
	}
}

// circle returns the modules that can never begin.
func (s *Split) circle() []string {
	done := map[string]bool{}
	for {
		ready := s.Ready(func(id string) bool { return done[id] }, func(id string) bool { return done[id] })
		if len(ready) == 0 {
			break
		}
		for _, id := range ready {
			done[id] = true
		}
	}
	var left []string
	for _, m := range s.Modules {
		if !done[m.ID] {
			left = append(left, m.ID)
		}
	}
	return left
}

// shared are files that everything hangs on, by their last element: only the
// integration changes them.
var shared = []string{
	"go.mod", "go.sum", "go.work", "go.work.sum", "package.json", "package-lock.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "yarn.lock", "pyproject.toml",
	"poetry.lock", "uv.lock", "Pipfile", "Pipfile.lock", "pdm.lock", "bun.lock", "bun.lockb", "deno.lock", "mix.lock",
	"requirements*.txt", "setup.py", "setup.cfg", "Cargo.toml", "Cargo.lock", "pom.xml", "build.gradle*", "settings.gradle*",
	"Gemfile", "Gemfile.lock", "composer.json", "composer.lock", "Makefile", "Dockerfile", "conftest.py",
	"pytest.ini", ".pytest.ini", "tox.ini", "noxfile.py", ".coveragerc", "sitecustomize.py", "usercustomize.py", ".npmrc", ".env",
	"jest.config.*", "vitest.config.*", "vite.config.*",
	"babel.config.*", ".babelrc*", ".mocharc*", ".c8rc*", ".nycrc*", "karma.conf.*", "playwright.config.*", "cypress.config.*",
	"tsconfig*.json", "phpunit.xml*", ".rspec",
	".gitlab-ci.yml", ".travis.yml", "Jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml", "appveyor.yml", ".drone.yml", ".cirrus.yml",
}

// Foreign are globs of what a module must not touch besides the contract: what other
// modules own, and what only the integration changes.
func (s *Split) Foreign(id string) []string {
	var out []string
	for _, m := range s.Modules {
		if m.ID != id {
			out = append(out, m.Paths...)
		}
	}
	for _, name := range shared {
		out = append(out, "**/"+name)
	}
	return out
}

// Owners says which of the other modules owns each of their globs.
func (s *Split) Owners(id string) map[string]string {
	out := map[string]string{}
	for _, m := range s.Modules {
		for _, glob := range m.Paths {
			if m.ID != id {
				out[glob] = m.ID
			}
		}
	}
	return out
}

// Of returns the promises that a module keeps or relies on.
func (s *Split) Of(id string) []Promise {
	var out []Promise
	for _, p := range s.Promises {
		if p.From == id || slices.Contains(p.To, id) {
			out = append(out, p)
		}
	}
	return out
}

// Probes are the tests of all promises.
func (s *Split) Probes() []string {
	var out []string
	for _, p := range s.Promises {
		out = append(out, p.Probe)
	}
	return out
}

// Share is the part of the budget that a module is given, by its size. It is planned,
// reviewed and tested by itself, however small it is, so that it counts for half of a
// middling one at least.
func (s *Split) Share(id string) float64 {
	size := func(m *Module) float64 { return float64(max(1, units(m.Size))) }
	sum, all, own := 0.0, 0.0, 0.0
	for i := range s.Modules {
		sum += size(&s.Modules[i])
	}
	for i := range s.Modules {
		m := &s.Modules[i]
		n := max(size(m), sum/float64(2*len(s.Modules)))
		if all += n; m.ID == id {
			own = n
		}
	}
	return own / max(1, all)
}

func isShared(name string) bool {
	if strings.HasPrefix(name, ".github/") || strings.HasPrefix(name, ".circleci/") {
		return true
	}
	return isSharedName(path.Base(name))
}

func isSharedName(base string) bool {
	base = strings.ToLower(base) // as the tools compare names
	return slices.ContainsFunc(shared, func(p string) bool { ok, _ := path.Match(strings.ToLower(p), base); return ok })
}

// Literal has names of the repository's own files and directories in the modules' paths
// stand for themselves: in "app/[id]/page.tsx" the brackets are no class of letters.
func (s *Split) Literal(tree []string) {
	for i := range s.Modules {
		for k, p := range s.Modules[i].Paths {
			elements := strings.Split(p, "/")
			if !strings.Contains(p, "[") {
				continue
			}
			for n, e := range elements {
				name := strings.Join(strings.Split(p, "/")[:n+1], "/")
				if slices.Contains(tree, name) || isDirectory(name, tree) {
					elements[n] = strings.ReplaceAll(e, "[", `\[`)
				}
			}
			s.Modules[i].Paths[k] = strings.Join(elements, "/")
		}
	}
}

// reaches reports whether two modules' paths reach for the same file, as the tools compare
// them: without regard to case, and a name stands for what is below it, too.
func reaches(p, q string, overlap func(a, b string) bool) bool {
	p, q = strings.ToLower(p), strings.ToLower(q)
	return overlap(p, q) || overlap(p+"/**", q) || overlap(p, q+"/**")
}

// checkPaths wants each file to belong to one module at most.
func (s *Split) checkPaths(l Limits, bad *problems) {
	for i := range s.Modules {
		m := &s.Modules[i]
		for _, p := range m.Paths {
			if !fromTop(p) || !validPattern(p) {
				bad.add("module %s: %q is no path or glob from the top of the repository, such as \"auth/**\"", m.ID, p)
			} else if why := misread(p, l.Tree); why != "" {
				bad.add("module %s: %s", m.ID, why)
			} else if slices.Contains(s.Contract, p) {
				bad.add("module %s owns %s, which is the contract's, so that no module may change it: leave it out of one of them", m.ID, p)
			} else if dir := sharedDirectory(p); dir != "" {
				bad.add("module %s: %s lies in a directory %s, whose name is that of a file on which everything hangs, "+
					"so that only the integration changes what is in it", m.ID, p, dir)
			} else if !strings.ContainsAny(p, "*?[") && isShared(p) {
				bad.add("module %s owns %s, on which everything hangs: only the integration changes it; leave it out of the module's paths", m.ID, p)
			}
		}
		for _, o := range s.Modules[i+1:] {
			for _, p := range m.Paths {
				for _, q := range o.Paths {
					if l.Overlap(p, q) {
						bad.add("modules %s and %s both own %s and %s: give each path to one of them, or to the contract or the integration", m.ID, o.ID, p, q)
					} else if reaches(p, q, l.Overlap) {
						bad.add("%s of module %s and %s of module %s reach for the same files, since upper and lower case count as the same, and a name stands for "+
							"what is below it, too: name the files, or give both to one module", p, m.ID, q, o.ID)
					}
				}
			}
		}
	}
	for _, name := range l.Tree {
		deep := strings.Contains(name, "/") && !strings.HasPrefix(name, ".github/") // of a package: its module may own what is around it
		if !isShared(name) || deep || slices.Contains(s.Contract, name) {
			continue
		}
		if id := s.Owner(name, l.Match); id != "" {
			bad.add("module %s owns %s, on which everything hangs: only the integration changes it; narrow the module's paths", id, name)
		}
	}
	for _, name := range s.Contract {
		if !fromTop(name) || strings.ContainsAny(name, `*?[\`) {
			bad.add("contract: %q is no path of a file from the top of the repository", name)
		} else if isDirectory(name, l.Tree) {
			bad.add("contract: %s is a directory: name its files", name)
		} else if strings.HasPrefix(name, ".github/") || strings.HasPrefix(name, ".git/") {
			bad.add("contract: %s is for people alone to change; name another file", name)
		}
	}
}

// fromTop reports whether a path, or a glob, begins at the top of the repository and stays in it.
func fromTop(p string) bool {
	return p == path.Clean(p) && p != "." && !strings.HasPrefix(p, "/") && !strings.HasPrefix(p, "..") && !strings.ContainsFunc(p, unicode.IsControl)
}

// sharedDirectory is the directory above a path that has the name of a file which only the
// integration changes, "" for none.
func sharedDirectory(p string) string {
	elements := strings.Split(p, "/")
	for _, e := range elements[:len(elements)-1] {
		if !strings.ContainsAny(e, "*?[") && isSharedName(e) {
			return e
		}
	}
	return ""
}

func isDirectory(name string, tree []string) bool {
	return slices.ContainsFunc(tree, func(file string) bool { return strings.HasPrefix(file, name+"/") })
}

// misread says what a glob means that looks as if it meant something else, "" for one that
// does not: a module would own other files than its planner thinks.
func misread(p string, tree []string) string {
	if isDirectory(p, tree) {
		return fmt.Sprintf("%s is a directory of the repository, of which this owns nothing: write %[1]s/**", p)
	}
	elements := strings.Split(p, "/")
	for i, e := range elements {
		switch {
		case e != "**" && strings.Contains(e, "**"):
			elements[i] = manyStars.ReplaceAllString(e, "*")
			return fmt.Sprintf("%s means %s, since only ** alone between slashes stands for any number of directories: write that, or **/ before the name",
				p, strings.Join(elements, "/"))
		case strings.Contains(e, "[!"):
			return fmt.Sprintf("%s: a class that leaves out is written [^…] here, and this one takes the ! for itself", p)
		}
	}
	return ""
}

var manyStars = lazyregexp.New(`\*+`)

// validPattern reports whether a glob means what it seems to mean: braces, a leading "!"
// and blanks around it stand for themselves here, and own nothing that anybody writes.
func validPattern(p string) bool {
	for e := range strings.SplitSeq(p, "/") {
		if _, err := path.Match(e, ""); err != nil || e == ".git" {
			return false
		}
	}
	return !strings.ContainsAny(strings.ReplaceAll(p, `\[`, ""), `{}\`) && !strings.HasPrefix(p, "!") && strings.TrimSpace(p) == p
}

// checkCriteria wants each criterion to have one owner.
func (s *Split) checkCriteria(criteria []string, bad *problems) {
	owner := map[string]string{}
	claim := func(id, by string) {
		switch {
		case !slices.Contains(criteria, id):
			bad.add("%s names the criterion %q, which the plan does not have", by, id)
		case owner[id] != "":
			bad.add("criterion %s belongs to %s and to %s; give it to one, or to the integration", id, owner[id], by)
		}
		owner[id] = by
	}
	for _, m := range s.Modules {
		for _, id := range m.Criteria {
			claim(id, m.ID)
		}
	}
	for _, id := range s.Integration {
		claim(id, Integration)
	}
	for _, id := range criteria {
		if owner[id] == "" {
			bad.add("criterion %s belongs to no module; name it in one, or in the integration", id)
		}
	}
}

// checkPromises wants what a module needs of another to be written down, with a new test.
func (s *Split) checkPromises(ids map[string]bool, l Limits, bad *problems) {
	kept := map[[2]string]bool{}
	seen := map[string]bool{}
	for _, p := range s.Promises {
		if p.ID == "" || seen[p.ID] {
			bad.add("promise %q: give each an id of its own", p.ID)
		}
		seen[p.ID] = true
		if !ids[p.From] || len(p.To) == 0 || slices.ContainsFunc(p.To, func(to string) bool { return !ids[to] || to == p.From }) {
			bad.add("promise %s goes from %q to %q; both sides must be modules", p.ID, p.From, strings.Join(p.To, ", "))
		}
		if strings.TrimSpace(p.Text) == "" || strings.TrimSpace(p.Probe) == "" {
			bad.add("promise %s lacks its text, or the probe: the name of the test that shows it at integration", p.ID)
		}
		if i := slices.IndexFunc(l.Passing, func(test string) bool { return l.Same(test, p.Probe) }); i >= 0 {
			bad.add("promise %s: the test %s stands in the repository already and passes without the modules (%s), so that it shows nothing; "+
				"name a new one, which the contract brings", p.ID, p.Probe, l.Passing[i])
		}
		for _, to := range p.To {
			kept[[2]string{p.From, to}] = true
		}
	}
	for _, m := range s.Modules {
		for _, n := range m.Needs {
			if ids[n] && n != m.ID && !kept[[2]string{n, m.ID}] {
				bad.add("module %s needs %s, but no promise says what for; add one from %s to %s", m.ID, n, n, m.ID)
			}
		}
	}
	if len(s.Promises) > 0 && len(s.Contract) == 0 {
		bad.add("there are promises but no contract: name the files that hold their interfaces and tests")
	}
}

// Module returns a module by its id, nil when there is none, or no split: a feature may be
// planned in one piece first.
func (s *Split) Module(id string) *Module {
	if s == nil {
		return nil
	}
	for i := range s.Modules {
		if s.Modules[i].ID == id {
			return &s.Modules[i]
		}
	}
	return nil
}

// Owner returns the module that a file belongs to: the one with the longest pattern,
// should there be several; match is that of globs. It is empty for the contract, and for what only the
// integration may change.
func (s *Split) Owner(name string, match func(pattern, name string) bool) string {
	if slices.Contains(s.Contract, name) {
		return ""
	}
	best, owner := -1, ""
	for _, m := range s.Modules {
		for _, p := range m.Paths {
			if match(p, name) && len(p) > best {
				best, owner = len(p), m.ID
			}
		}
	}
	return owner
}

// Ready returns the modules that can begin, in the plan's order: those that have not,
// and all whose needs are merged.
func (s *Split) Ready(begun, merged func(id string) bool) []string {
	var out []string
	for _, m := range s.Modules {
		if !begun(m.ID) && !slices.ContainsFunc(m.Needs, func(n string) bool { return !merged(n) }) {
			out = append(out, m.ID)
		}
	}
	return out
}

// Dependents returns the modules that need one, directly or through others, in the
// plan's order.
func (s *Split) Dependents(id string) []string {
	hit := map[string]bool{id: true}
	for range s.Modules { // as many rounds as there are modules reach the farthest
		for _, m := range s.Modules {
			hit[m.ID] = hit[m.ID] || slices.ContainsFunc(m.Needs, func(n string) bool { return hit[n] })
		}
	}
	var out []string
	for _, m := range s.Modules {
		if hit[m.ID] && m.ID != id {
			out = append(out, m.ID)
		}
	}
	return out
}

// Wave is how many modules lie before one on its longest way, and one: modules of a
// wave do not depend on each other. It is for people; nothing waits for a wave.
func (s *Split) Wave(id string) int {
	waves := map[string]int{}
	all := slices.Concat(s.Modules, s.Dropped)
	for range all {
		for _, m := range all {
			w := 1
			for _, n := range m.Needs {
				w = max(w, waves[n]+1)
			}
			waves[m.ID] = min(w, len(all))
		}
	}
	return waves[id]
}

// units of work that a size stands for; 0 is no size.
func units(size string) int { return map[string]int{"S": 1, "M": 2, "L": 4}[size] }

// Estimate is what a split brings, in units of work: a module of size S is one.
type Estimate struct {
	Serial int     // all modules, one after the other
	Build  int     // with so many at once as may be, in the order in which they become ready
	Whole  int     // with the integration, which is one more
	Gain   float64 // the share of time that it saves: 1 − Whole/Serial; negative when it takes longer
}

// Estimate plays the modules through, with at most parallel at once.
func (s *Split) Estimate(parallel int) Estimate {
	lasts := func(m *Module) float64 { return float64(max(1, units(m.Size))) }
	e := Estimate{Build: int(s.play(parallel, lasts))}
	for i := range s.Modules {
		e.Serial += int(lasts(&s.Modules[i]))
	}
	e.Whole = e.Build + 1
	e.Gain = 1 - float64(e.Whole)/float64(cmp.Or(e.Serial, 1))
	return e
}

// play is when the last module ends, with at most parallel at once, each as soon as it can
// begin. All last longer than nothing.
func (s *Split) play(parallel int, lasts func(*Module) float64) float64 {
	ends := map[string]float64{} // of those that run or have ended
	merged := map[string]bool{}
	for now := 0.0; ; {
		running := 0
		for id, end := range ends {
			if merged[id] = end <= now; !merged[id] {
				running++
			}
		}
		for _, id := range s.Ready(func(id string) bool { return ends[id] > 0 }, func(id string) bool { return merged[id] }) {
			if running < max(1, parallel) {
				running++
				ends[id] = now + lasts(s.Module(id))
			}
		}
		next := 0.0
		for _, end := range ends {
			if end > now && (next == 0 || end < next) {
				next = end
			}
		}
		if next == 0 {
			return now
		}
		now = next
	}
}

// Pays says why a split is not worth its price, or "".
func (s *Split) Pays(parallel int, minGain float64) string {
	e := s.Estimate(parallel)
	small := !slices.ContainsFunc(s.Modules, func(m Module) bool { return m.Size != "S" })
	switch {
	case len(s.Modules) < 3 && small:
		return fmt.Sprintf("%d small modules are quicker built as one", len(s.Modules))
	case e.Gain < minGain:
		return fmt.Sprintf("built as %d modules it would take %d units of work after each other instead of %d: %.0f %% less, and a split is made from %.0f %%",
			len(s.Modules), e.Whole, e.Serial, 100*e.Gain, 100*minGain)
	}
	return ""
}
