package server

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"forge/pipeline/sandbox"
	"forge/pipeline/workspace"
)

// newWorkspaces makes what holds repositories: the sandbox that files and commands
// are in, and the gateway that git goes through.
func newWorkspaces(o Options) (workspace.Workspaces, *sandbox.Gateway, error) {
	if o.Workspaces != nil {
		gateway, err := newGateway(o, 0)
		return o.Workspaces, gateway, err
	}
	cfg := o.Config
	uid, gid, err := workerUser(cfg.WorkerUser)
	if err != nil {
		return nil, nil, err
	}
	exe := o.Worker
	if exe == "" {
		if exe, err = os.Executable(); err != nil {
			return nil, nil, fmt.Errorf("find this program: %w", err)
		}
	}
	spaces, err := sandbox.New(sandbox.Options{
		Dir: filepath.Join(cfg.StateDir, "work"), Exe: exe, Unsafe: cfg.UnsafeNoSandbox, UID: uid, GID: gid, Log: o.Log, AtOnce: cfg.Parallel.Commands, Toolchains: cfg.Toolchains,
		Secrets: append([]string{cfg.StateDir, cfg.BackupDir, cfg.DatabaseURL.Reveal()}, cfg.SecretFiles...),
		Shown:   []string{filepath.Join(cfg.StateDir, "git"), filepath.Join(cfg.StateDir, "registries"), filepath.Join(cfg.StateDir, "images")},
		Limits:  sandbox.Limits{Wall: time.Duration(cfg.Run.Tests.TimeoutMinutes)*time.Minute + time.Minute}, // a suite's own limit fires first
	})
	if err != nil {
		return nil, nil, err
	}
	gateway, err := newGateway(o, gid)
	return spaces, gateway, err
}

// newGateway makes what git goes through; gid is the group that reads the mirrors.
func newGateway(o Options, gid int) (*sandbox.Gateway, error) {
	cfg := o.Config
	var hosts []string
	if cfg.GitHubURL != "" {
		hosts = append(hosts, cfg.GitHubURL)
	}
	finder, err := newSecrets(cfg)
	if err != nil {
		return nil, err
	}
	return sandbox.NewGateway(sandbox.GatewayOptions{
		Secrets: finder,
		Dir:     filepath.Join(cfg.StateDir, "git"), Hosts: hosts, AllowLocal: o.Local, Prefix: cfg.Slug + "/", GID: gid, Log: o.Log,
	})
}

// workerUser finds the user that works on repositories when this process is root;
// zeros let the sandbox choose.
func workerUser(name string) (uid, gid int, err error) {
	if name == "" {
		return 0, 0, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("find the worker's user: %w", err)
	}
	uid, _ = strconv.Atoi(u.Uid)
	gid, _ = strconv.Atoi(u.Gid)
	return uid, gid, nil
}
