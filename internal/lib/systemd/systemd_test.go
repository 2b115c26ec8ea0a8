//go:build linux

package systemd

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What systemd does is tried on a machine with one: scripts/vm-scope.

func TestDialNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
	// A socket that nobody serves any more.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "bus")})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := Dial(t.Context(), dir); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want ErrNone", err)
	}
}

// A peer that doesn't speak D-Bus, or says nothing, is an error in time.
func TestDialHostile(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silent": func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"closes": func(c net.Conn) {},
		"garbage": func(c net.Conn) {
			_, _ = c.Write([]byte(strings.Repeat("\x00\xff\r\n", 1<<10)))
			_, _ = io.Copy(io.Discard, c)
		},
		"authenticates, then is silent": func(c net.Conn) {
			line := make([]byte, 256)
			for {
				n, err := c.Read(line)
				if err != nil {
					return
				}
				if strings.Contains(string(line[:n]), "AUTH EXTERNAL ") {
					_, _ = c.Write([]byte("OK 0123456789abcdef0123456789abcdef\r\n"))
				} else if strings.Contains(string(line[:n]), "AUTH") {
					_, _ = c.Write([]byte("REJECTED EXTERNAL\r\n"))
				}
			}
		},
	} {
		for _, socket := range []string{"bus", "systemd/private"} {
			t.Run(name+" "+socket, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, socket)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				l, err := net.Listen("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				go func() {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						go func() { serve(c); c.Close() }()
					}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if m, err := Dial(ctx, dir); err == nil || errors.Is(err, ErrNone) {
					t.Errorf("got %v, %v", m, err)
				}
			})
		}
	}
}

func TestRuntimeDir(t *testing.T) {
	for value, want := range map[string]string{"/x": "/x", "relative": "/run/user/", "": "/run/user/"} {
		got := RuntimeDir(func(string) (string, bool) { return value, value != "" })
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
	}
}

func TestInScope(t *testing.T) {
	if in, err := inScope(os.Getpid(), "none.scope"); in || err != nil {
		t.Errorf("got %t, %v", in, err)
	}
	if _, err := inScope(1<<30, "x.scope"); err == nil {
		t.Error("a process that doesn't exist")
	}
}
