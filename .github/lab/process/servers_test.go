package process

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"forge/cmd/forge/server/servertest"
)

// cable is a connection to the database that can be cut without anybody noticing: what
// is sent goes nowhere, and nothing comes back.
type cable struct {
	mu  sync.Mutex
	cut chan struct{} // closed when it is whole; nil while it is
}

func (c *cable) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = make(chan struct{})
}

func (c *cable) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.cut)
	c.cut = nil
}

func (c *cable) pass() {
	c.mu.Lock()
	cut := c.cut
	c.mu.Unlock()
	if cut != nil {
		<-cut
	}
}

func (c *cable) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		c.pass()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// lay makes a cable to an address and returns where it begins.
func (c *cable) lay(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.pass()
			far, err := net.Dial("tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			go c.copy(far, near)
			go c.copy(near, far)
		}
	}()
	return l.Addr().String()
}

// Covers reliability 16: of two servers the one that works on a run stands still for a
// minute, or cannot reach the database while it can reach GitHub. The other takes over
// within 20 s, and the first one writes nothing any more, to neither.
func TestCutOff(t *testing.T) {
	long(t)
	for _, how := range []string{"stopped", "cut off"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			database := newDatabase(t)
			files := servertest.Greeter()
			files["test.sh"] = "sleep 5\n" + files["test.sh"]
			l := newLab(t, labOptions{plain: true, files: files, tape: servertest.GreeterTape, database: database, issue: "The greeting lacks its comma\nIt prints `hello Ann`."})
			u, err := url.Parse(database)
			if err != nil {
				t.Fatal(err)
			}
			var cables [2]cable
			var servers [2]*process
			for i := range servers {
				through := *u
				through.Host = cables[i].lay(t, u.Host)
				servers[i] = l.serve(fmt.Sprintf("FORGE_STATE_DIR=%s/state-%d", l.dir, i), "FORGE_DATABASE_URL="+through.String())
			}
			conn, err := pgx.Connect(t.Context(), database)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			ask := func(query string) (out string) {
				t.Helper()
				if err := conn.QueryRow(t.Context(), query).Scan(&out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			holder := func() int {
				owner := ask("SELECT COALESCE(MAX(lease_owner), '') FROM runs")
				for i, p := range servers {
					if strings.Contains(owner, fmt.Sprintf("process %d ", p.cmd.Process.Pid)) {
						return i
					}
				}
				return -1
			}
			until := func(what string, limit time.Duration, cond func() bool) time.Duration {
				t.Helper()
				begun := time.Now()
				for !cond() {
					if time.Since(begun) > limit {
						t.Fatalf("not %s after %s:\n%s", what, limit, l.log())
					}
					wait(50)
				}
				return time.Since(begun)
			}
			l.start()
			until("in its tests", 2*time.Minute, func() bool {
				return holder() >= 0 && ask("SELECT COALESCE(MAX(phase), '') FROM runs") == "test"
			})
			first := holder()
			l.gh.SetHook(servers[1-first].url + "/webhook")
			stopped := time.Now()
			if how == "stopped" {
				if err := servers[first].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			} else {
				cables[first].sever()
			}
			took := until("taken over", time.Minute, func() bool { return holder() == 1-first })
			t.Logf("taken over after %s", took.Round(10*time.Millisecond))
			if took > 20*time.Second {
				t.Errorf("it took %s until another worked on it; want at most 20 s", took)
			}
			l.verified(patience)
			state := func() string {
				n := 0
				for _, c := range l.gh.Calls() {
					if c.Mutation && c.Effect && !strings.HasPrefix(c.Operation, "apps/") { // a token is no change
						n++
					}
				}
				return fmt.Sprint(n, " writes to GitHub, events ", ask("SELECT COUNT(*)::text FROM events"))
			}
			until("still", time.Minute, func() bool {
				was := state()
				wait(3000)
				return state() == was
			})
			want := state()
			<-time.After(time.Until(stopped.Add(time.Minute)))
			if how == "stopped" {
				if err := servers[first].cmd.Process.Signal(syscall.SIGCONT); err != nil {
					t.Fatal(err)
				}
			} else {
				cables[first].restore()
			}
			wait(20_000) // for what it might still write
			if got := state(); got != want {
				t.Errorf("afterwards there are %s; want %s\n%s", got, want, servers[first].text())
			}
			// What it could not write down may end its work before its lease does.
			if text := servers[first].text(); !strings.Contains(text, "lease was lost") && !strings.Contains(text, "advance run 1: ") {
				t.Errorf("it does not say that the run is no longer its own:\n%s", text)
			}
		})
	}
}
