package production

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write what is wanted anew")

var received = time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)

// Messages of Alertmanager, Grafana, Sentry and generic senders become observations.
// Covers P1.
func TestRead(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/payloads/*.txtar")
	if len(files) < 60 {
		t.Fatalf("%d payloads", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string][]byte{}
			for _, f := range a.Files {
				parts[f.Name] = f.Data
			}
			var h Hook
			if err := json.Unmarshal(parts["hook"], &h); err != nil {
				t.Fatal(err)
			}
			got := result(Read(h, Message{Resource: strings.TrimSpace(string(parts["resource"])), Body: parts["body"], Received: received}))
			if *update {
				var keep []txtar.File
				for _, f := range a.Files {
					if f.Name != "want" {
						keep = append(keep, f)
					}
				}
				a.Files = append(keep, txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(parts["want"]) {
				t.Errorf("read:\n%s\nwant:\n%s", got, parts["want"])
			}
		})
	}
}

func result(list []Observation, why string, err error) string {
	var b strings.Builder
	for _, o := range list {
		data, _ := json.MarshalIndent(o, "", " ")
		b.Write(append(data, '\n'))
	}
	if why != "" {
		b.WriteString("why: " + why + "\n")
	}
	if err != nil {
		b.WriteString("error: " + err.Error() + "\n")
	}
	return b.String()
}

// Whatever a message holds, nothing panics and no field is longer than it may be.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/payloads/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range a.Files {
			if part.Name == "body" {
				f.Add(part.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, kind := range []HookKind{HookAlertmanager, HookSentry, HookGeneric} {
			list, why, err := Read(Hook{Name: "h", Kind: kind, Repo: "acme/shop", Repos: []string{"acme/web"}}, Message{Body: body, Received: received})
			if len(list) == 0 && why == "" && err == nil {
				t.Errorf("%s: neither an observation nor a reason", kind)
			}
			for _, o := range list {
				checkCaps(t, o)
			}
		}
	})
}

func checkCaps(t *testing.T, o Observation) {
	t.Helper()
	if o.Repo != "acme/shop" && o.Repo != "acme/web" {
		t.Errorf("repository %q", o.Repo)
	}
	for field, s := range map[string]string{"environment": o.Environment, "service": o.Service, "title": o.Title, "release": o.Release} {
		if utf8.RuneCountInString(s) > maxTitle || !utf8.ValidString(s) || strings.ContainsAny(s, "\n\x00\u200b\u202e") {
			t.Errorf("%s is %q", field, s)
		}
	}
	if len(o.Text) > maxText || len(o.URL) > maxURL || utf8.RuneCountInString(o.Group) > maxGroup || o.At.IsZero() || o.Environment == "" || o.Title == "" {
		t.Errorf("%+v", o)
	}
	if o.Error != nil && len(o.Error.Stack) > maxFrames {
		t.Errorf("%d frames", len(o.Error.Stack))
	}
	if _, err := json.Marshal(o); err != nil {
		t.Error(err)
	}
	var told teller
	Tell(&told, o)
	if told.kind != o.Kind {
		t.Errorf("told as %s, is %s", told.kind, o.Kind)
	}
}

type teller struct{ kind Kind }

func (t *teller) OnAnomalyDetected(Observation, Anomaly)   { t.kind = KindAnomaly }
func (t *teller) OnProductionError(Observation, Error)     { t.kind = KindError }
func (t *teller) OnHealthCheckFailure(Observation, Health) { t.kind = KindHealth }

// Stacks are read innermost frame first, and say what is the program's own.
func TestFrames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, stack, want string }{
		{"go", "panic: x\n\ngoroutine 7 [running]:\nmain.total(...)\n\t/src/cart.go:12\nnet/http.(*conn).serve(0xc0)\n\t/usr/local/go/src/net/http/server.go:2009 +0x6\n", "main.total /src/cart.go:12 own, net/http.(*conn).serve /usr/local/go/src/net/http/server.go:2009"},
		{"go, recovered", "goroutine 8 [running]:\nruntime/debug.Stack()\n\truntime/debug/stack.go:26 +0x5e\nmain.buy.func1()\n\tshop/main.go:38 +0x5a\npanic({0x6a?, 0xc0?})\n\truntime/panic.go:783 +0x132\n" +
			"shop/price.Gift(...)\n\tshop/price/price.go:7\nnet/http.HandlerFunc.ServeHTTP(0x0)\n\tnet/http/server.go:2322 +0x29\ncreated by net/http.(*Server).Serve in goroutine 1\n\tnet/http/server.go:3493 +0x485\n",
			"shop/price.Gift shop/price/price.go:7 own, net/http.HandlerFunc.ServeHTTP net/http/server.go:2322, net/http. net/http/server.go:3493"},
		{"python", "Traceback:\n  File \"a.py\", line 1, in main\n    b()\n  File \"/usr/lib/python3/json.py\", line 9, in loads\n",
			"loads /usr/lib/python3/json.py:9, main a.py:1 own"},
		{"node", "Error: x\n    at async f (file:///srv/a.js:3:4)\n    at /srv/b.js:5:6\n", "f /srv/a.js:3 own,  /srv/b.js:5 own"},
		{"java", "x\n\tat com.acme.A.b(A.java:3)\n\tat java.util.C.d(C.java:4)\n", "com.acme.A.b A.java:3 own, java.util.C.d C.java:4"},
		{"ruby", "app/cart.rb:12:in `total': boom\n\tfrom /gems/rack/x.rb:3:in `call'\n", "total app/cart.rb:12 own, call /gems/rack/x.rb:3"},
		{"java, with causes", "com.acme.ServiceException: x\n\tat com.acme.A.a(A.java:1)\n\tat com.acme.B.b(B.java:2)\nCaused by: java.io.IOException: y\n\tat com.acme.C.c(C.java:3)\n\t... 2 more\n" +
			"Caused by: java.lang.NullPointerException\n\tat com.acme.Db.get(Db.java:9)\n\t... 3 more\n",
			"com.acme.Db.get Db.java:9 own, com.acme.C.c C.java:3 own, com.acme.A.a A.java:1 own, com.acme.B.b B.java:2 own"},
		{"java, with what was suppressed", "x\n\tat com.acme.A.a(A.java:1)\n\tSuppressed: y\n\t\tat com.acme.Z.close(Z.java:3)\n\t\tCaused by: z\n\t\t\tat com.acme.Y.close(Y.java:4)\nCaused by: w\n\tat com.acme.Db.get(Db.java:9)\n",
			"com.acme.Db.get Db.java:9 own, com.acme.A.a A.java:1 own"},
		{"node, with a cause", "Error: outer\n    at a (/srv/a.js:1:2)\n    at b (/srv/b.js:2:2) {\n  [cause]: Error: inner\n      at c (/srv/c.js:3:4)\n}\n", "c /srv/c.js:3 own, a /srv/a.js:1 own, b /srv/b.js:2 own"},
		{"node, nameless", "Error: x\n    at async /app/src/server.ts:30:11\n    at async file:///app/src/s.mjs:3:1\n    at async Promise.all (index 0)\n", " /app/src/server.ts:30 own,  /app/src/s.mjs:3 own"},
		{"none", "nothing here", ""},
	} {
		var got []string
		for _, f := range Frames(tt.stack) {
			s := f.Function + " " + f.File + ":" + itoa(f.Line)
			if f.InApp {
				s += " own"
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, s, tt.want)
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }
