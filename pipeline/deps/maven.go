package deps

import (
	"bytes"
	_ "embed"
	"path"
	"slices"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

//go:embed maven.sh
var mavenScript []byte

var (
	xmlComment = lazyregexp.New(`(?s)<!--.*?-->`)
	// pomExtends lets a plugin extend Maven, or not.
	pomExtends = lazyregexp.New(`<extensions>\s*(?:true|false|)\s*</extensions>|<extensions\s*/>`)
	// pomExtension is a library that Maven loads into itself, and pomExtends written in another way.
	pomExtension = lazyregexp.New(`<extensions?[\s>]`)
	pomPackaging = lazyregexp.New(`<packaging>\s*([^<\s]+)\s*</packaging>`)
	// mavenPackaging are those that Maven brings itself; plugins add others.
	mavenPackaging = []string{"pom", "jar", "war", "ear", "ejb", "rar", "maven-plugin"}
)

// maven finds Maven's outermost builds: each builds its modules. They have no lock file;
// what is installed is what the poms say on the day.
func (f *finder) maven() ([]*Project, error) {
	var out []*Project
	for _, dir := range f.dirs("pom.xml") {
		if slices.ContainsFunc(out, func(p *Project) bool { return below(dir, p.Dir) }) {
			continue
		}
		p := &Project{Manager: "maven", Dir: dir, Inputs: f.existing(dir, ".mvn/extensions.xml", ".mvn/maven.config"), tree: slot("maven", dir)}
		for _, at := range f.dirs("pom.xml") {
			if below(at, dir) {
				p.Inputs = append(p.Inputs, path.Join(at, "pom.xml"))
			}
		}
		if err := f.built(p); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// built says how what the poms name is fetched, by copies of them.
func (f *finder) built(p *Project) error {
	p.Lacks = f.lacks("mvn", "maven", "install Maven")
	p.stage = map[string][]byte{path.Join(p.tree, "forge/maven.sh"): mavenScript, path.Join(p.tree, "settings.xml"): []byte(
		"<settings><mirrors><mirror><id>forge</id><mirrorOf>*</mirrorOf><url>" + f.host.Registry["maven"] + "</url></mirror></mirrors></settings>\n")}
	for _, name := range p.Inputs {
		text, err := f.read(name)
		if err != nil {
			return err
		}
		runs := "" // what Maven would load into itself
		switch path.Base(name) {
		case "maven.config":
			text = mavenArgs(text)
		case "extensions.xml":
			runs = "an extension"
		default:
			text, runs = f.pom(text)
		}
		if runs != "" && p.Lacks == "" && !f.host.Scripts {
			p.Lacks = name + " asks for " + runs + " of Maven, which would run while it installs: `install_scripts` in the server's settings allows that"
		}
		inner, _ := within(name, p.Dir)
		p.stage[path.Join(p.tree, "project", inner)] = text
	}
	p.steps = []workspace.Command{{Dir: path.Join(root, p.tree), Timeout: timeout, Args: []string{"sh", "forge/maven.sh"},
		Env: []string{"MAVEN_OPTS=-Duser.home=/scratch"}}}
	p.env = []string{"MAVEN_OPTS=-Dmaven.repo.local=" + path.Join(root, p.tree, "repository")}
	return nil
}

// pom is one that loads nothing into Maven; runs says what it does not work without.
func (f *finder) pom(text []byte) (kept []byte, runs string) {
	if f.host.Scripts {
		return text, ""
	}
	if !bytes.Contains(text, []byte("<project")) { // such as UTF-16, which Maven reads and these expressions do not
		return nil, ""
	}
	text = pomExtends.ReplaceAll(xmlComment.ReplaceAll(text, nil), nil)
	if pomExtension.Match(text) {
		runs = "an extension"
	} else if m := pomPackaging.FindSubmatch(text); m != nil && !slices.Contains(mavenPackaging, string(m[1])) {
		runs = "the packaging " + string(m[1]) + ", an extension"
	}
	return text, runs
}

// mavenArgs keeps of a maven.config what sets properties and profiles.
func mavenArgs(text []byte) []byte {
	return []byte(strings.Join(slices.DeleteFunc(strings.Fields(string(text)), func(arg string) bool {
		return !strings.HasPrefix(arg, "-D") && !strings.HasPrefix(arg, "-P") || strings.HasPrefix(arg, "-Dmaven.repo.") || strings.HasPrefix(arg, "-Dmaven.ext.")
	}), "\n") + "\n")
}
