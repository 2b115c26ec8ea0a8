package docker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// acceptAt calls serve with each connection to a unix socket, which is closed with the test.
func acceptAt(t *testing.T, path string, serve func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
}

// A socket that isn't an engine's ends in one error that names it, within a time limit.
func TestSocketsThatAreNoEngine(t *testing.T) {
	serve := func(answer string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			acceptAt(t, path, func(c net.Conn) {
				buf := make([]byte, 4096)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if _, err := fmt.Fprint(c, answer); err != nil {
						return
					}
				}
			})
		}
	}
	answer := func(body string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for _, tc := range []struct {
		name  string
		make  func(*testing.T, string)
		wants []string
	}{
		{"never answers", serve(""), []string{"no answer within 10s"}},
		{"another JSON", serve(answer(`{"hello": "world"}`)), []string{"doesn't speak Docker's API (its answers name no version)"}},
		{"a JSON list", serve(answer(`[1, 2]`)), []string{"doesn't speak Docker's API", "cannot unmarshal array"}},
		{"slow", serve("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), []string{"no answer within 10s"}},
		{"a queue that is full", func(t *testing.T, path string) {
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { syscall.Close(fd) })
			if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
				t.Fatal(err)
			}
			if c, err := net.Dial("unix", path); err == nil {
				t.Cleanup(func() { c.Close() })
			}
		}, []string{": it accepts no connections"}},
		{"another service", serve("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nwho?"), []string{"doesn't speak Docker's API (Error response from daemon: who?"}},
		{"no HTTP", serve("SSH-2.0-OpenSSH\r\n"), []string{"doesn't speak Docker's API", "malformed HTTP response"}},
		{"no JSON", serve(answer(`<html>`)), []string{"doesn't speak Docker's API", "invalid character '<'"}},
		{"a dangling link", func(t *testing.T, path string) {
			if err := os.Symlink("gone.sock", path); err != nil {
				t.Fatal(err)
			}
		}, []string{"gone.sock, which doesn't exist"}},
		{"links in a circle", func(t *testing.T, path string) {
			if err := os.Symlink(filepath.Base(path), path); err != nil {
				t.Fatal(err)
			}
		}, []string{": too many levels of symbolic links: name the engine's own socket"}},
		{"a file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, []string{": it is not a socket: name the engine's own socket"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "engine.sock")
			tc.make(t, path)
			e, err := New(t.Context(), Options{Host: "unix://" + path})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			began := time.Now()
			_, err = e.Info(t.Context())
			for _, want := range append(tc.wants, path) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want one with %q", err, want)
				}
			}
			if took := time.Since(began); took > answerTime+2*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// CONTAINER_HOST goes before the user's socket, and that before root's.
func TestPodmanHost(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "podman"), 0o700); err != nil {
		t.Fatal(err)
	}
	users := filepath.Join(dir, "podman", "podman.sock")
	if err := os.WriteFile(users, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name    string
		vars    map[string]string
		want    string
		refused bool
	}{
		{name: "named", vars: map[string]string{"CONTAINER_HOST": "unix:///x.sock", "XDG_RUNTIME_DIR": dir}, want: "unix:///x.sock"},
		{name: "the user's", vars: map[string]string{"XDG_RUNTIME_DIR": dir, "DOCKER_HOST": "unix:///y.sock"}, want: "unix://" + users},
		{name: "elsewhere", vars: map[string]string{"CONTAINER_HOST": "ssh://198.51.100.7/run/podman.sock"}, refused: true},
		{name: "a relative one", vars: map[string]string{"CONTAINER_HOST": "unix://x.sock"}, refused: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := podmanHost(func(name string) string { return tc.vars[name] })
			if got != tc.want || (err != nil) != tc.refused {
				t.Errorf("got %q, %v; want %q, refused %v", got, err, tc.want, tc.refused)
			}
		})
	}
}

// What podman needs to start, by who it is for.
func TestPodmanLacks(t *testing.T) {
	const (
		podman = "install it: `sudo apt-get install podman` or `sudo dnf install podman`"
		ids    = "install newuidmap and newgidmap: `sudo apt-get install uidmap` or `sudo dnf install shadow-utils`"
		users  = "unix:///run/user/1000/podman/podman.sock"
	)
	for _, tc := range []struct {
		name  string
		host  string
		uid   int
		lacks []string
		want  string
	}{
		{"nothing", users, 1000, nil, ""},
		{"podman", users, 1000, []string{"podman", "newuidmap"}, podman},
		{"podman, root", rootPodman, 0, []string{"podman"}, podman},
		{"newuidmap", users, 1000, []string{"newuidmap"}, ids},
		{"newgidmap", users, 1000, []string{"newgidmap"}, ids},
		{"newuidmap, root", rootPodman, 0, []string{"newuidmap"}, ""},
		{"newuidmap, root's socket", rootPodman, 1000, []string{"newuidmap"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := lacksFor(tc.host, tc.uid, func(program string) (string, error) {
				if slices.Contains(tc.lacks, program) {
					return "", exec.ErrNotFound
				}
				return "/usr/bin/" + program, nil
			})
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
