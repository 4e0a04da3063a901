package sandbox

import (
	"errors"
	"fmt"
	"forge/pipeline/workspace"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// encodeRoutes writes routes as [Bridge] reads them.
func encodeRoutes(routes []workspace.Route) string {
	var out []string
	for _, r := range routes {
		out = append(out, fmt.Sprintf("%d=%s", r.Port, r.Socket))
	}
	return strings.Join(out, ",")
}

// Bridge is the main function of `forge bridge DIR PORT=SOCKET,… COMMAND…`, which is
// the first process of a sandbox that may reach a few sockets of the host: it listens
// on loopback, starts the command, and hands connections on until that ends. It
// returns the command's exit code.
func Bridge(args []string) int {
	code, err := bridge(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "forge bridge:", err)
		return 126
	}
	return code
}

func bridge(args []string) (int, error) {
	if len(args) < 3 {
		return 0, errors.New("needs a directory, routes and a command")
	}
	for route := range strings.SplitSeq(args[1], ",") {
		port, socket, _ := strings.Cut(route, "=")
		if _, err := strconv.ParseUint(port, 10, 16); err != nil || socket == "" || socket != filepath.Base(socket) {
			return 0, fmt.Errorf("route %q: must be PORT=SOCKET", route)
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			return 0, err
		}
		go handOn(l, filepath.Join(args[0], socket))
	}
	signal.Ignore(syscall.SIGPIPE)
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// handOn gives each connection one to the socket.
func handOn(l net.Listener, socket string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			s, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer s.Close()
			go func() {
				_, _ = io.Copy(s, c)
				_ = s.(*net.UnixConn).CloseWrite()
			}()
			_, _ = io.Copy(c, s)
		}()
	}
}
