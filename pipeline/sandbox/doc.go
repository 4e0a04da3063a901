// Package sandbox is the only place where Forge starts a process.
//
// A repository's files and commands are never touched by the server itself. For
// each run the [Manager] opens a [Workspace]: the same binary, started as
// `forge worker` with an empty environment, in a process group of its own and
// under an unprivileged user, which answers calls over its standard input and
// output ([Worker]). The worker checks a commit out of a git directory that it
// can only read, reads, searches and edits files through os.Root, and runs
// commands in bubblewrap: no network, no capabilities, a seccomp filter, and
// nothing to see but the work tree, what the repository's set-up has left, and the
// host's toolchains.
// When there is no working sandbox, commands are refused; nothing falls back.
//
// Git with a token is the [Gateway]'s: fixed flags and environment, one bare
// mirror per repository, commits made by plumbing from an explicit list of
// changes, pushes with a lease to Forge's own branches alone.
//
// It stores, under the two state directories that it is given: the mirrors, the
// environments of repositories, and the work trees of the runs that are open.
package sandbox
