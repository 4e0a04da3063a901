package deps

import (
	_ "embed"
	"fmt"
	"path"
	"strings"

	"forge/pipeline/lazyregexp"
	"forge/pipeline/workspace"
)

// A Gemfile is a program, and Bundler runs it. So gems are installed as the lock file
// names them, by a script of our own: what it does not name is not there.

//go:embed gems.rb
var gemScript []byte

// gemLock is what a Gemfile.lock says.
type gemLock struct {
	gems    [][3]string // name, version, platform ("" for any)
	sums    map[string]string
	outside []string // gems that come from elsewhere than a registry
}

var (
	gemSpec = lazyregexp.New(`^    ([A-Za-z0-9._-]+) \(([0-9][^-()\s]*)(?:-([^()\s]+))?\)$`)
	gemSum  = lazyregexp.New(`^  ([A-Za-z0-9._-]+) \(([^()\s]+)\) sha256=([0-9a-f]{64})`)
)

func readGemLock(text []byte) gemLock {
	l := gemLock{sums: map[string]string{}}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && line[0] != ' ' {
			section = line
		}
		switch m := gemSpec.FindStringSubmatch(line); {
		case m != nil && section == "GEM":
			l.gems = append(l.gems, [3]string(m[1:]))
		case m != nil && (section == "GIT" || section == "PLUGIN SOURCE"):
			l.outside = append(l.outside, m[1])
		case section == "CHECKSUMS":
			if m := gemSum.FindStringSubmatch(line); m != nil {
				l.sums[m[1]+"-"+m[2]] = m[3]
			}
		}
	}
	return l
}

// list is what the script reads: name, version, platform and checksum of each gem.
func (l *gemLock) list() []byte {
	var b strings.Builder
	for _, g := range l.gems {
		full := g[0] + "-" + g[1]
		if g[2] != "" {
			full += "-" + g[2]
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", g[0], g[1], g[2], l.sums[full])
	}
	return []byte(b.String())
}

// ruby finds projects with a Gemfile.
func (f *finder) ruby() ([]*Project, error) {
	var out []*Project
	for _, name := range []string{"Gemfile", "gems.rb"} {
		locked := map[string]string{"Gemfile": "Gemfile.lock", "gems.rb": "gems.locked"}[name]
		for _, dir := range f.dirs(name) {
			p := &Project{Manager: "bundler", Dir: dir, Inputs: f.existing(dir, name, locked), tree: slot("gems", dir)}
			if !f.has[path.Join(dir, locked)] {
				if name == "gems.rb" {
					continue // a file of Ruby's like any other
				}
				p.Lacks = "there is no " + locked + ", and without one Bundler would have to run the Gemfile: commit it, or name `bundle install` under setup.commands"
				out = append(out, p)
				continue
			}
			text, err := f.read(path.Join(dir, locked))
			if err != nil {
				return nil, err
			}
			lock := readGemLock(text)
			if len(lock.gems)+len(lock.outside) == 0 {
				continue
			}
			f.bundled(p, &lock)
			out = append(out, p)
		}
	}
	return out, nil
}

// bundled says how what a lock file names is installed.
func (f *finder) bundled(p *Project, lock *gemLock) {
	if len(lock.outside) > 0 {
		p.Lacks = strings.Join(lock.outside, ", ") + " comes from a git repository, which no registry has: take a released version, or name commands under setup"
		return
	}
	if p.Lacks = f.lacks("ruby", "rubygems", "install Ruby with Bundler"); p.Lacks != "" {
		return
	}
	home := path.Join(root, p.tree)
	p.stage = map[string][]byte{path.Join(p.tree, "forge/gems.rb"): gemScript, path.Join(p.tree, "forge/gems.txt"): lock.list()}
	scripts := "without-extensions"
	if f.host.Scripts {
		scripts = "with-extensions"
	}
	p.steps = []workspace.Command{{Dir: home, Timeout: timeout, Args: []string{"ruby", "forge/gems.rb", f.host.Registry["rubygems"], scripts}}}
	// Its own .bundle/config could lead elsewhere; a lock file that was written anew would
	// be taken for a part of the work.
	p.env = []string{"GEM_HOME=" + home, "BUNDLE_APP_CONFIG=" + home + "/.bundle", "BUNDLE_FROZEN=true", "BUNDLE_DISABLE_VERSION_CHECK=true",
		"PATH=" + home + "/bin"}
}
