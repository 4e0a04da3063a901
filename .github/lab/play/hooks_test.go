package play

import (
	"bytes"
	"fmt"
	"forge/cmd/forge/incidents"
	"forge/learn/production"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const promToken = "0123456789abcdef-prom"

// hookTo posts what a monitor says to a hook.
func hookTo(t *testing.T, ts *testServer, name, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.s.URL+"/hooks/"+name, strings.NewReader(body))
	ts.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	ts.must(err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// incident waits until an incident is as it should be.
func (ts *testServer) incident(id int64, cond func(*production.Incident) bool) *production.Incident {
	ts.t.Helper()
	var i *production.Incident
	eventually(ts.t, func() bool {
		row, err := ts.s.DB.Incident(ts.t.Context(), id)
		if err != nil {
			return false // it is not there yet
		}
		i, err = incidents.Folded(row)
		ts.must(err)
		return cond(i)
	}, func() string { return fmt.Sprintf("incident %d never came to that: %+v", id, i) })
	return i
}

// left returns the processes whose command line is the given one.
func left(t *testing.T, args ...string) (pids []int) {
	t.Helper()
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	want := []byte(strings.Join(args, "\x00") + "\x00")
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if line, _ := os.ReadFile(filepath.Join("/proc", d.Name(), "cmdline")); bytes.Equal(line, want) {
			pids = append(pids, pid)
		}
	}
	return pids
}
