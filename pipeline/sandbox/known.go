package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Caps of what is remembered of mirrors.
const (
	maxKnown  = 4096    // commits
	maxListed = 4       // lists of files
	maxList   = 1 << 20 // bytes of one
)

// known remembers what cannot change: that a commit is in a mirror, and what its files
// are called. A phase asks for both again and again, each time for a process of git.
type known struct {
	mu      sync.Mutex
	commits map[string]bool
	listed  []listing // the newest last
}

type listing struct {
	commit string
	paths  []string
}

// commitKey names a commit in a mirror as it is now: one that was removed and made again,
// or packed, is another. "" where there is no mirror.
func commitKey(dir, sha string) string {
	ready, err := os.Stat(filepath.Join(dir, readyFile))
	if err != nil {
		return ""
	}
	packed := int64(0)
	if info, err := os.Stat(filepath.Join(dir, packedFile)); err == nil {
		packed = info.ModTime().UnixNano()
	}
	return dir + "\x00" + strconv.FormatUint(inodeOf(ready), 10) + "\x00" + strconv.FormatInt(packed, 10) + "\x00" + sha
}

func (k *known) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return key != "" && k.commits[key]
}

// add remembers that a commit is there.
func (k *known) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.commits == nil || len(k.commits) >= maxKnown {
		k.commits = map[string]bool{}
	}
	k.commits[key] = true
}

// files returns a commit's paths, which nobody may change.
func (k *known) files(key string) (paths []string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.listed {
		if l.commit == key {
			return l.paths, true
		}
	}
	return nil, false
}

// list remembers a commit's paths; without a key, where there is no mirror, nothing.
func (k *known) list(key string, paths []string) {
	if key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.listed = append(k.listed, listing{key, paths}); len(k.listed) > maxListed {
		k.listed = k.listed[1:]
	}
}
