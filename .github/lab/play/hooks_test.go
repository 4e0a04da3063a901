package play

import (
	"bytes"
	"forge/cmd/forge/server/servertest"
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
func hookTo(t *testing.T, ts *servertest.Server, name, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, ts.Forge.URL+"/hooks/"+name, strings.NewReader(body))
	ts.Must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	ts.Must(err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
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
