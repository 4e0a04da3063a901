package main

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// The server that is built with this file says what it is about to commit to SQLite at the
// socket that FORGE_TEST_COMMITS names, and waits for an answer.
func init() {
	path := os.Getenv("FORGE_TEST_COMMITS")
	if path == "" {
		return
	}
	gate, err := net.Dial("unix", path)
	if err != nil {
		panic(err)
	}
	var one sync.Mutex
	answers := bufio.NewReader(gate)
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		tables := map[string]bool{} // a connection does one thing at a time
		hooks := conn.(sqlite.HookRegisterer)
		hooks.RegisterPreUpdateHook(func(d sqlite.SQLitePreUpdateData) { tables[d.TableName] = true })
		hooks.RegisterRollbackHook(func() { clear(tables) })
		hooks.RegisterCommitHook(func() int32 {
			if len(tables) == 0 {
				return 0
			}
			one.Lock()
			defer one.Unlock()
			fmt.Fprintln(gate, strings.Join(slices.Sorted(maps.Keys(tables)), " "))
			clear(tables)
			if _, err := answers.ReadByte(); err != nil {
				return 1 // it is over
			}
			return 0
		})
		return nil
	})
}
