// Package process has the tests that start the whole program: it is killed at any moment,
// run by several servers, and measured.
package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"forge/cmd/forge/demo"
)

// top is the project's folder, from this one.
const top = "../../.."

// scratch is for what tests share; program is the one that they start.
var scratch, program string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if scratch, err = demo.TempDir(); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if program, err = build(scratch); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// build makes the program with testdata/commits.go in it.
func build(dir string) (string, error) {
	here, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	replace := map[string]string{filepath.Join(here, top, "cmd/forge/commits.go"): filepath.Join(here, "testdata/commits.go")}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list, out := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "forge")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-overlay", list, "-o", out, "./cmd/forge")
	cmd.Dir = top
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build forge: %w\n%s", err, text)
	}
	return out, nil
}

// forge runs a command to its end and returns what it printed.
func forge(ctx context.Context, env []string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &out, &out
	err := cmd.Run()
	return out.String(), err
}

// trace makes a run's trace id: 32 hex digits.
func trace() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// long leaves a test out that takes minutes, where the short ones alone are asked for.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes minutes: left out with -short")
	}
}
