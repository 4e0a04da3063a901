package process

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server/servertest"
)

// commit is a git fast-import stream of one commit on main, on top of the greeter.
type commit struct {
	bytes.Buffer
	rng *rand.Rand
}

func (c *commit) file(mode, path, content string) {
	fmt.Fprintf(c, "M %s inline %s\ndata %d\n%s\n", mode, quotedPath(path), len(content), content)
}

// quotedPath is a path as fast-import reads any.
func quotedPath(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		if c := path[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (c *commit) one(of ...string) string { return of[c.rng.IntN(len(of))] }

// nest is a text of so many openings, with or without their ends.
func (c *commit) nest(open, end string) string {
	n := 1 << c.rng.IntN(19)
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n*c.rng.IntN(2))
}

// manifests are what some part of the server, or a tool that it starts, reads by its name.
var manifests = []string{"package.json", "package-lock.json", "pnpm-workspace.yaml", "pnpm-lock.yaml", "yarn.lock", ".yarnrc.yml", ".npmrc", "go.mod", "go.sum", "go.work",
	"pyproject.toml", "requirements.txt", "uv.lock", "poetry.lock", "Pipfile", "Pipfile.lock", "tox.ini", "setup.cfg", "Cargo.toml", "Cargo.lock", "rust-toolchain.toml",
	".cargo/config.toml", "pom.xml", ".mvn/maven.config", "build.gradle", "settings.gradle", "gradle/libs.versions.toml", "Gemfile", "Gemfile.lock", "composer.json", "composer.lock",
	"app.csproj", "CMakeLists.txt", "Makefile", "justfile", "compose.yaml", ".tool-versions", "mise.toml", ".nvmrc", ".devcontainer/devcontainer.json",
	".github/forge.yml", ".github/workflows/ci.yml", ".github/workflows/copilot-setup-steps.yml", ".github/CODEOWNERS", ".github/pull_request_template.md",
	"AGENTS.md", "CLAUDE.md", ".agents/skills/x/SKILL.md", ".gitattributes", ".gitmodules", ".gitignore", ".editorconfig", "README.md"}

// oddities are what a repository can hold to trouble who reads it.
var oddities = map[string]func(c *commit){
	"names": func(c *commit) {
		for range 1 + c.rng.IntN(20) {
			c.file("100644", c.one("a\nb", "a\tb", `a"b`, "\x01", "\xff\xfe", "e\u0301", "\u00e9", "\u202etxt.sh", "CON", "aux.c", "a.", "a ", " a", "-rf", "--help", "$(id)", "`id`", "a;b",
				"*", "?", "A/b", "a/B", ".GIT/config", ".git./hooks/pre-commit", "git~1/config", ".g\u200cit/config", ".git\\config", "x/.git/config", "x/HEAD", "x/objects/a", "x/refs/a",
				strings.Repeat("n", 255), strings.Repeat("n", 300), strings.Repeat("d/", 40)+"f", "C:\\x", "a:b", "file://x", "🦄")+c.one("", ".go", ".py", ".js"), "x\n")
		}
	},
	"links": func(c *commit) {
		for i := range 1 + c.rng.IntN(10) {
			at := c.one(fmt.Sprintf("link%d", i), "test.sh", "greet.sh", ".github/forge.yml", c.one(manifests...))
			c.file("120000", at, c.one("/etc/passwd", "/", "../../../../../../etc/shadow", "..", ".", at, "none", "/proc/self/environ", "/proc/self/mem", "/dev/zero", "/dev/stdin",
				".git/config", strings.Repeat("x/", 2000), "a\x00b", ""))
		}
	},
	"modes": func(c *commit) {
		fmt.Fprintf(c, "M 160000 %040x vendor/lib\n", 1+c.rng.Uint64())
		if c.rng.IntN(2) == 0 {
			c.file("100644", ".gitmodules", "[submodule \"lib\"]\n\tpath = "+c.one("vendor/lib", "../x", "-x", "/etc")+"\n\turl = "+c.one("../lib", "ext::sh -c id", "--upload-pack=id", "file:///etc", "https://127.0.0.1:1/x")+"\n")
		}
		c.file("100755", c.one("a.txt", "x.so"), "\x7fELF")
	},
	"depth": func(c *commit) {
		c.file("100644", strings.Repeat(c.one("d/", "dd/", strings.Repeat("x", 200)+"/"), 1<<c.rng.IntN(12))+"f", "x")
	},
	"size": func(c *commit) {
		unit := c.one("\x00", "a", "a\n", "\t\t\n", "{", "func f() {}\n", "password = 'hunter2hunter2A1'\n", "UEsDBBQAAAAIAA==", "<!--", "```\n", "@x ", "\xf0\x9f")
		c.file("100644", c.one("big", "big.go", "big.py", "big.js", "big.json", "big.md", "big.sh", c.one(manifests...)), strings.Repeat(unit, (1<<(10+c.rng.IntN(13)))/len(unit)))
	},
	"flood": func(c *commit) {
		for i := range 1 << c.rng.IntN(13) {
			c.file("100644", fmt.Sprintf("many/%s%d/%d.%s", c.one("a", "b"), i%7, i, c.one("go", "py", "js", "rb", "txt", "yml")), "x\n")
		}
	},
	"encodings": func(c *commit) {
		text := c.one("tests:\n  commands: [sh test.sh]\n", "{\"name\": \"x\", \"scripts\": {\"test\": \"sh test.sh\"}}", "module x\n\ngo 1.26\n", "[project]\nname = 'x'\n")
		switch c.rng.IntN(5) {
		case 0:
			text = "\ufeff" + text
		case 1:
			text = "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
		case 2:
			text = strings.ReplaceAll(text, "\n", "\r")
		case 3:
			text += "\x00\xc3\x28\xa0\xa1"
		case 4:
			text = text[:c.rng.IntN(len(text))]
		}
		c.file("100644", c.one(manifests...), text)
	},
	"nesting": func(c *commit) {
		at := c.one(manifests...)
		c.file("100644", at, c.one(c.nest("[", "]"), c.nest(`{"a":`, "}"), "a = "+c.nest("[", "]"), c.nest("a: ", "\n"), c.nest("- ", "\n"), "---\nx: "+c.nest("[\"", "\"]")+"\n---\n",
			c.nest("<a>", "</a>"), c.nest("(", ")"), c.nest("> ", "\n"), "["+c.nest("a.", "")+"]\nb=1\n"))
	},
	"cycles": func(c *commit) {
		switch c.rng.IntN(6) {
		case 0:
			c.file("100644", "a.yml", "x")
			c.file("100644", c.one(manifests...), "a: &a [*a, *a]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c]\ne: [*d,*d,*d,*d]\n")
		case 1:
			c.file("100644", "pom.xml", "<?xml version=\"1.0\"?><!DOCTYPE p [<!ENTITY a \"aaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\"><!ENTITY c \"&b;&b;&b;&b;&b;&b;\"><!ENTITY x SYSTEM \"file:///etc/passwd\">]><project><parent><relativePath>pom.xml</relativePath></parent><modules><module>.</module></modules><name>&c;&x;</name></project>")
		case 2:
			c.file("100644", "package.json", `{"name":"x","workspaces":["**",".","../*"],"scripts":{"test":"npm test","pretest":"npm run test"}}`)
		case 3:
			c.file("100644", "Cargo.toml", "[package]\nname='x'\nversion='0.1.0'\n[workspace]\nmembers=['.','*','**/*','../*']\n[dependencies]\nx={path='.'}\n")
		case 4:
			c.file("100644", "go.work", "go 1.26\nuse (\n\t.\n\t./x\n\t../..\n\t/\n)\n")
			c.file("100644", "x/go.mod", "module x\nreplace x => ../x\nreplace y => /etc\nrequire y v0.0.0\n")
		case 5:
			c.file("100644", "Makefile", "test: test\ninclude Makefile\n$(shell id)\n%: %\n")
		}
	},
	"floods of names": func(c *commit) {
		var b strings.Builder
		for i := range 1 << c.rng.IntN(15) {
			fmt.Fprintf(&b, c.one("\"p%d\": \"*\",\n", "p%d==1\n", "\tx.invalid/p%d v1.0.0\n", "gem 'p%d'\n", "/p%d @nobody\n", "p%d: {script: [x]}\n"), i)
		}
		c.file("100644", c.one(manifests...), c.one("{\"dependencies\": {\n", "", "module x\nrequire (\n", "[dependencies]\n")+b.String())
	},
}

// importInto pushes a commit to a repository's main branch, as its owner. said is why git does not
// make it, or take it.
func (l *labTest) importInto(repo string, c *commit) (said string) {
	l.t.Helper()
	dir := l.t.TempDir()
	url := strings.Replace(l.gh.URL, "://", "://acme:"+l.gh.As("acme").Token+"@", 1) + "/" + repo + ".git"
	for _, args := range [][]string{{"clone", "-q", "--bare", url, dir}, {"-C", dir, "fast-import", "--quiet", "--force"}, {"-C", dir, "push", "-q", url, "main"}} {
		cmd := exec.Command("git", args...)
		cmd.Stdin = bytes.NewReader(c.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
	}
	return ""
}

// became is the state of each repository's run that does not go on by itself; "told" where none
// began, and the issue says why.
func (l *labTest) became(repos []string) map[string]string {
	l.t.Helper()
	cmd := exec.Command(program, "runs", "--json", "--limit", "100000")
	cmd.Env = l.env
	var runs []struct{ Repo, State string }
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &runs)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	states := map[string]string{}
	for _, r := range runs {
		states[r.Repo] = r.State
	}
	for _, repo := range repos {
		if states[repo] == "running" {
			delete(states, repo)
		} else if states[repo] == "" {
			if issue, err := l.gh.Issue(repo, 1); err == nil && len(issue.Comments) > 0 {
				states[repo] = "told"
			}
		}
	}
	return states
}

// highWater is the most memory that a process has had, in MiB, as Linux counts it.
func (p *process) highWater(t *testing.T) int {
	t.Helper()
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(read(t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))
	kb, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// Covers S32 and lessons on input: repositories of all kinds of trouble, beside good ones. The
// good ones are verified as always, each of the others comes to an end, and the server neither
// ends nor grows. FORGE_HOSTILE is how many there are; default 40. FORGE_SEED chooses others.
func TestHostileRepositories(t *testing.T) {
	long(t)
	n, err := strconv.Atoi(cmp.Or(os.Getenv("FORGE_HOSTILE"), "40"))
	if err != nil {
		t.Fatalf("FORGE_HOSTILE: %v", err)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("FORGE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatalf("FORGE_SEED: %v", err)
	}
	l := onGreeter(t)
	kinds := slices.Sorted(maps.Keys(oddities))
	holds, all := map[string]string{}, []string{}
	for i := range n + (n+49)/50 {
		repo, err := l.gh.AddRepo("acme", fmt.Sprintf("r%04d", i), servertest.Greeter())
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, repo); i%51 == 0 {
			holds[repo] = "good"
			continue
		}
		c := &commit{rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		fmt.Fprintf(c, "commit refs/heads/main\ncommitter x <x@x> 1700000000 +0000\ndata 1\nx\nfrom refs/heads/main^0\n")
		var kind []string
		for range 1 + c.rng.IntN(3) {
			k := c.one(kinds...)
			oddities[k](c)
			kind = append(kind, k)
		}
		holds[repo] = strings.Join(kind, ", ")
		if said := l.importInto(repo, c); said != "" { // git itself refuses it
			holds[repo] = "refused by git"
			t.Logf("%s (%v): %.200s", repo, kind, said)
		}
	}
	if _, err := l.gh.Install(all...); err != nil {
		t.Fatal(err)
	}
	l.gh.SetHourlyLimit(1_000_000) // so many runs at once would wait for the next hour
	if err := os.WriteFile(filepath.Join(l.dir, "forge.yml"), []byte("dependencies: off\ntests: {timeout_minutes: 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := l.serve()
	for _, repo := range all {
		issue, err := l.gh.As("acme").OpenIssue(repo, "The greeting lacks its comma", "It prints `hello Ann`.")
		if err == nil {
			err = l.gh.As("acme").Label(repo, issue, "forge")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	begun, told, states := time.Now(), time.Now(), map[string]int{}
	for became := map[string]string{}; len(became) < len(all); wait(2000) {
		became = l.became(all)
		states = map[string]int{}
		for repo, state := range became {
			if states[state]++; holds[repo] == "good" {
				states["good "+state]++
			}
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%s: %v", time.Since(begun).Round(time.Second), states)
		}
		if p.cmd.ProcessState != nil || time.Since(begun) > time.Duration(n)*10*time.Second+10*time.Minute {
			t.Errorf("%d of %d come to no end: %v", len(all)-len(became), len(all), states)
			break
		}
	}
	memory := p.highWater(t)
	t.Logf("%d repositories in %s: %v; the server had %d MiB at most", len(all), time.Since(begun).Round(time.Second), states, memory)
	for repo, state := range l.became(all) {
		if state == "verified" {
			continue
		}
		issue, err := l.gh.Issue(repo, 1)
		if err != nil || len(issue.Comments) == 0 {
			t.Fatalf("%s: %d comments, %v", repo, len(issue.Comments), err)
		}
		said := issue.Comments[len(issue.Comments)-1].Body
		if holds[repo] == "good" {
			t.Errorf("%s, a good one, is %s: %s", repo, state, said)
		}
		t.Logf("%s (%s): %s; %.300q", repo, holds[repo], state, said)
	}
	if memory > 150 {
		t.Errorf("the server had %d MiB, want at most 150", memory)
	}
	for _, word := range []string{"ended by itself", "panic", "fatal error"} {
		if strings.Contains(p.text(), word) {
			t.Errorf("the log has %q", word)
		}
	}
}
