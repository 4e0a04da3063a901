package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"

	"forge/cmd/forge/demo"
	"forge/cmd/forge/memory"
	"forge/cmd/forge/pause"
	"forge/cmd/forge/settings"
	"forge/github"
	"forge/learn/impact"
	"forge/pipeline"
	"forge/pipeline/agent"
	"forge/pipeline/deps"
	"forge/pipeline/lazyregexp"
	"forge/pipeline/store"
	"forge/pipeline/text"
	"forge/pipeline/work"
	"forge/pipeline/workspace"
)

// Grade is how bad something is.
type Grade string

// The grades. What is bad keeps runs from being verified, or the server from serving.
const (
	GradeOK   Grade = "ok"
	GradeWarn Grade = "warning"
	GradeBad  Grade = "bad"
)

// Diagnosis is what was found out about one thing that a server needs.
type Diagnosis struct {
	Area  string `json:"area"` // "settings", "disk", "model", …
	Grade Grade  `json:"grade"`
	Says  string `json:"says"`          // what is so
	Fix   string `json:"fix,omitempty"` // what to do about it
}

// doctor collects diagnoses.
type doctor struct {
	o    Options
	home string               // the state directory of the settings; o's may be one for the time of the look
	db   *store.DB            // of a server that runs; nil: it is opened
	work workspace.Workspaces // likewise
	mu   sync.Mutex
	list map[string][]Diagnosis // by area

	prices bool // the models' prices are compared with their providers' lists

	repo  string                 // OWNER/NAME that is looked at; "": none
	tools chan map[string]string // versions that commands find, once; closed without a sandbox
}

func (d *doctor) say(area string, g Grade, fix, format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list[area] = append(d.list[area], Diagnosis{Area: area, Grade: g, Says: text.Scrub(fmt.Sprintf(format, args...)), Fix: fix})
}

func (d *doctor) ok(area, format string, args ...any) { d.say(area, GradeOK, "", format, args...) }

// areas is the order in which they are told.
var areas = []string{"settings", "disk", "database", "memory", "network", "git", "sandbox", "tools", "registries", "model", "github", "webhook",
	"installations", "repository"}

// examineWithin is how long the look at one area may take.
const examineWithin = 30 * time.Second

// Doctor looks at everything that a server with these settings needs, and says what
// is wrong and how to mend it. repo, OWNER/NAME, is looked at, too; "" is none. With prices, those
// of the models are held against their providers' lists. It
// leaves nothing behind: what no server has made yet, it does not make either, because
// who looks may be another user than the server's.
func Doctor(ctx context.Context, o Options, repo string, prices bool) []Diagnosis {
	d := &doctor{o: o, home: o.Config.StateDir, prices: prices}
	if _, err := os.Stat(filepath.Join(d.home, "work")); err != nil { // of work trees: no server was here
		scratch, err := os.MkdirTemp("", "forge-doctor-")
		if err == nil {
			defer os.RemoveAll(scratch)
			err = os.Chmod(scratch, 0o711) // #nosec G302 -- the worker's user passes through it
		}
		if err != nil {
			return []Diagnosis{{Area: "disk", Grade: GradeBad, Says: text.Scrub(err.Error()), Fix: "make room for temporary files"}}
		}
		d.o.Config.StateDir = scratch
	}
	return d.examine(ctx, repo)
}

// Unreadable are the diagnoses of settings that cannot be read: one for each of the
// problems that [settings.Server] has joined.
func Unreadable(err error) []Diagnosis {
	var out []Diagnosis
	var each func(err error)
	each = func(err error) {
		joined, is := err.(interface{ Unwrap() []error })
		if !is {
			out = append(out, Diagnosis{Area: "settings", Grade: GradeBad, Says: err.Error()})
			return
		}
		for _, one := range joined.Unwrap() {
			each(one)
		}
	}
	each(err)
	out[len(out)-1].Fix = "nothing else can be looked at before"
	return out
}

func (d *doctor) examine(ctx context.Context, repo string) []Diagnosis {
	d.list, d.repo, d.tools = map[string][]Diagnosis{}, repo, make(chan map[string]string, 1)
	var all sync.WaitGroup
	for _, look := range []func(context.Context){d.settings, d.disk, d.database, d.network, d.git, d.sandbox, d.registries, d.model, func(ctx context.Context) { d.github(ctx, repo) }} {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, examineWithin)
			defer cancel()
			look(ctx)
		})
	}
	all.Wait()
	return d.told()
}

// told are the diagnoses in their order.
func (d *doctor) told() []Diagnosis {
	var out []Diagnosis
	for _, a := range areas {
		out = append(out, d.list[a]...)
	}
	return out
}

func (d *doctor) settings(context.Context) {
	c := &d.o.Config
	for _, w := range c.Warnings {
		d.say("settings", GradeWarn, "see .github/docs/settings.md", "%s", w)
	}
	if err := c.Ready(); err != nil {
		for line := range strings.Lines(err.Error()) {
			d.say("settings", GradeBad, "`forge serve` needs it; `forge run --repo` does without", "%s", strings.TrimSpace(line))
		}
		return
	}
	d.ok("settings", "nothing that `forge serve` needs is missing")
	if p := c.Parallel; p != (settings.Parallel{}) {
		d.ok("settings", "at the same time (0: any number, of modules four): %d calls of a model provider, %d commands, %d modules", p.Models, p.Commands, p.Parts)
	}
}

// A server should have this much free: one work tree, its caches and the database.
const (
	enoughDisk = 5 << 30
	leastDisk  = 1 << 30
)

func (d *doctor) disk(context.Context) {
	dir := cmp.Or(d.home, d.o.Config.StateDir)
	if _, err := os.Stat(dir); err != nil {
		above, err := mayMake(dir)
		if err != nil {
			d.say("disk", GradeBad, "set state_dir to a directory that the server's user may make, or make it", "%v", err)
			return
		}
		d.ok("disk", "%s is not there yet: `forge serve` makes it", dir)
		d.room(above)
		return
	}
	probe, err := os.CreateTemp(dir, "doctor-")
	if err != nil {
		d.say("disk", GradeBad, "give it to the server's user: chown -R USER "+dir, "the state directory cannot be written: %v", err)
		return
	}
	probe.Close()
	os.Remove(probe.Name())
	d.room(dir)
	d.crash(filepath.Join(dir, lastCrashFile))
}

// tellCrash is for how long the doctor tells that the server has ended by itself.
const tellCrash = 7 * 24 * time.Hour

// crash says how the server ended by itself, and what it worked on: the second time, that is set aside.
func (d *doctor) crash(file string) {
	info, err := os.Stat(file)
	if err != nil || time.Since(info.ModTime()) > tellCrash {
		return
	}
	crash, err := os.ReadFile(file)
	if err != nil {
		d.say("disk", GradeWarn, "", "the server ended by itself at %s; how, cannot be read: %v", info.ModTime().Format(time.DateTime), err)
		return
	}
	on := cmp.Or(work.WorkedOn(string(crash)), "something that is not known")
	d.say("disk", GradeWarn, "report it with "+file+"; what ends it twice is set aside until its next start, a run until somebody answers", "the server ended by itself at %s, by %s, while it worked on %s",
		info.ModTime().Format(time.DateTime), howItEnded(string(crash)), on)
}

// mayWrite reports why files cannot be made in a directory, which is made where it is not there.
func mayWrite(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		_, err = mayMake(dir)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is no directory", dir)
	case err == nil:
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	return err
}

// mayMake finds the directory in which the first of a path's that are not there would be
// made, and reports why that cannot be.
func mayMake(dir string) (above string, err error) {
	for above = filepath.Dir(dir); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		switch {
		case errors.Is(err, fs.ErrNotExist) && above != filepath.Dir(above):
			continue
		case err == nil && !info.IsDir():
			err = fmt.Errorf("%s is no directory", above)
		case err == nil:
			var probe string
			if probe, err = os.MkdirTemp(above, ".forge-doctor-"); err == nil {
				err = os.Remove(probe)
			}
		}
		if err != nil {
			err = fmt.Errorf("%s is not there, and cannot be made in %s: %w", dir, above, err)
		}
		return above, err
	}
}

// room says how much is free where a directory is.
func (d *doctor) room(dir string) {
	free, err := freeDisk(dir)
	switch {
	case err != nil:
		d.say("disk", GradeWarn, "", "cannot tell how much is free in %s: %v", dir, err)
	case free < leastDisk:
		d.say("disk", GradeBad, "make room, or move state_dir", "%s has %s free; runs stop below 512 MB", dir, size(free))
	case free < enoughDisk:
		d.say("disk", GradeWarn, "make room: what repositories are set up with takes up to 20 GB", "%s has %s free", dir, size(free))
	default:
		d.ok("disk", "%s has %s free", dir, size(free))
	}
}

// freeDisk is how many bytes may still be written below a directory.
func freeDisk(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return int64(st.Bavail) * int64(st.Bsize), err
}

func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func (d *doctor) database(ctx context.Context) {
	db := d.db
	if db == nil {
		if d.noDatabase() {
			d.backedUp()
			return
		}
		var err error
		if db, err = openStore(ctx, d.o); err != nil {
			d.say("database", GradeBad, "check database_url: a file's path, or postgres://USER:PASSWORD@HOST/NAME", "cannot be opened: %v", err)
			return
		}
		defer db.Close()
	}
	if err := db.Writable(ctx); err != nil {
		d.say("database", GradeBad, "is the disk full, or the file another user's?", "cannot be written: %v", err)
		return
	}
	pauses, err := db.Pauses(ctx)
	if err != nil {
		d.say("database", GradeBad, "", "%v", err)
	}
	for _, p := range pauses {
		d.say("database", GradeWarn, "`forge unpause` lets it go on", "the work of %s is paused by %s since %s: %s", pause.Of(p), p.Actor,
			p.At.UTC().Format(time.RFC3339), cmp.Or(p.Reason, "no reason was given"))
	}
	d.memory(ctx, db)
	d.waiting(ctx, db)
	address := d.o.Config.DatabaseURL.Reveal()
	if info, err := os.Stat(address); err == nil {
		d.ok("database", "SQLite, %s, %s", address, size(info.Size()))
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			d.say("database", GradeWarn, "chmod 600 "+address, "others may read it (mode %04o)", mode)
		}
		d.backedUp()
		return
	}
	d.ok("database", "can be written")
}

// noDatabase reports whether there is no file to look into yet, and says so.
func (d *doctor) noDatabase() bool {
	address := d.o.Config.DatabaseURL.Reveal()
	if d.o.Database != "" || !filepath.IsAbs(address) {
		return false // opened as it is
	}
	if _, err := os.Lstat(address); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err := store.Lost(address); err != nil {
		d.say("database", GradeBad, "restore it: `forge serve` says from what", "%v", err)
		return true
	}
	above := filepath.Dir(address)
	info, err := os.Stat(above)
	switch {
	case above == d.home: // which the look at the disk is about
	case err == nil && !info.IsDir():
		err = errors.New("its folder is none")
	case err == nil:
		err = unix.Access(above, unix.W_OK|unix.X_OK)
	}
	if err != nil && above != d.home {
		d.say("database", GradeBad, "check database_url: a file's path, or postgres://USER:PASSWORD@HOST/NAME", "%s cannot be made: %v", address, err)
		return true
	}
	d.ok("database", "SQLite, %s is not there yet: `forge serve` makes it", address)
	return true
}

// waiting says how many runs wait for a service that is away, and until when: that a model
// answers this look is no news to them.
func (d *doctor) waiting(ctx context.Context, db *store.DB) {
	rows, err := db.Runs(ctx, store.Filter{State: pipeline.StateRunning, Parts: true, Limit: 1000})
	if err != nil {
		d.say("model", GradeBad, "", "%v", err)
		return
	}
	var models, limited waiters
	for _, row := range rows {
		run, err := db.Load(ctx, row.ID)
		if err != nil {
			d.say("model", GradeBad, "", "%v", err)
			continue
		}
		switch w := run.Await; {
		case w == nil:
		case w.Model:
			models.add(w)
		case w.GitHub:
			limited.add(w)
		}
	}
	if models.runs > 0 {
		d.say("model", GradeWarn, "where it answers by now: `/forge retry` at a run, or a restart of the server, tries it at once, and all go on when it answers",
			"%s for %s", text.Plural(models.runs, "run waits", "runs wait"), models.what)
	}
	if limited.runs > 0 {
		d.say("github", GradeWarn, "they go on by themselves", "%s for %s", text.Plural(limited.runs, "run waits", "runs wait"), limited.what)
	}
}

// waiters counts runs that wait, with what the last of them to be tried again says.
type waiters struct {
	runs int
	what string
	next time.Time
}

func (s *waiters) add(w *pipeline.Await) {
	if s.runs++; w.Next.After(s.next) {
		s.what, s.next = w.What, w.Next
	}
}

// memory says whether runs do worse with what Forge has learnt.
func (d *doctor) memory(ctx context.Context, db *store.DB) {
	drawn, err := db.Drawn(ctx, "")
	if err != nil {
		d.say("memory", GradeBad, "", "%v", err)
		return
	}
	switch w := impact.WholeOf(drawn); {
	case w.Worse():
		d.say("memory", GradeWarn, impact.WorseFix, "runs do worse with memory: %s, %s", w.Says(), w.FirstPass.Text(true))
	case w.FirstPass != nil:
		d.ok("memory", "%s, %s", w.Says(), w.FirstPass.Text(true))
	}
	asked, err := memory.Asked(ctx, db, time.Now())
	if err != nil {
		d.say("memory", GradeBad, "", "%v", err)
	}
	for _, repo := range slices.Sorted(maps.Keys(asked)) {
		if a := asked[repo]; a.Worse() {
			d.say("memory", GradeWarn, memory.AskedFix, "%s: %s", repo, a)
		}
	}
}

// network tries the addresses that a server listens on, unless it is one that looks.
func (d *doctor) network(ctx context.Context) {
	c := &d.o.Config
	for _, s := range c.Subscribers {
		if u, err := url.Parse(s.URL.Reveal()); err == nil && u.Host != "" {
			if _, err := net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
				d.say("network", GradeWarn, "check the address in its url_file", "subscribers.%s: %s cannot be found, so that it is told nothing", s.Name, u.Hostname())
			}
		}
	}
	if d.db != nil || c.Ready() != nil {
		return
	}
	addresses := map[string]string{"listen": c.Listen}
	if c.Dashboard == "local" {
		addresses["dashboard_listen"] = c.DashboardListen
	}
	if addresses["dashboard_listen"] == c.Listen && !strings.HasSuffix(c.Listen, ":0") {
		d.say("network", GradeBad, "set dashboard_listen (FORGE_DASHBOARD_LISTEN) to another port", "listen and dashboard_listen are both %s", c.Listen)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(addresses)) {
		address := addresses[key]
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			d.ok("network", "%s: %s is free", key, address)
			_ = l.Close()
		case errors.Is(err, syscall.EADDRINUSE) && forgeAt(ctx, c.Listen):
			d.ok("network", "%s: a server of Forge's runs on %s", key, address)
		case errors.Is(err, syscall.EADDRINUSE):
			d.say("network", GradeBad, fmt.Sprintf("set %s to a free port, or stop what listens there: ss -ltnp", key), "%s: another program listens on %s", key, address)
		default:
			d.say("network", GradeBad, fmt.Sprintf("set %s to an address of this machine, such as 127.0.0.1:8080", key), "%s: %v", key, err)
		}
	}
}

// forgeAt reports whether a server like this one is at an address.
func forgeAt(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 10))
	return err == nil && resp.StatusCode == http.StatusOK && string(body) == "ok\n"
}

func (d *doctor) git(ctx context.Context) {
	version := d.o.hostTool()(ctx, "git", "--version")
	if version == "" {
		d.say("git", GradeBad, "install git 2.39 or newer", "git is not installed")
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "git version %d.%d", &major, &minor); err == nil && (major < 2 || major == 2 && minor < 38) {
		d.say("git", GradeBad, "install git 2.39 or newer: merges are tried with merge-tree --write-tree", "%s is too old", version)
		return
	}
	d.ok("git", "%s", version)
}

// sandbox tries it, and looks which tools commands find in it.
func (d *doctor) sandbox(ctx context.Context) {
	defer close(d.tools)
	if d.o.Config.UnsafeNoSandbox {
		d.say("sandbox", GradeWarn, "remove unsafe_no_sandbox", "commands of repositories run without one, with all rights of the server's user")
		return
	}
	spaces, err := d.work, error(nil)
	if spaces == nil {
		spaces, _, err = newWorkspaces(d.o)
	}
	if err == nil {
		err = spaces.Probe(ctx)
	}
	if err != nil {
		d.say("sandbox", GradeBad, "without it no test runs: `bwrap --ro-bind / / true` as the server's user shows what is lacking, most often user namespaces (see .github/deploy/README.md)", "%v", err)
		return
	}
	d.ok("sandbox", "bubblewrap works: no network, no capabilities, a user of its own")
	if held, ok := spaces.(interface{ Cgroups() error }); ok {
		d.cgroups(held.Cgroups())
	}
	ws, err := spaces.Open(ctx, workspace.OpenOptions{Name: "doctor", Cache: "doctor"})
	if err != nil {
		d.say("tools", GradeBad, "", "%v", err)
		return
	}
	defer ws.Close()
	r, err := ws.Run(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", deps.ToolScript(d.o.Config.Toolchains)}})
	if err != nil {
		d.say("tools", GradeBad, "", "%v", err)
		return
	}
	tools := deps.ParseTools(string(r.Stdout))
	d.tools <- tools
	var there []string
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if tool, dir, ok := strings.Cut(name, "@"); ok {
			there = append(there, tool+" ("+shortVersion(tools[name])+", in "+dir+")")
			continue
		}
		there = append(there, name+" ("+shortVersion(tools[name])+")")
	}
	if len(there) == 0 {
		d.say("tools", GradeWarn, "install those that your repositories need", "no toolchain is seen in the sandbox: no Go, Node, Python or Rust")
		return
	}
	d.ok("tools", "commands find %s", strings.Join(there, ", "))
	for name := range map[string]bool{"node": true, "python3": true} {
		manager, install := map[string]string{"node": "npm", "python3": "pip"}[name], map[string]string{"node": "npm", "python3": "python3-pip"}[name]
		if tools[name] != "" && tools[manager] == "" {
			d.say("tools", GradeWarn, "apt-get install "+install, "%s is there without %s: dependencies of its repositories cannot be installed", name, manager)
		}
		if tools[name] == "" && d.o.hostTool()(ctx, name, "--version") != "" {
			d.say("tools", GradeWarn, "install it for all users, under /usr, or name its directory under `toolchains` in the server's settings", "%s is on this machine, but the sandbox does not see it", name)
		}
	}
}

// versionOf is the first version in what a tool says of itself, such as "Composer
// version 2.7.1 2024-02-09".
var versionOf = lazyregexp.New(`\d+(?:\.\d+)+[\w.+-]*`)

func shortVersion(said string) string {
	return cmp.Or(versionOf.FindString(said), text.Clip(said, 40))
}

// cgroups says by what commands are held to their limits: by the kernel, or by being
// looked at.
func (d *doctor) cgroups(lack error) {
	if lack == nil {
		d.ok("sandbox", "each command has a cgroup of its own: the kernel counts its memory, processes and processors, and ends all of it at once")
		return
	}
	d.say("sandbox", GradeOK, "give it one to divide: Delegate=yes in its unit, `systemd-run --user --scope -p Delegate=yes forge …` in a terminal, "+
		"a writable cgroup in a container: see .github/deploy/README.md",
		"commands have no cgroups of their own: %v. Their memory is counted ten times a second, without what the kernel holds for sockets and pipes", lack)
}

// registries asks each for anything at all.
func (d *doctor) registries(ctx context.Context) {
	if !d.o.Config.Dependencies || d.o.Config.UnsafeNoSandbox {
		d.ok("registries", "not asked: dependencies are not installed")
		return
	}
	gateway, _, err := newRegistries(d.o)(ctx)
	if err != nil {
		d.say("registries", GradeBad, "mend `registries` in the server's settings", "%v", err)
		return
	}
	list := gateway.Try(ctx)
	if len(list) == 0 {
		d.say("registries", GradeWarn, "name them under `registries`, or install go, npm or pip, whose own are used", "none is known: dependencies must be vendored")
	}
	for _, t := range list {
		if t.Err != nil {
			d.say("registries", GradeWarn, "is there a firewall, or a proxy? Name one that can be reached and works under `registries`", "%s: %s cannot be reached: %v", t.Kind, t.URL, t.Err)
			continue
		}
		d.ok("registries", "%s: %s", t.Kind, t.URL)
	}
}

func (d *doctor) model(ctx context.Context) {
	c := d.o.Config
	names := slices.Compact(slices.Sorted(maps.Values(c.Run.Models)))
	if len(names) == 0 {
		names = []string{""}
	}
	prices, asOf, err := agent.LoadPrices()
	if err != nil {
		d.say("model", GradeBad, "", "%v", err)
		return
	}
	for _, name := range names {
		able, err := agent.Probe(ctx, name, modelLimits(c)[name], c.Credentials())
		if err != nil {
			d.say("model", GradeBad, "without it no run goes on", "%v", err)
			continue
		}
		if able.Unset {
			d.say("model", GradeBad, fmt.Sprintf("mend that, or set `model_limits: {%q: {form: plain}}`: it answers, and can be asked for code alone", name), "%s: %s", name, able.Why)
			continue
		}
		var roles []string
		for role, m := range c.Run.Models {
			if m == name {
				roles = append(roles, string(role))
			}
		}
		slices.Sort(roles)
		if strings.HasPrefix(name, "tape:") {
			d.ok("model", "%s is there (%s)", name, strings.Join(roles, ", "))
		} else {
			d.ok("model", "%s (%s) %s", name, strings.Join(roles, ", "), able)
		}
		if able.Context > 0 && able.Context < smallContext {
			d.say("model", GradeWarn, fmt.Sprintf("let it hold %d or more (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx of the model; llama.cpp: -c; vLLM: --max-model-len)", smallContext),
				"%s has a context of %d tokens: files, outputs and answers of a run hardly fit into it", name, able.Context)
		}
		used, known := prices.Find(name)
		from := "Forge's table of " + asOf
		if own, set := c.Prices[name]; set {
			used, known, from = agent.Price{Input: own.Input, Output: own.Output}, true, "the settings"
		}
		if d.prices && known {
			d.price(ctx, name, used, from)
		}
		if !known {
			d.say("model", GradeWarn, "set its price under `prices`; until then limits.tokens alone holds it", "%s has no known price: cost is shown as unknown, and limits.cost_usd does not hold it", name)
		}
	}
}

// smallContext is what a model's context should hold, in tokens: a run's first prompts take some
// 4,000, its answers up to 16,000.
const smallContext = 32_768

// price holds what a model is taken to cost, and where that is from, against its provider's list.
func (d *doctor) price(ctx context.Context, name string, used agent.Price, from string) {
	words := func(p agent.Price) string {
		return fmt.Sprintf("$%.4g for input and $%.4g for output", p.Input, p.Output)
	}
	listed, ok := agent.ListedPrice(ctx, name, d.o.Config.Credentials())
	near := func(a, b float64) bool { return math.Abs(a-b) <= 0.01*max(a, b) }
	switch {
	case strings.HasPrefix(name, "tape:"):
	case !ok:
		d.ok("model", "%s costs %s per million tokens, by %s; its provider lists no prices", name, words(used), from)
	case near(used.Input, listed.Input) && near(used.Output, listed.Output):
		d.ok("model", "%s costs %s per million tokens, by %s and by its provider's list", name, words(used), from)
	default:
		d.say("model", GradeWarn, fmt.Sprintf("set `prices: {%s: {input: %.4g, cached: %.4g, cache_write: %.4g, output: %.4g}}`", name, listed.Input, listed.Cached, listed.CacheWrite, listed.Output),
			"%s costs %s per million tokens by its provider's list, and %s by %s", name, words(listed), words(used), from)
	}
}

// manifest is what the App should have.
type manifest struct {
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

func (d *doctor) github(ctx context.Context, repo string) {
	c := d.o.Config
	if c.AppID == 0 || c.PrivateKeyFile == "" {
		d.say("github", GradeWarn, "set app_id and private_key_file; without them `forge run --repo` works alone", "no App is configured")
		return
	}
	app, err := NewGitHubApp(c, d.o.Log)
	if err != nil {
		d.say("github", GradeBad, "mend app_id, private_key_file and github_url", "%v", err)
		return
	}
	facts, err := app.Facts(ctx)
	if err != nil {
		d.say("github", GradeBad, "check github_url, app_id, the key, and the way to GitHub", "%v", err)
		return
	}
	var want manifest
	if err := yaml.Unmarshal(demo.Manifest(), &want); err != nil {
		d.say("github", GradeBad, "", "%v", err)
		return
	}
	d.app(facts, want)
	d.webhook(facts)
	d.installations(facts)
	if repo != "" {
		d.repository(ctx, app, facts, repo)
	}
}

// app holds the App against its manifest.
func (d *doctor) app(f *github.Facts, want manifest) {
	well := true
	bad := func(g Grade, fix, format string, args ...any) {
		well = false
		d.say("github", g, fix, format, args...)
	}
	if lacks := lacking(f.Permissions, want.Permissions); len(lacks) > 0 {
		bad(GradeBad, "grant them at "+f.URL+" under Permissions & events, then approve them in each installation", "the App lacks permissions: %s", strings.Join(lacks, ", "))
	}
	var events []string
	for _, e := range want.Events {
		if !slices.Contains(f.Events, e) {
			events = append(events, e)
		}
	}
	if len(events) > 0 {
		bad(GradeBad, "subscribe to them at "+f.URL+" under Permissions & events", "the App is not sent these events: %s", strings.Join(events, ", "))
	}
	if f.Permissions["workflows"] != "" {
		bad(GradeWarn, "take it away: Forge never changes workflows", "the App may change workflows")
	}
	if f.Skew.Abs() > 30*time.Second {
		bad(GradeBad, "set it by NTP: GitHub refuses signatures that are off by a minute", "this machine's clock is off by %s", f.Skew.Round(time.Second))
	}
	if well {
		d.ok("github", "signed in as %s, with all permissions and events", f.Slug)
	}
}

// lacking are permissions that are wanted and not given.
func lacking(has, want map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if has[name] != want[name] && has[name] != "admin" && !(want[name] == "read" && has[name] == "write") {
			out = append(out, name+": "+want[name])
		}
	}
	return out
}

// webhook looks where deliveries go, and what became of the last ones.
func (d *doctor) webhook(f *github.Facts) {
	if d.o.Config.Poll {
		d.ok("webhook", "deliveries are read through GitHub's API; it holds %d of late", len(f.Deliveries))
		return
	}
	page := f.URL + " under General, Webhook"
	u, err := url.Parse(f.HookURL)
	switch {
	case f.HookURL == "":
		d.say("webhook", GradeBad, "set https://YOUR-HOST/webhook at "+page, "the App has no webhook address")
	case err != nil || u.Path != "/webhook":
		d.say("webhook", GradeBad, "Forge takes deliveries in at /webhook: set it at "+page, "deliveries go to %s", f.HookURL)
	case u.Scheme != "https" && !local(u.Hostname()):
		d.say("webhook", GradeWarn, "use https, at "+page, "deliveries go to %s in the clear", f.HookURL)
	}
	if f.HookInsecure {
		d.say("webhook", GradeWarn, "enable SSL verification at "+page, "GitHub does not check the server's certificate")
	}
	if f.HookForm {
		d.say("webhook", GradeBad, "choose application/json at "+page, "deliveries come as forms")
	}
	if public := d.o.Config.PublicURL; public != "" && err == nil && u.Host != "" && !strings.HasPrefix(f.HookURL, public+"/") {
		d.say("webhook", GradeWarn, "set one of them", "deliveries go to %s, but public_url is %s", u.Host, public)
	}
	var failed []github.Delivered
	for _, x := range f.Deliveries {
		if x.Status < 200 || x.Status > 299 {
			failed = append(failed, x)
		}
	}
	switch n := len(f.Deliveries); {
	case n == 0:
		d.say("webhook", GradeWarn, "label an issue, or press Redeliver on the ping at "+page, "GitHub has not sent anything yet")
	case len(failed) > 0:
		x := failed[0]
		grade, fix := GradeWarn, "is the server up, and its address reachable from GitHub? Its log says more; `forge deliveries` lists what arrived"
		if x.At.Equal(f.Deliveries[0].At) {
			grade = GradeBad
		}
		if x.Status == http.StatusUnauthorized {
			fix = "the webhook secret there and webhook_secret here differ: set both to the same"
		}
		d.say("webhook", grade, fix, "%d of the last %d deliveries failed, the newest %s ago: %s %d %s", len(failed), n, time.Since(x.At).Round(time.Minute), x.Event, x.Status, x.Text)
	default:
		d.ok("webhook", "%s; the last %d deliveries arrived", f.HookURL, n)
	}
}

func local(host string) bool {
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

func (d *doctor) installations(f *github.Facts) {
	if len(f.Installations) == 0 {
		d.say("installations", GradeBad, "install it: "+f.URL+"/installations/new", "the App is installed nowhere")
		return
	}
	for _, i := range f.Installations {
		switch lacks := lacking(i.Permissions, f.Permissions); {
		case i.Suspended:
			d.say("installations", GradeBad, "its owner lifts that at "+i.URL, "%s has suspended the App", i.Account)
		case len(lacks) > 0:
			d.say("installations", GradeBad, "its owner accepts them at "+i.URL, "%s has not approved: %s", i.Account, strings.Join(lacks, ", "))
		default:
			d.ok("installations", "%s", i.Account)
		}
	}
}
