package server

import (
	"os"
	"os/user"
	"runtime/debug"

	"forge/pipeline"
)

// release is set by the linker in what is released, and in images.
var release string

// Version is the release, or the module's version, or the commit that it was built from.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return "devel"
}

// OSUser is who sits at this machine.
func OSUser() pipeline.Actor {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return pipeline.Actor{Login: name}
}
