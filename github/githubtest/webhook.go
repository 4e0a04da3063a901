package githubtest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Delivery is one attempt to tell the App of an event.
type Delivery struct {
	ID           int64
	GUID         string // the same for a redelivery
	Event        string
	Action       string
	Installation int64
	Repository   int64
	At           time.Time
	Duration     time.Duration
	Redelivery   bool
	Status       string // "OK", or what went wrong
	StatusCode   int    // 0 when there was no answer
	Payload      []byte // the JSON that was signed

	headers  map[string]string
	response string
}

// DeliveryFaults say how deliveries go astray; each is a probability from 0 to 1.
// A dropped delivery is in the log as failed and can be redelivered.
type DeliveryFaults struct {
	Drop, Duplicate, Shuffle float64
}

// deliverer sends webhooks, one after the other, in the order of their events.
type deliverer struct {
	s      *Server
	client *http.Client
	wake   chan struct{}

	mu     sync.Mutex
	url    string
	queue  []Delivery
	busy   bool
	log    []Delivery
	faults DeliveryFaults
	random *mrand.Rand
	lastID int64
}

const hookTimeout = 10 * time.Second // as GitHub's

func newDeliverer(s *Server) *deliverer {
	return &deliverer{
		s: s, wake: make(chan struct{}, 1), client: &http.Client{Timeout: hookTimeout, Transport: &http.Transport{MaxIdleConns: 4}},
		random: mrand.New(mrand.NewPCG(s.opts.Seed, 0x686f6f6b)), lastID: 900_000_000,
	}
}

func (d *deliverer) setURL(url string) { d.mu.Lock(); d.url = url; d.mu.Unlock() }

func (d *deliverer) getURL() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.url
}

func (d *deliverer) list() []Delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.log)
}

func (d *deliverer) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue) == 0 && !d.busy
}

// SetDeliveryFaults puts faults of the deliveries in force from now on.
func (s *Server) SetDeliveryFaults(f DeliveryFaults) {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	s.hooks.faults = f
}

// Deliveries returns every attempt so far, in order.
func (s *Server) Deliveries() []Delivery { return s.hooks.list() }

// Redeliver sends a delivery again, as the button in the App's settings does.
func (s *Server) Redeliver(id int64) error {
	if !s.hooks.redeliver(id) {
		return fmt.Errorf("redeliver %d: there is no such delivery", id)
	}
	return nil
}

func (d *deliverer) redeliver(id int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, old := range d.log {
		if old.ID == id {
			d.lastID++
			again := old
			again.ID, again.Redelivery, again.Status, again.StatusCode = d.lastID, true, "", 0
			d.queue = append(d.queue, again)
			d.signal()
			return true
		}
	}
	return false
}

func (d *deliverer) signal() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// add puts an event in the queue, as the faults have it.
func (d *deliverer) add(v Delivery) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.url == "" {
		return
	}
	v.GUID = guid(d.random)
	copies := 1
	if d.chance(d.faults.Duplicate) {
		copies = 2
	}
	for range copies {
		d.lastID++
		v.ID = d.lastID
		at := len(d.queue)
		if at > 0 && d.chance(d.faults.Shuffle) {
			at = d.random.IntN(at)
		}
		one := v
		if d.chance(d.faults.Drop) {
			one.Status = "failed to connect to host"
		}
		d.queue = slices.Insert(d.queue, at, one)
	}
	d.signal()
}

func (d *deliverer) chance(p float64) bool { return p > 0 && d.random.Float64() < p }

func guid(r *mrand.Rand) string {
	h := fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (d *deliverer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.wake:
		}
		for d.next(ctx) {
		}
	}
}

// next sends the first of the queue. It says whether there was one.
func (d *deliverer) next(ctx context.Context) bool {
	d.mu.Lock()
	if len(d.queue) == 0 || ctx.Err() != nil {
		d.mu.Unlock()
		return false
	}
	v, url := d.queue[0], d.url
	d.queue, d.busy = d.queue[1:], true
	d.mu.Unlock()

	d.sign(&v)
	v.At = d.s.opts.Clock().UTC()
	if v.Status == "" { // else it was dropped
		d.send(ctx, url, &v)
	}
	d.mu.Lock()
	d.log, d.busy = append(d.log, v), false
	d.mu.Unlock()
	d.s.mu.Lock()
	d.s.touch()
	d.s.mu.Unlock()
	return true
}

func (d *deliverer) sign(v *Delivery) {
	mac := func(sum []byte) string { return hex.EncodeToString(sum) }
	h256, h1 := hmac.New(sha256.New, []byte(d.s.WebhookSecret)), hmac.New(sha1.New, []byte(d.s.WebhookSecret))
	h256.Write(v.Payload)
	h1.Write(v.Payload)
	v.headers = map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/githubtest", "Accept": "*/*",
		"X-GitHub-Event": v.Event, "X-GitHub-Delivery": v.GUID, "X-GitHub-Hook-ID": "77001",
		"X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(d.s.AppID, 10), "X-GitHub-Hook-Installation-Target-Type": "integration",
		"X-Hub-Signature": "sha1=" + mac(h1.Sum(nil)), "X-Hub-Signature-256": "sha256=" + mac(h256.Sum(nil)),
	}
}

func (d *deliverer) send(ctx context.Context, url string, v *Delivery) {
	began := time.Now() // a real duration, whatever the clock says
	defer func() { v.Duration = time.Since(began) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(v.Payload))
	if err != nil {
		v.Status = "invalid url"
		return
	}
	if strings.HasSuffix(req.URL.Hostname(), ".invalid") { // no such name exists (RFC 6761)
		v.Status = "failed to connect to host"
		return
	}
	for k, text := range v.headers {
		req.Header.Set(k, text)
	}
	resp, err := d.client.Do(req)
	if err != nil {
		v.Status = "failed to connect to host"
		if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
			v.Status = "timed out"
		}
		return
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	v.response, v.StatusCode, v.Status = string(body), resp.StatusCode, "OK"
	if resp.StatusCode >= 300 {
		v.Status = "Invalid HTTP Response: " + strconv.Itoa(resp.StatusCode)
	}
}

// emit tells the App of an event in a repository, if it is installed there and
// listens. The payload is read now; later changes do not touch it. s.mu is held.
func (s *Server) emit(r *repository, event, action string, by *account, payload obj) {
	s.touch()
	in := s.installationFor(r)
	if in == nil || !in.suspended.IsZero() || !s.table.hears(s.app.Permissions, s.app.Events, event, action) {
		return
	}
	payload["repository"] = s.shapeRepo(r)
	if event == "push" {
		repo := payload["repository"].(obj)
		repo["created_at"], repo["pushed_at"], repo["stargazers"] = r.created.Unix(), r.pushed.Unix(), 0
		repo["master_branch"] = r.defaultBranch
	}
	payload["installation"] = obj{"id": in.id, "node_id": in.node}
	s.queueEvent(event, action, by, payload, in.id, r.id)
}

func (s *Server) queueEvent(event, action string, by *account, payload obj, inst, repo int64) {
	if by != nil {
		payload["sender"] = s.shapeUser(by)
	}
	if action != "" {
		payload["action"] = action
	}
	text, err := json.Marshal(payload)
	if err != nil {
		s.log.Error("encode a webhook", "event", event, "error", err)
		return
	}
	if k := s.opts.Contract; k != nil {
		k.Webhook(event, action, text)
	}
	s.hooks.add(Delivery{Event: event, Action: action, Installation: inst, Repository: repo, Payload: text})
}

func (s *Server) emitPing() {
	s.queueEvent("ping", "", nil, obj{
		"zen": "Keep it logically awesome.", "hook_id": 77001,
		"hook": obj{
			"type": "App", "id": 77001, "name": "web", "active": true, "events": s.app.Events, "app_id": s.AppID, "created_at": stamp(s.created),
			"updated_at": stamp(s.now()), "deliveries_url": s.APIURL() + "app/hook/deliveries",
			"config": obj{"url": s.hooks.getURL(), "content_type": "json", "insecure_ssl": "0", "secret": "********"},
		},
	}, 0, 0)
}

func shortRepos(list []*repository) []any {
	out := []any{}
	for _, r := range list {
		out = append(out, obj{"id": r.id, "node_id": r.node, "name": r.name, "full_name": r.fullName(), "private": false})
	}
	return out
}

func (s *Server) emitInstallation(in *installation, action string, by *account) {
	s.queueEvent("installation", action, by, obj{"installation": s.shapeInstallation(in), "repositories": shortRepos(in.list()), "requester": nil}, in.id, 0)
}

func (s *Server) emitInstallationRepos(in *installation, action string, list []*repository) {
	p := obj{
		"installation": s.shapeInstallation(in), "repository_selection": "selected", "requester": nil,
		"repositories_added": []any{}, "repositories_removed": []any{},
	}
	p["repositories_"+action] = shortRepos(list)
	s.queueEvent("installation_repositories", action, in.account, p, in.id, 0)
}

// emitPush tells of a moved ref: push, and create or delete.
func (s *Server) emitPush(r *repository, ref, old, sha string, by *account) {
	commits, head := []any{}, any(nil)
	if sha != zeroSHA {
		var others []string
		if old != zeroSHA {
			others = append(others, old)
		} else {
			for name, other := range r.refs {
				if name != ref {
					others = append(others, other)
				}
			}
		}
		list, err := s.commits(r, sha, others...)
		if err != nil {
			s.log.Error("list pushed commits", "repo", r.fullName(), "error", err)
		}
		list = list[:min(len(list), 2048)]
		slices.Reverse(list)
		for _, c := range list {
			commits = append(commits, s.shapeHookCommit(r, c))
		}
		if last, err := s.commitAt(r, sha); err == nil {
			head = s.shapeHookCommit(r, last)
		}
	}
	forced := old != zeroSHA && sha != zeroSHA && !s.isAncestor(r, old, sha)
	s.emit(r, "push", "", by, obj{
		"ref": ref, "before": old, "after": sha, "created": old == zeroSHA, "deleted": sha == zeroSHA, "forced": forced, "base_ref": nil,
		"compare": fmt.Sprintf("%s/compare/%.12s...%.12s", s.html(r), old, sha), "commits": commits, "head_commit": head,
		"pusher": obj{"name": by.login, "email": by.mail()},
	})
	kind, short := "branch", strings.TrimPrefix(ref, "refs/heads/")
	if strings.HasPrefix(ref, "refs/tags/") {
		kind, short = "tag", strings.TrimPrefix(ref, "refs/tags/")
	}
	if old == zeroSHA {
		s.emit(r, "create", "", by, obj{"ref": short, "ref_type": kind, "master_branch": r.defaultBranch, "description": nil, "pusher_type": "user"})
	} else if sha == zeroSHA {
		s.emit(r, "delete", "", by, obj{"ref": short, "ref_type": kind, "pusher_type": "user"})
	}
}
