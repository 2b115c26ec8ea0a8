//go:build linux && amd64

package vm_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// B1 B2 B3 B4 B5 B12: a machine's worker is what it would be on the host's kernel: its files,
// its user, its limits; and its sessions are the toolbox's.
func TestGuestWorker(t *testing.T) {
	w := bootGuest(t, guestSpec(t), nil)
	early, err := w.mux.Open(carrier.Head{Kind: carrier.Session}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := early.Read(make([]byte, 1)); !errors.Is(err, mux.ErrReset) {
		t.Errorf("a session before there is a worker: %v", err)
	}
	w.wait("1:READY")
	t.Logf("ready after %v", time.Since(w.began).Round(time.Millisecond))
	w.mu.Lock()
	for _, line := range w.lines {
		if strings.Contains(line, made.Prefix) {
			t.Errorf("it says %.60q", line)
		}
	}
	w.mu.Unlock()

	for _, c := range []struct{ name, line, want string }{
		{"user", "id", "uid=65532 gid=65532\n"},
		{"workdir", "pwd; hostname; cat /etc/hostname", "/work\nin-a-machine\nin-a-machine\n"},
		{"environment", "echo $GREETING $PATH", "hello /bin\n"},
		{"PID 1", "grep -c . /proc/1/cmdline 2>/dev/null; ls /proc/1/fd 2>&1 | grep -c denied", "1\n1\n"},
		{"rw", "echo text >new && cat new", "text\n"},
		{"ro", "cat /docs/text; touch /docs/new; echo x >/docs/text", "read me\n"},
		{"ro in rw", "touch settings/new", ""},
		{"root", "touch /bin/new /new /etc/new", ""},
		{"door", "touch /run/workshop/new", ""},
		{"tmp", "echo a >/tmp/a && cat /tmp/a", "a\n"},
		{"outside", "ls / | grep -e shares -e guest.json -e init -e modules", ""},
		{"confined", "grep -e NoNewPrivs -e Seccomp: -e CapEff -e CapBnd /proc/self/status",
			"CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"},
		{"mounts", "mount -t tmpfs x /tmp", ""},
		{"limits", "cat /sys/fs/cgroup/pids.max; ls /sys/fs/cgroup | grep -c memory.max", "64\n1\n"},
		{"its own limits", "ulimit -n; grep processes /proc/self/limits", "1024\nMax processes             unlimited            unlimited            processes \n"},
		{"exit code", "exit 7", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := w.sh(c.line)
			if got.out != c.want {
				t.Errorf("got %q, want %q (%d, %q)", got.out, c.want, got.code, got.errs)
			}
			want := map[string]string{"ro": "Read-only file system", "ro in rw": "Read-only file system", "root": "Read-only file system",
				"door": "Read-only file system", "mounts": "mount: "}[c.name]
			if !strings.Contains(got.errs, want) || want == "" && got.errs != "" {
				t.Errorf("it says %q, want %q", got.errs, want)
			}
			if c.name == "exit code" && got.code != 7 {
				t.Errorf("exit code %d", got.code)
			}
		})
	}
	if data, err := os.ReadFile(w.rw + "/new"); string(data) != "text\n" || err != nil {
		t.Errorf("outside it is %q, %v", data, err)
	}
	t.Run("chosen for OOM", func(t *testing.T) {
		for range 8 { // it is written while the program begins
			if got := w.sh("sleep 0.5; cat /proc/self/oom_score_adj"); got.out != "500\n" {
				t.Errorf("got %+v", got)
			}
		}
	})
	t.Run("processes", func(t *testing.T) {
		got := w.sh("for i in $(busybox seq 200); do sleep 1000 & done; echo started")
		if !strings.Contains(got.errs, "fork: Resource temporarily unavailable") {
			t.Errorf("got %+v", got)
		}
		w.alive()
	})
	t.Run("memory", func(t *testing.T) {
		w.soon("busybox", "killall", "sleep")
		got := w.sh("exec busybox tail /dev/zero")
		if want := "OOM-killed, probably: the worker's memory was used up"; got.code != 137 || got.note != want {
			t.Errorf("got %+v, want %q", got, want)
		}
		w.alive()
	})
	t.Run("sessions", func(t *testing.T) {
		var all sync.WaitGroup
		ok := make(chan bool, 1000)
		for range 1000 {
			all.Go(func() {
				s, err := w.mux.Open(carrier.Head{Kind: carrier.Session}.Encode())
				if err != nil {
					return
				}
				defer s.Close()
				s.Write([]byte("x"))
				ok <- true
			})
		}
		all.Wait()
		if len(ok) < 900 {
			t.Errorf("%d were opened", len(ok))
		}
		w.alive()
	})
	t.Run("end", func(t *testing.T) {
		w.sh("(trap 'echo bye >/work/bye; exit' TERM; while :; do sleep 1; done) >/dev/null 2>&1 & echo")
		w.mux.End(nil)
		select {
		case <-w.ended:
		case <-time.After(10 * time.Second):
			t.Error("it goes on")
		}
		if data, err := os.ReadFile(w.rw + "/bye"); string(data) != "bye\n" || err != nil {
			t.Errorf("a process at the end wrote %q, %v", data, err)
		}
	})
}

// alive expects that there is another session soon, which is as the first.
func (w *guestWorker) alive() {
	w.t.Helper()
	began := time.Now()
	if r := w.soon("echo", "here"); r.out != "here\n" {
		w.t.Errorf("a session: %+v", r)
	}
	w.t.Logf("a session after %v", time.Since(began).Round(time.Millisecond))
}

// soon runs a command as soon as there is a process for it.
func (w *guestWorker) soon(argv ...string) ranIn {
	w.t.Helper()
	began := time.Now()
	for {
		r, err := w.exec(client.Command{Argv: argv})
		if err == nil && r.code == 0 {
			return r
		}
		if time.Since(began) > 30*time.Second {
			w.t.Errorf("%q: no session any more: %+v, %v", argv, r, err)
			return r
		}
	}
}

// A machine without a worker that can be started says why, and powers off.
func TestGuestWorkerFails(t *testing.T) {
	for name, c := range map[string]struct {
		guest  func(*config.Guest)
		change func(*monitor.Spec)
		want   []string
	}{
		"garbage":    {nil, func(s *monitor.Spec) { s.Initramfs = garbled(t, s.Initramfs) }, []string{"1:FAILED /guest.json: invalid character 'g'"}},
		"no program": {func(g *config.Guest) { g.Container.Process.Args[0] = "/opt/none" }, nil, []string{"1:FAILED container test-worker-1: execute /opt/none: no such file or directory"}},
		"no share":   {func(g *config.Guest) { g.Shares = append(g.Shares, "other") }, nil, []string{"1:FAILED mount /shares/other: "}},
		"the gate": {func(g *config.Guest) {
			g.Container.Process.Args = append(g.Container.Process.Args, "--write", "/docs")
		}, nil, []string{"1:FAILED /docs ", "2:machine powered off: the worker's PID 1 exited with 1"}},
		"memory": {nil, func(s *monitor.Spec) { s.MemoryMiB = 104 }, []string{"1:FAILED the machine has "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guest := guestSpec(t)
			if c.guest != nil {
				c.guest(guest)
			}
			w := bootGuest(t, guest, c.change)
			for _, want := range c.want {
				w.wait(want)
			}
			select {
			case <-w.ended:
			case <-time.After(10 * time.Second):
				t.Error("it goes on")
			}
			w.mu.Lock()
			t.Logf("%q", w.lines)
			w.mu.Unlock()
		})
	}
}

// garbled are the first files of a guest, with another configuration after them.
func garbled(t *testing.T, f *os.File) *os.File {
	all, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, text string) { // a header of newc has 13 numbers of 8 digits
		header := "070701"
		for _, n := range []int{0, 0o100644, 0, 0, 1, 0, len(text), 0, 0, 0, 0, len(name) + 1, 0} {
			header += fmt.Sprintf("%08x", n)
		}
		for _, part := range []string{header + name + "\x00", text} {
			all = append(all, part...)
			all = append(all, make([]byte, -len(all)&3)...)
		}
	}
	add("guest.json", "garbage")
	add("TRAILER!!!", "")
	path := filepath.Join(t.TempDir(), "initramfs")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	garbled, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { garbled.Close() })
	return garbled
}
