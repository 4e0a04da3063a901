package process

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forge/cmd/forge/bus"
	"forge/cmd/forge/server/servertest"
	"forge/github/githubtest"
	"forge/lab/feature"
	"forge/pipeline"
	"forge/pipeline/store"
)

// A gate is passed by a server at each boundary between an effect and its record: a call
// that changes something on GitHub and a push, before it is carried out and before it is
// answered; a delivery, and a message to a subscriber, likewise; and each commit of the
// database. Whoever stands at the gate is killed there, or goes on. What happens between
// two boundaries stays inside of the server and its work trees: a server that dies there
// leaves what one leaves that dies at the next boundary.
type gate struct {
	t        *testing.T
	position func(exact bool) string    // how far the run is, by its log
	kill     func(boundary string) bool // whether to kill whoever is at a boundary for the first time

	mu     sync.Mutex
	at     *process
	dead   bool           // and not started again yet
	met    map[string]int // how often, by boundary
	killed map[string]bool
	last   time.Time // when something was last met for the first time, or somebody killed
}

// pass reports whether a server may go on; it is dead otherwise.
func (g *gate) pass(boundary string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at == nil || g.dead {
		return true // nobody to kill: what a dead one has sent arrives
	}
	name := boundary + " after " + g.position(allBoundaries())
	if g.met[name]++; g.met[name] == 1 {
		g.last = time.Now()
	}
	if g.killed[name] || !g.kill(name) {
		return true
	}
	g.killed[name], g.dead, g.last = true, true, time.Now()
	g.at.kill()
	return false
}

func (g *gate) stands(p *process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at, g.dead = p, false
}

func (g *gate) state() (dead bool, quiet time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dead, time.Since(g.last)
}

// onCommit listens for servers that are about to commit to SQLite, and returns where.
func (g *gate) onCommit(dir string) string {
	path := filepath.Join(dir, "commits")
	l, err := net.Listen("unix", path)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan() && g.pass("commit of "+lines.Text()); {
					if _, err := conn.Write([]byte{'\n'}); err != nil {
						return
					}
				}
			}()
		}
	}()
	return path
}

// gateVariable names the socket at which the server says what it is about to commit to
// SQLite: see testdata/commits.go.
const gateVariable = "FORGE_TEST_COMMITS"

// toPostgres is a way to a PostgreSQL database that passes the gate before each commit,
// and before its answer.
func (g *gate) toPostgres(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		g.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { l.Close() })
	host := u.Host
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", host)
			if err != nil {
				near.Close()
				continue
			}
			w := &wire{gate: g, near: near, far: far, statements: map[string]string{}, tables: map[string]bool{}}
			go w.ask()
			go w.answer()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// wire is a connection to PostgreSQL, of whose protocol it knows what is said of
// statements and their ends.
type wire struct {
	gate      *gate
	near, far net.Conn

	mu         sync.Mutex
	statements map[string]string // by name
	tables     map[string]bool   // that are changed by what is not committed yet
	inside     bool              // a transaction
}

var changes = regexp.MustCompile(`(?i)\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?"?([a-z_.]+)`)

func (w *wire) close() { w.near.Close(); w.far.Close() }

// ask passes on what the server says.
func (w *wire) ask() {
	defer w.close()
	from := bufio.NewReader(w.near)
	for first := true; ; first = false {
		kind, message, err := packet(from, first)
		if err != nil {
			return
		}
		if what, ends := w.said(kind, message); ends && !w.gate.pass("commit of "+what) {
			return
		}
		if _, err := w.far.Write(message); err != nil {
			return
		}
	}
}

// packet reads one message with its head. The first one of a connection has no kind.
func packet(from io.Reader, first bool) (kind byte, message []byte, err error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return 0, nil, err
	}
	if !first {
		kind = head[0]
	}
	message = append(head, make([]byte, binary.BigEndian.Uint32(head[len(head)-4:])-4)...)
	_, err = io.ReadFull(from, message[len(head):])
	return kind, message, err
}

// said takes note of what the server says, and reports what a commit would commit.
func (w *wire) said(kind byte, message []byte) (what string, ends bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := func() []string { return strings.SplitN(string(message[5:]), "\x00", 3) }
	note := func(statement string) {
		for _, m := range changes.FindAllStringSubmatch(statement, -1) {
			w.tables[m[1]] = true
		}
	}
	switch kind {
	case 'Q':
		text := strings.ToLower(texts()[0])
		note(text)
		ends = text == "commit" || !w.inside && len(w.tables) > 0
	case 'P':
		t := texts()
		w.statements[t[0]] = t[1]
	case 'B':
		note(w.statements[texts()[1]])
	case 'S':
		ends = !w.inside && len(w.tables) > 0
	}
	return strings.Join(slices.Sorted(maps.Keys(w.tables)), " "), ends && len(w.tables) > 0
}

// answer passes on what the database says.
func (w *wire) answer() {
	defer w.close()
	from := bufio.NewReader(w.far)
	for {
		kind, message, err := packet(from, false)
		if err != nil {
			return
		}
		if kind == 'Z' {
			w.mu.Lock()
			w.inside = message[5] != 'I'
			what := strings.Join(slices.Sorted(maps.Keys(w.tables)), " ")
			if !w.inside {
				clear(w.tables)
			}
			done := !w.inside && what != ""
			w.mu.Unlock()
			if done && !w.gate.pass("answer to the commit of "+what) {
				return
			}
		}
		if _, err := w.near.Write(message); err != nil {
			return
		}
	}
}

// told is a subscriber that passes the gate before and after it takes a message in.
type told struct {
	gate *gate
	mu   sync.Mutex
	ids  map[string]string // of events, by their place
	many map[string]int    // events, by their type
	bad  []string
	next map[int64]int64 // the lowest place in a run that may come
}

func (s *told) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var e bus.Event
	if err := json.Unmarshal(body, &e); err != nil || !s.gate.pass("message to a subscriber: "+e.Type) {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	place := fmt.Sprintf("%d/%d", e.Data.Run, e.Data.Seq)
	switch was := s.ids[place]; {
	case was != "" && was != e.ID:
		s.bad = append(s.bad, place+" came with two ids")
	case was == "" && e.Data.Seq < s.next[e.Data.Run]:
		s.bad = append(s.bad, place+" came late")
	}
	if s.ids[place] == "" {
		s.many[e.Type]++
	}
	s.ids[place], s.next[e.Data.Run] = e.ID, max(e.Data.Seq, s.next[e.Data.Run])
	s.mu.Unlock()
	if !s.gate.pass("answer of a subscriber: " + e.Type) {
		panic(http.ErrAbortHandler)
	}
}

// heard reports whether so many events of a type came.
func (s *told) heard(kind string, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.many[kind] >= n
}

// door passes the gate before a delivery reaches the server, and before GitHub has its
// answer.
func (g *gate) door(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		g.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy.ModifyResponse = func(r *http.Response) error {
		if !g.pass("answer to a delivery of " + r.Request.Header.Get("X-GitHub-Event")) {
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.pass("delivery of " + r.Header.Get("X-GitHub-Event")) {
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	g.t.Cleanup(front.Close)
	return front.URL
}

// gated is a lab whose server stands at a gate.
type gated struct {
	*labTest
	gate       *gate
	database   string
	subscriber *told
	db         *sql.DB
}

// newGated makes one. kill says where to kill.
func newGated(t *testing.T, l *labTest, postgres string, killed map[string]bool, kill func(string) bool) *gated {
	t.Helper()
	g := &gate{t: t, met: map[string]int{}, killed: killed, kill: kill}
	x := &gated{labTest: l, gate: g, database: postgres, subscriber: &told{gate: g, ids: map[string]string{}, many: map[string]int{}, next: map[int64]int64{}}}
	program := httptest.NewServer(x.subscriber)
	t.Cleanup(program.Close)
	files := map[string]string{"subscriber": program.URL, "secret": "0123456789abcdef",
		"forge.yml": "subscribers:\n  ci: {url_file: " + l.dir + "/subscriber, secret_file: " + l.dir + "/secret, private: true}\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	driver, source := "pgx", postgres
	if postgres == "" {
		driver, x.database = "sqlite", filepath.Join(l.dir, "state", "forge.db") // which the server makes
		source = "file:" + x.database + "?mode=rw&_pragma=busy_timeout(10000)"
		l.env = append(l.env, gateVariable+"="+g.onCommit(l.dir), "FORGE_BACKUP_EVERY=1s")
	} else {
		l.env = append(l.env, "FORGE_DATABASE_URL="+g.toPostgres(postgres))
	}
	var err error
	if x.db, err = sql.Open(driver, source); err != nil {
		t.Fatal(err)
	}
	x.db.SetMaxOpenConns(1)
	t.Cleanup(func() { x.db.Close() })
	g.position = func(exact bool) string {
		var kind string
		var all int
		if x.db.QueryRow("SELECT type FROM events ORDER BY time DESC, run DESC, seq DESC LIMIT 1").Scan(&kind) != nil {
			return "nothing"
		}
		if !exact || x.db.QueryRow("SELECT COUNT(*) FROM events").Scan(&all) != nil {
			return kind
		}
		return fmt.Sprintf("%s, event %d", kind, all)
	}
	l.gh.SetHourlyLimit(1_000_000) // a server makes a dozen calls at each start
	l.gh.SetGate(func(operation string, done bool) bool {
		if done {
			return g.pass("answer of GitHub to " + operation)
		}
		return g.pass("call of " + operation)
	})
	return x
}

func (x *gated) onPostgres() bool { return !strings.HasSuffix(x.database, ".db") }

// play carries the run, and those of its modules, to their end, whoever dies on the way, and returns how often a
// server died.
func (x *gated) play(runs int, most time.Duration) (deaths int) {
	x.t.Helper()
	start := func() {
		p := x.serve()
		x.gh.SetHook(x.gate.door(p.url) + "/webhook")
		x.gate.stands(p)
	}
	start()
	x.start()
	begun, pressed, verified := time.Now(), time.Time{}, false
	for ; ; wait(5) {
		dead, quiet := x.gate.state()
		if dead { // as if what it held had run out
			if x.onPostgres() {
				x.must("UPDATE runs SET lease_until = 1 WHERE lease_owner <> ''")
				x.must("UPDATE river_job SET attempted_at = attempted_at - INTERVAL '1 minute' WHERE state = 'running'")
			}
			x.must("UPDATE subscribers SET until = 1")
			deaths++
			start()
			continue
		}
		verified = verified || x.isVerified() && x.subscriber.heard("io.forge.run.verified", runs)
		if verified && quiet > 2*time.Second && !x.due() {
			return deaths
		}
		if !verified && quiet > 2*time.Second && time.Since(pressed) > 2*time.Second {
			x.redeliver()
			pressed = time.Now()
		}
		if time.Since(begun) > most {
			x.t.Fatalf("not verified after %s and %d deaths; last log:\n%s", most, deaths, x.procs[len(x.procs)-1].text())
		}
	}
}

// redeliver presses GitHub's button for each delivery that never arrived: a server that died
// over one again and again would wait for minutes, and give it up after the fifth time.
func (x *gated) redeliver() {
	x.t.Helper()
	newest := map[string]githubtest.Delivery{}
	for _, d := range x.gh.Deliveries() { // oldest first
		if was, ok := newest[d.GUID]; !ok || was.StatusCode/100 != 2 {
			newest[d.GUID] = d
		}
	}
	for _, d := range newest {
		if d.StatusCode/100 == 2 {
			continue
		}
		if err := x.gh.Redeliver(d.ID); err != nil {
			x.t.Fatal(err)
		}
	}
}

// due reports whether there is something to do for a run, if only later: what GitHub did not
// take waits for its next try.
func (x *gated) due() bool {
	var n int
	return x.db.QueryRow("SELECT COUNT(*) FROM runs WHERE due > 0").Scan(&n) != nil || n > 0
}

func (x *gated) must(query string) {
	x.t.Helper()
	if _, err := x.db.Exec(query); err != nil {
		x.t.Fatal(err)
	}
}

// left is what a run leaves: on GitHub, and in its repository.
func (x *gated) left() (map[string]int, []string) {
	x.t.Helper()
	p := x.pull()
	return x.shape(p), x.filesAt(p, 1)
}

// checkEnd wants everything that was acknowledged, each event to have been told, and no
// backup that is none.
func (x *gated) checkEnd(runs int) {
	x.t.Helper()
	for _, p := range x.procs {
		p.kill()
	}
	run, parts, _ := x.runs(x.database)
	if run.State != pipeline.StateVerified || run.Published.Rev < run.Rev || len(parts) != runs-1 {
		x.t.Errorf("the run is %s with %d modules, shown up to %d of %d", run.State, len(parts), run.Published.Rev, run.Rev)
	}
	db, err := store.Open(context.Background(), x.database, slog.New(slog.DiscardHandler))
	if err != nil {
		x.t.Fatal(err)
	}
	defer db.Close()
	servertest.Kept(x.t, x.gh, db.Delivery)
	for _, bad := range x.subscriber.bad {
		x.t.Errorf("the subscriber: %s", bad)
	}
	rows, err := x.db.Query("SELECT run, seq, type FROM events")
	if err != nil {
		x.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n, seq int64
		var kind string
		if err := rows.Scan(&n, &seq, &kind); err != nil {
			x.t.Fatal(err)
		}
		if place := fmt.Sprintf("%d/%d", n, seq); x.subscriber.many["io.forge."+kind] > 0 && x.subscriber.ids[place] == "" {
			x.t.Errorf("the subscriber was not told of %s, %s", kind, place)
		}
	}
	backups, err := os.ReadDir(filepath.Join(x.dir, "state", "backups"))
	if !x.onPostgres() && (err != nil || len(backups) == 0) {
		x.t.Errorf("there are no backups: %v", err)
	}
	for _, b := range backups {
		if strings.Contains(b.Name(), ".new") { // somebody died over it
			continue
		}
		if err := store.Sound(context.Background(), filepath.Join(x.dir, "state", "backups", b.Name())); err != nil {
			x.t.Errorf("a backup is none: %v", err)
		}
	}
}

// onGreeter is a lab whose run takes no time: the greeter.
func onGreeter(t *testing.T) *labTest {
	return newLab(t, labOptions{plain: true, files: servertest.Greeter(), tape: servertest.GreeterTape, issue: "The greeting lacks its comma\nIt prints `hello Ann`."})
}

// Covers reliability 2: a server that is killed at each boundary between an effect and its
// record leaves what an undisturbed one leaves: the same files and texts, nothing twice,
// every acknowledged delivery known. FORGE_BOUNDARIES=all kills at each, after each event of
// the run; without it at a few that chance chooses.
func TestKillAtBoundaries(t *testing.T) {
	long(t)
	for _, c := range []struct {
		name, database string
		runs           int
		thin           uint32
		lab            func(*testing.T) *labTest
	}{
		{"sqlite", "", 1, 1, onGreeter},
		{"postgres", "postgres", 1, 2, onGreeter},
		{"modules on sqlite", "", 4, 4, ofThree},
		{"modules on postgres", "postgres", 4, 8, ofThree},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			database := func() string {
				if c.database == "" {
					return ""
				}
				return newDatabase(t)
			}
			calm := newGated(t, c.lab(t), database(), map[string]bool{}, func(string) bool { return false })
			calm.play(c.runs, patience)
			shape, files := calm.left()
			calm.checkEnd(c.runs)
			killed, deaths, choose := map[string]bool{}, 0, oneIn(t, c.thin)
			for n := 1; n == 1 || missing(calm.gate.met, killed) != nil && n <= 6 && !t.Failed(); n++ {
				if n > 1 { // only what did not come up yet
					missed := missing(calm.gate.met, killed)
					choose = func(boundary string) bool { return slices.Contains(missed, bare(boundary)) }
				}
				x := newGated(t, c.lab(t), database(), killed, choose)
				x.addFaults()
				deaths += x.play(c.runs, 6*patience)
				gotShape, gotFiles := x.left()
				if diff := cmp.Diff(shape, gotShape) + cmp.Diff(files, gotFiles); diff != "" {
					t.Errorf("after %d deaths (-undisturbed +killed):\n%s", deaths, diff)
				}
				x.checkEnd(c.runs)
			}
			t.Logf("killed %d times; an undisturbed run has %d boundaries", deaths, len(calm.gate.met))
			if missed := missing(calm.gate.met, killed); missed != nil || deaths == 0 {
				t.Errorf("%d deaths; never killed at: %q", deaths, missed)
			}
		})
	}
}

// ofThree is a lab with three modules, of which the third needs the first.
func ofThree(t *testing.T) *labTest {
	f := feature.Beside(3, 3)
	f.Modules[2].Needs = []string{"a"}
	return modular(t, f, "")
}

// oneIn chooses the boundaries to kill at: all, or one in so many, and thin times fewer.
func oneIn(t *testing.T, thin uint32) func(boundary string) bool {
	t.Helper()
	if allBoundaries() {
		return func(string) bool { return true }
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return func(boundary string) bool {
		h := fnv.New32a()
		fmt.Fprint(h, seed, boundary)
		return h.Sum32()%(8*thin) == 0
	}
}

func allBoundaries() bool { return os.Getenv("FORGE_BOUNDARIES") == "all" }

// bare is what a boundary is, wherever it is met.
func bare(boundary string) string {
	boundary, _, _ = strings.Cut(boundary, " after ")
	return boundary
}

// missing lists what an undisturbed run has and where nobody was killed, when that is to
// be everywhere.
func missing(met map[string]int, killed map[string]bool) (list []string) {
	if !allBoundaries() {
		return nil
	}
	there := map[string]bool{}
	for b := range killed {
		there[bare(b)] = true
	}
	for b := range met {
		if !there[bare(b)] {
			there[bare(b)] = true
			list = append(list, bare(b))
		}
	}
	return list
}
