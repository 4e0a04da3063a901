package sandbox

import "forge/pipeline/workspace"

// Where things are inside the sandbox.
const (
	boxTree    = workspace.TreePath
	boxScratch = "/scratch"
	boxHome    = "/home/sbx"
)

// etcFiles are the sandbox's own files in /etc, and the list of what is never part
// of a change although a repository forgot to ignore it.
var etcFiles = map[string]string{
	"passwd":        "root:x:0:0:root:/:/usr/sbin/nologin\nsbx:x:1000:1000:sandbox:" + boxHome + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
	"group":         "root:x:0:\nsbx:x:1000:\nnogroup:x:65534:\n",
	"hosts":         "127.0.0.1 localhost sandbox\n::1 localhost\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	"ignore":        "__pycache__/\n*.pyc\n.pytest_cache/\nnode_modules/\n.DS_Store\n",
}
