// Command bench measures the whole door of a server: deliveries of a pull request over
// many connections, answered, on disk, and taken in. Beside it, in the same run and
// in turn, stand what a team would use instead: palantir/go-githubapp with its
// asynchronous scheduler, probot where node and npm are installed, each with an empty
// handler and keeping nothing; and the bare check of the signature. Each server is a
// process of its own, and so is the client.
//
//	go run . [-rounds 5] [-connections 64] [-deliveries 6400] [-probot DIR]
//
// Probot is taken from DIR, in which `npm install probot` was run.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"forge/cmd/forge/demo"
	"forge/github/githubtest"
	"forge/pipeline/store"
)

const secret = "it is a secret of the benchmark"

func main() {
	if len(os.Args) == 2 && peers[os.Args[1]] != nil {
		exit(peers[os.Args[1]]())
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; medians are printed")
	flag.IntVar(&o.connections, "connections", 64, "connections at the same time")
	flag.IntVar(&o.deliveries, "deliveries", 6400, "deliveries in a round")
	flag.StringVar(&o.probot, "probot", "", "a folder with node_modules/probot")
	flag.Parse()
	exit(bench(context.Background(), o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

type options struct {
	rounds, connections, deliveries int
	probot                          string
}

// target is a server under measurement.
type target struct {
	name    string
	address string // host:port
	path    string
	secret  string
	db      *store.DB // where deliveries are kept; nil where they are not
	rates   []float64 // deliveries a second, by round
	p99     []float64 // milliseconds, by round
	pid     int       // of its process
	cpu     []float64 // microseconds of CPU that it takes for a delivery until it is answered, by round
	later   []float64 // and until all are taken in
	after   []float64 // milliseconds from the last answer until all was taken in, by round
}

func bench(ctx context.Context, o options) (err error) {
	dir, err := demo.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var procs []*exec.Cmd
	defer func() {
		for _, p := range procs {
			err = errors.Join(err, stop(p))
		}
	}()
	var targets []*target
	start := func(t *target, name string, args ...string) error {
		cmd := exec.Command(name, args...)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("start %s: %w", t.name, err)
		}
		procs, t.pid = append(procs, cmd), cmd.Process.Pid
		if t.address, err = firstAddress(out); err != nil {
			return fmt.Errorf("start %s: %w", t.name, err)
		}
		targets = append(targets, t)
		return nil
	}
	gh, err := githubtest.New(githubtest.Options{Dir: dir, Manifest: demo.Manifest()})
	if err != nil {
		return err
	}
	defer gh.Close()
	forge, err := startForge(ctx, dir, gh)
	if err != nil {
		return err
	}
	procs, targets = append(procs, forge.cmd), append(targets, forge.target)
	defer forge.target.db.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range []string{"go-githubapp", "hmac"} {
		if err := start(&target{name: name, path: "/webhook", secret: secret}, self, name); err != nil {
			return err
		}
	}
	if o.probot != "" {
		if err := start(&target{name: "probot", path: "/webhook", secret: secret}, "node", "probot.mjs", o.probot); err != nil {
			return err
		}
	}
	body := payload()
	for round := range o.rounds {
		for i := range targets {
			t := targets[(i+round)%len(targets)]
			if err := t.round(ctx, round, body, o); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	report(targets, o, len(body))
	return nil
}

// firstAddress waits for the line in which a server says where it listens.
func firstAddress(out io.Reader) (string, error) {
	in := bufio.NewScanner(out)
	for in.Scan() {
		if a, ok := strings.CutPrefix(in.Text(), "listening on "); ok {
			go io.Copy(io.Discard, out)
			return a, nil
		}
	}
	return "", errors.New("it ended before it listened")
}

func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case <-done: // how it ends after an interrupt is its own matter
	case <-time.After(15 * time.Second):
		return errors.Join(fmt.Errorf("%s did not end", cmd.Path), cmd.Process.Kill())
	}
	return nil
}

type forgeServer struct {
	cmd    *exec.Cmd
	target *target
}

// startForge builds the program and starts `forge serve` on the local GitHub.
func startForge(ctx context.Context, dir string, gh *githubtest.Server) (*forgeServer, error) {
	bin := filepath.Join(dir, "forge")
	build := exec.CommandContext(ctx, "go", "-C", "../..", "build", "-o", bin, "./cmd/forge") // by its own go.sum
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build forge: %w: %s", err, out)
	}
	env, err := demo.Environment(gh, dir, demo.Loop.Tape())
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close()
	env["FORGE_LISTEN"], env["FORGE_DASHBOARD"] = address, "off"
	cmd := exec.Command(bin, "serve")
	cmd.Env = append(os.Environ(), "HOME="+dir)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	log, err := os.Create(filepath.Join(dir, "forge.log"))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			db, err := store.Open(ctx, filepath.Join(env["FORGE_STATE_DIR"], "forge.db"), nil)
			if err != nil {
				return nil, err
			}
			t := &target{name: "forge serve", address: address, path: "/webhook", secret: gh.WebhookSecret, db: db, pid: cmd.Process.Pid}
			return &forgeServer{cmd, t}, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	return nil, fmt.Errorf("forge serve does not listen:\n%s", text)
}

// round sends one round of deliveries and waits until they are taken in.
func (t *target) round(ctx context.Context, round int, body []byte, o options) error {
	each := o.deliveries / o.connections
	signatures := t.sign(body, round, o.connections*each)
	var mu sync.Mutex
	var took []float64
	var failed error
	var wg sync.WaitGroup
	before, err := cpuTime(t.pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	for c := range o.connections {
		wg.Go(func() {
			list, err := t.connection(bytes.Clone(body), round, c*each, signatures[c*each:(c+1)*each])
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, list...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	elapsed := time.Since(begin)
	if failed != nil {
		return failed
	}
	answered, err := cpuTime(t.pid)
	if err != nil {
		return err
	}
	share := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(len(took)) }
	t.cpu = append(t.cpu, share(answered-before))
	slices.Sort(took)
	t.rates = append(t.rates, float64(len(took))/elapsed.Seconds())
	t.p99 = append(t.p99, took[len(took)*99/100])
	if t.db == nil {
		return nil
	}
	if err := t.takenIn(ctx, round, len(took)); err != nil {
		return err
	}
	all, err := cpuTime(t.pid)
	t.later = append(t.later, share(all-before))
	return err
}

// cpuTime is what a process has used of the processors so far, in steps of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(data), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the CPU time of process %d: %q", pid, data)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// takenIn wants everything that was answered to be in the database, and handled, within 2 s.
func (t *target) takenIn(ctx context.Context, round, want int) error {
	begin, these := time.Now(), fmt.Sprintf("%s-%d-%%", t.name[:1], round)
	for {
		var done int
		err := t.db.SQL().QueryRowContext(ctx, `SELECT COUNT(*) FROM deliveries WHERE state = 'done' AND guid LIKE $1`, these).Scan(&done)
		if err != nil {
			return err
		}
		after := time.Since(begin)
		if done == want {
			t.after = append(t.after, float64(after.Milliseconds()))
			return nil
		}
		if after > 2*time.Second {
			return fmt.Errorf("2 s after the load, %d of %d deliveries are taken in", done, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sign returns the signatures of a round's payloads. They are made before the clock
// runs: the client shares the processors with the server.
func (t *target) sign(body []byte, round, n int) []string {
	body = bytes.Clone(body)
	list := make([]string, n)
	for i := range list {
		number(body, round, i)
		mac := hmac.New(sha256.New, []byte(t.secret))
		mac.Write(body)
		list[i] = "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	return list
}

// connection sends deliveries one after the other, the first of which has the number
// from, and returns the answers' times in ms.
func (t *target) connection(body []byte, round, from int, signatures []string) ([]float64, error) {
	conn, err := net.Dial("tcp", t.address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answer := make([]byte, 4096)
	var took []float64
	for i, signature := range signatures {
		number(body, round, from+i)
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nUser-Agent: GitHub-Hookshot/bench\r\nX-GitHub-Event: pull_request\r\n"+
			"X-GitHub-Delivery: %s-%d-%d\r\nX-Hub-Signature-256: %s\r\nContent-Length: %d\r\n\r\n", t.path, t.address, t.name[:1], round, from+i, signature, len(body))
		begin := time.Now()
		msg := net.Buffers{[]byte(head), body}
		if _, err := msg.WriteTo(conn); err != nil {
			return took, err
		}
		m, err := conn.Read(answer)
		if err != nil || !bytes.HasPrefix(answer[:m], []byte("HTTP/1.1 20")) {
			return took, fmt.Errorf("answer %q, %w", answer[:m], err)
		}
		took = append(took, float64(time.Since(begin).Microseconds())/1000)
	}
	return took, nil
}

func report(targets []*target, o options, size int) {
	fmt.Printf("%d rounds of %d deliveries of %d bytes over %d connections, in turn; medians\n\n", o.rounds, o.deliveries, size, o.connections)
	base := median(targets[0].rates)
	fmt.Printf("| server | deliveries/s | p99 ms | forge's speed is | its CPU for each, µs |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range targets {
		fmt.Printf("| %s | %.0f | %.1f | %.2f × | %.0f |\n", t.name, median(t.rates), median(t.p99), base/median(t.rates), median(t.cpu))
	}
	fmt.Printf("\nAll that was answered is in the database and handled %.0f ms after the load (median; at most %.0f ms); "+
		"its CPU for each until then is %.0f µs.\n",
		median(targets[0].after), slices.Max(targets[0].after), median(targets[0].later))
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}
