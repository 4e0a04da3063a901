package incidents

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"forge/cmd/forge/settings"
	"forge/learn/production"
	"forge/pipeline/text"
)

const (
	queryTime   = 10 * time.Second
	queryBytes  = 1 << 20 // of an answer that are read
	queryPoints = 40      // of a window
	pointsLeast = 2       // that say anything
	// freshFor is how old the newest point may be, at least, for there to be a value now.
	freshFor = 2 * time.Minute
)

// answers are what was shown in one round of looks: watches that overlap ask once.
type answers map[string]any

// probe looks at a check.
func (a answers) probe(check string, look func() production.Probe) production.Probe {
	p, known := a["check/"+check].(production.Probe)
	if !known {
		p = look()
		a["check/"+check] = p
	}
	return p
}

// window asks for a query's window, whose ends count in seconds.
func (a answers) window(ctx context.Context, q settings.Query, from, to time.Time) (*production.Window, string) {
	type answer struct {
		w   *production.Window
		why string
	}
	key := fmt.Sprintf("query/%s/%d/%d", q.Name, from.Unix(), to.Unix())
	if got, known := a[key].(answer); known {
		return got.w, got.why
	}
	w, why := window(ctx, q, from, to)
	a[key] = answer{w, why}
	return w, why
}

// compare asks for the time since a deployment, and for as long before it.
func (a answers) compare(ctx context.Context, q settings.Query, b *production.Bake, at time.Time) (now, before *production.Window, why string) {
	from := at.Add(-q.Window)
	if from.Before(b.From) {
		from = b.From
	}
	now, why = a.window(ctx, q, from, at)
	if now != nil && at.Sub(now.Last) > max(freshFor, 2*stepOf(from, at)) {
		now, why = nil, "its last value is of "+now.Last.UTC().Format("15:04:05 MST")
	}
	if q.WorseBy == 0 {
		return now, nil, why
	}
	before, whyNot := a.window(ctx, q, b.From.Add(-q.Window), b.From)
	if why == "" {
		why = whyNot
	}
	return now, before, why
}

// window asks Prometheus what a query showed over a time, nil when that is not known,
// and why.
func window(ctx context.Context, q settings.Query, from, to time.Time) (*production.Window, string) {
	step := stepOf(from, to)
	seconds := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
	form := url.Values{"query": {q.Query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', 3, 64)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.Prometheus.URL+"/api/v1/query_range?"+form.Encode(), nil)
	if err != nil {
		return nil, "its address cannot be asked"
	}
	req.Header.Set("User-Agent", "forge")
	if q.Prometheus.Token.Set() {
		req.Header.Set("Authorization", "Bearer "+q.Prometheus.Token.Reveal())
	}
	client := &http.Client{Timeout: queryTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, q.Prometheus.Name + " gives no answer" // the error would name the whole query
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, queryBytes))
	if err != nil {
		return nil, q.Prometheus.Name + " broke its answer off"
	}
	return readWindow(resp.StatusCode, body, q.Prometheus.Name)
}

// stepOf is the time between the points of a window.
func stepOf(from, to time.Time) time.Duration { return max(to.Sub(from)/queryPoints, time.Second) }

// readWindow reads Prometheus's answer to a range query.
func readWindow(status int, body []byte, name string) (*production.Window, string) {
	var answer struct {
		Status string   `json:"status"`
		Error  string   `json:"error"`
		Warned []string `json:"warnings"`
		Data   struct {
			Type   string `json:"resultType"`
			Result []struct {
				Values [][2]any `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Sprintf("%s answers %d, and not as Prometheus does", name, status)
	}
	switch n := len(answer.Data.Result); {
	case answer.Status != "success":
		return nil, fmt.Sprintf("%s answers %d: %s", name, status, text.Clip(text.OneLine(answer.Error), 200))
	case answer.Data.Type != "matrix" || n > 1:
		return nil, fmt.Sprintf("the query has %d results: make it one, such as with sum(…)", n)
	case n == 0:
		return nil, "there is no data"
	}
	for _, words := range answer.Warned { // what concerns the query alone begins so
		if !strings.HasPrefix(words, "PromQL ") {
			return nil, fmt.Sprintf("%s answers in part: %s", name, text.Clip(text.OneLine(words), 200))
		}
	}
	w := &production.Window{Peak: math.Inf(-1)}
	for _, p := range answer.Data.Result[0].Values {
		s, _ := p[1].(string)
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsNaN(v) {
			continue
		}
		if math.IsInf(v, 0) {
			return nil, "a value of it is infinite"
		}
		if at, ok := p[0].(float64); ok {
			w.Last = time.UnixMilli(int64(at * 1000))
		}
		w.Mean += v
		w.Peak = max(w.Peak, v)
		w.Points++
	}
	if w.Points < pointsLeast {
		return nil, "there is too little data"
	}
	w.Mean /= float64(w.Points)
	return w, ""
}
