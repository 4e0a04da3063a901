package sandbox

import (
	"path"
	"strings"

	"forge/pipeline/workspace"
)

// Where things are inside the sandbox.
const (
	boxTree    = "/work"
	boxCache   = "/gocache"
	boxSeed    = "/seed"
	boxMods    = "/gomodcache"
	boxScratch = "/scratch"
	boxHome    = "/home/sbx"
)

// box is where things are inside one sandbox, and what it is called.
type box struct {
	tree, home, tmp, cache, scratch string
	host, passwd                    string // passwd: the file's name among etcFiles
	ci                              bool
}

var usualBox = box{tree: boxTree, home: boxHome, tmp: "/tmp", cache: boxCache, scratch: boxScratch, host: "sandbox", passwd: "passwd", ci: true}

// boxOf is the place in which a command runs. Elsewhere, nothing is called as it is
// in the usual one, and the work tree has a name that nobody can know before.
func (w *worker) boxOf(c workspace.Command) box {
	if !c.Elsewhere {
		return usualBox
	}
	return box{tree: path.Join(otherHome, "src", strings.ToLower(w.Mark[:min(len(w.Mark), 9)])), home: otherHome, tmp: "/var/tmp",
		cache: otherHome + "/.cache", scratch: "/var/scratch", host: "build", passwd: "passwd.elsewhere"}
}

const otherHome = "/home/robin"

// etcFiles are the sandbox's own files in /etc, and the list of what is never part
// of a change although a repository forgot to ignore it.
var etcFiles = map[string]string{
	"passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nsbx:x:1000:1000:sandbox:" + boxHome + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	"passwd.elsewhere": "root:x:0:0:root:/:/usr/sbin/nologin\nrobin:x:1000:1000:robin:" + otherHome +
		":/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	"group":         "root:x:0:\nsbx:x:1000:\nnogroup:x:65534:\n",
	"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"ignore":        "__pycache__/\n*.pyc\n.pytest_cache/\nnode_modules/\n.DS_Store\n",
}
