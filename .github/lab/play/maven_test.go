package play

import (
	"forge/cmd/forge/server/servertest"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"forge/cmd/forge/server"
	"forge/cmd/forge/settings"
	"forge/pipeline"
)

// debianMaven is where Debian's packages keep what Maven asks for, laid out as a registry.
const debianMaven = "/usr/share/maven-repo"

// leftOut are plugins that every pom names by itself, that tests do not run, and that
// Debian has other versions of: here they are empty.
var leftOut = regexp.MustCompile(`^/org/apache/maven/plugins/(maven-(?:clean|deploy|install|jar|site)-plugin)/([\d.]+)/[^/]*\.(pom|jar)$`)

// maven serves Debian's artifacts as a registry for Maven.
func (p *packages) maven(t *testing.T) {
	t.Helper()
	served := p.Config.Handler
	empty := zipped(t, nil)
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m := leftOut.FindStringSubmatch(r.URL.Path)
		text, err := os.ReadFile(filepath.Join(debianMaven, filepath.FromSlash(r.URL.Path)))
		switch {
		case err == nil:
		case m != nil && m[3] == "jar":
			text = []byte(empty)
		case m != nil:
			text = []byte("<project><modelVersion>4.0.0</modelVersion><groupId>org.apache.maven.plugins</groupId><artifactId>" + m[1] + "</artifactId><version>" +
				m[2] + "</version><packaging>maven-plugin</packaging></project>")
		}
		if text != nil {
			p.mu.Lock()
			p.files[r.URL.Path] = string(text)
			p.mu.Unlock()
		}
		served.ServeHTTP(w, r)
	})
}

// Covers D1 for Maven, with the real client: what the poms of a build of several modules
// ask for comes through the gateway, with what Surefire looks for when tests run, and no
// plugin of theirs runs meanwhile. The tests run offline.
func TestDependenciesOfMaven(t *testing.T) {
	long(t)
	t.Parallel()
	needTools(t)
	for _, file := range []string{"maven-dependency-plugin/3.5.0", "maven-surefire-plugin/2.22.3", "maven-compiler-plugin/3.10.1", "maven-resources-plugin/3.3.0"} {
		if _, err := os.Stat(filepath.Join(debianMaven, "org/apache/maven/plugins", file)); err != nil {
			t.Skip("needs Maven's plugins: apt-get install maven libmaven-dependency-plugin-java libmaven-compiler-plugin-java libmaven-resources-plugin-java libsurefire-java")
		}
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		t.Skip("needs mvn: apt-get install maven")
	}
	p := newPackages(t)
	p.maven(t)
	const head = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>`
	const parent = head + `<parent><groupId>acme</groupId><artifactId>shop</artifactId><version>${revision}</version></parent>`
	o := p.options(map[string]string{
		".github/forge.yml": "tests: {}\n",
		"java/pom.xml": head + `<groupId>acme</groupId><artifactId>shop</artifactId><version>${revision}</version><packaging>pom</packaging>
<modules><module>core</module><module>app</module></modules>
<properties><maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope></dependency></dependencies>
<build><plugins>
<plugin><artifactId>maven-surefire-plugin</artifactId><version>2.22.3</version></plugin>
<plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.0</version></plugin>
<plugin><artifactId>maven-compiler-plugin</artifactId><version>3.10.1</version></plugin>
</plugins></build></project>`,
		"java/.mvn/maven.config":              "-Drevision=1\n",
		"java/core/pom.xml":                   parent + `<artifactId>core</artifactId></project>`,
		"java/core/src/main/java/Core.java":   "public class Core { public static int one() { return 1; } }\n",
		"java/app/pom.xml":                    parent + `<artifactId>app</artifactId><dependencies><dependency><groupId>acme</groupId><artifactId>core</artifactId><version>${revision}</version></dependency></dependencies></project>`,
		"java/app/src/test/java/AppTest.java": "public class AppTest { @org.junit.Test public void one() { org.junit.Assert.assertEquals(1, Core.one()); } }\n",
	})
	inner := o.Wire
	o.Wire = func(w *server.Options) {
		inner(w)
		w.Config.Registries = append(w.Config.Registries, settings.Registry{Name: "maven", Kind: "maven", URL: p.URL, Private: true})
	}
	p.twice(newServer(t, o), 50, func(tests *pipeline.TestReport) bool {
		return strings.Contains(strings.Join(tests.Setup, "\n"), "installed dependencies (maven in java)") && tests.Failed == 0 &&
			slices.ContainsFunc(tests.Names, func(name string) bool { return strings.Contains(name, "AppTest") })
	})
}

// twice lets two issues be worked on. Their tests have to be right; the first one asks the registry at
// least so often, the second one not at all.
func (p *packages) twice(ts *servertest.Server, least int, right func(*pipeline.TestReport) bool) {
	ts.T.Helper()
	for round := range 2 {
		asked := len(p.requests())
		labelInRound(ts, round, "Greet again")
		run, ok := ts.Within(5*time.Minute, func(r *pipeline.Run) bool { return r.Task.Issue == ts.Issue && r.State != pipeline.StateRunning })
		if !ok || run.Current() == nil || run.Current().Tests == nil {
			ts.T.Fatalf("round %d: %s: %+v\n%s", round, run.State, run.Gates, ts.Comments())
		}
		if tests := run.Current().Tests; !right(tests) {
			ts.T.Errorf("round %d: %+v", round, tests)
		}
		if more := p.requests()[asked:]; round == 0 && len(more) < least || round == 1 && len(more) > 0 {
			ts.T.Errorf("round %d: %d requests: %q", round, len(more), more)
		}
	}
}
