//go:build linux

package room

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/room/handover"
	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

var benchPorts = []firewall.PortRange{{First: 22, Last: 22}, {First: 5432, Last: 5432}, {First: 8000, Last: 8010}}

// freshNamespace runs f in a new network namespace, on a thread of its own.
func freshNamespace(b *testing.B, f func() error) {
	b.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			b.StartTimer()
			err = f()
			b.StopTimer()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkMakeRoom compares, in fresh namespaces: our whole process from its
// start to the sockets in the guard's hand; the same inside a process that
// runs already; and the peer, which loads the same rules and nothing else.
func BenchmarkMakeRoom(b *testing.B) {
	requireRoot(b)
	b.Run("process", func(b *testing.B) {
		b.StopTimer()
		for range b.N {
			dir, err := os.MkdirTemp("", "ws-room")
			if err != nil {
				b.Fatal(err)
			}
			freshNamespace(b, func() error { return benchProcess(b, dir, nil) })
			os.RemoveAll(dir)
		}
	})
	b.Run("process, AnyIP", func(b *testing.B) {
		b.StopTimer()
		for range b.N {
			dir, err := os.MkdirTemp("", "ws-room")
			if err != nil {
				b.Fatal(err)
			}
			freshNamespace(b, func() error {
				fds, err := benchWithout(b)
				if err != nil {
					return err
				}
				return benchProcess(b, dir, fds)
			})
			os.RemoveAll(dir)
		}
	})
	b.Run("in-process", func(b *testing.B) {
		b.StopTimer()
		for range b.N {
			freshNamespace(b, func() error {
				r, err := New(Options{Name: "room"})
				if err == nil {
					_, err = r.Redirect(benchPorts)
					b.StopTimer()
					r.Close()
				}
				return err
			})
		}
	})
	b.Run("in-process, AnyIP", func(b *testing.B) {
		b.StopTimer()
		for range b.N {
			freshNamespace(b, func() error {
				fds, err := benchWithout(b)
				if err != nil {
					return err
				}
				r, err := New(Options{Name: "room", AnyIP: true, Packets: fds})
				if err == nil {
					_, err = r.Redirect(benchPorts)
					b.StopTimer()
					r.Close()
				}
				return err
			})
		}
	})
	b.Run("iptables-restore", func(b *testing.B) {
		for _, p := range []string{"iptables-restore", "ip6tables-restore"} {
			_, err := exec.LookPath(p)
			testutil.Require(b, err == nil, p+" is not installed")
		}
		rules := firewall.NewRuleset(firewall.RulesetOptions{Ports: benchPorts})
		b.StopTimer()
		for range b.N {
			freshNamespace(b, func() error {
				for p, f := range map[string]firewall.Family{"iptables-restore": firewall.V4, "ip6tables-restore": firewall.V6} {
					cmd := exec.Command(p)
					cmd.Stdin = bytes.NewReader(rules.Text(f))
					if err := cmd.Run(); err != nil {
						return err
					}
				}
				return nil
			})
		}
	})
}

// benchWithout makes the thread's kernel one without netfilter, and the packet
// sockets of its namespace, off the clock. The filter costs each process some
// milliseconds that a kernel without netfilter doesn't.
func benchWithout(b *testing.B) ([]int, error) {
	b.StopTimer()
	defer b.StartTimer()
	fds, err := kernelsupport.PacketSockets()
	if err == nil {
		err = testutil.WithoutNetfilter() // ends with the thread
	}
	return fds, err
}

// benchProcess starts a room, waits for READY and takes its sockets. With
// WORKSHOP_INIT set it is that binary; else the test binary, which is larger.
func benchProcess(b *testing.B, dir string, packets []int) error {
	cmd := self(b, "room", "--name", "room", "--dir", dir, "--guard-uid", "0")
	if path := os.Getenv("WORKSHOP_INIT"); path != "" {
		cmd.Path, cmd.Args[0] = path, path
		cmd.Args = append([]string{path, "room"}, cmd.Args[1:]...)
	}
	if packets != nil {
		cmd.Args = append(cmd.Args, "--fallback", "anyip", "--packet-fds", "3,4,5,6")
		for _, fd := range packets {
			f := os.NewFile(uintptr(fd), "packet")
			defer f.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		b.StopTimer()
		cmd.Process.Kill()
		cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		return err
	}
	c, err := handover.Dial(context.Background(), filepath.Join(dir, "room.sock"))
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Sockets()
	s.Close()
	if err != nil {
		return err
	}
	_, err = c.Redirect(benchPorts)
	return err
}
