//go:build linux && amd64

package vm_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	containerspec "github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// B1 B2 B6 B13: what runs in the container of a worker's machine has no more than it needs;
// the worker's sessions, files and connections go through it, and an outlet may end.
func TestRun(t *testing.T) {
	r := newRoom(t)
	r.startOutlet()
	w := r.startWorker(mark(t, carriesGuest), config.Guest{}, nil)
	w.says("READY")
	t.Run("made", w.testMade)
	t.Run("confined", w.testConfined)
	if data, err := os.ReadFile(filepath.Join(w.rw, "made")); string(data) != "by the guest" || err != nil {
		t.Errorf("the guest's file: %q, %v", data, err)
	}
	for range 40 { // more than there may be at a time
		w.echoes()
	}
	places := func() {
		t.Helper()
		found := r.round("places")
		if got := found["198.51.100.7:80"]; !got.Same {
			t.Errorf("%+v", got)
		}
		if got := found["127.0.0.1:80"]; got.Error != "ECONNRESET" {
			t.Errorf("%+v", got)
		}
	}
	places()
	stop(r.outlet)
	w.echoes() // without an outlet
	r.newOutlet()
	places()
	if err := unix.Kill(w.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(0, 5*time.Second)
	if text := w.stderr.String(); text != "" {
		t.Errorf("it says %q", text)
	}
}

// echoes has a session that the guest echoes.
func (w *worker) echoes() {
	w.Helper()
	c := w.session()
	text := bytes.Repeat([]byte("0123456789"), 100_000)
	go func() { _, _ = c.Write(text); _ = c.CloseWrite() }()
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
		w.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	c.Close()
}

// testMade: the one report of what the container is is the monitor's.
func (w *worker) testMade(t *testing.T) {
	text, ok := strings.CutPrefix(w.stdout.String(), made.Prefix)
	first, rest, _ := strings.Cut(text, "\n")
	report, err := made.Parse(first)
	if !ok || err != nil || strings.Contains(rest, made.Prefix) {
		t.Fatalf("it says first: %.200q, %v", text, err)
	}
	if report.BootID != made.BootID() || report.Status["CapEff"] != "0000000000000000" || report.Status["Seccomp"] != "2" || report.Status["NoNewPrivs"] != "1" {
		t.Errorf("%+v", report)
	}
}

// testConfined looks at the processes of the container.
func (w *worker) testConfined(t *testing.T) {
	qemu, files := w.processes()
	threads := 0
	for name, c := range map[string]struct {
		pid, sockets int
		undumpable   bool
		allowed      string // of its descriptors
	}{
		// Carrier and outlet; a share each; all of these but the outlet.
		"monitor": {w.pid, 2, true, `^(pipe|socket|anon_inode:(\[eventpoll\]|\[eventfd\]|\[pidfd\]|inotify)|pidfd:\[\d+\]|/proc/\d+/mountinfo|/run/workshop|/dev/null)`},
		"files":   {files, 2, true, `^(pipe|socket|anon_inode:\[(eventpoll|eventfd)\]|/memfd:|/dev/null|/shares/(ro|rw)(/|$))`},
		"QEMU":    {qemu, 3, false, `^(pipe|socket|anon_inode:\[(eventpoll|eventfd|signalfd|io_uring|timerfd)\]|/memfd:(mem|initramfs|memory-backend-memfd)|/dev/null)`},
	} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
		if err != nil {
			t.Fatal(err)
		}
		status := map[string]string{}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			status[key] = strings.TrimSpace(value)
		}
		for _, key := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if status[key] != "0000000000000000" {
				t.Errorf("%s: %s %s", name, key, status[key])
			}
		}
		if status["NoNewPrivs"] != "1" || status["Uid"] != fmt.Sprintf("%[1]d\t%[1]d\t%[1]d\t%[1]d", workerUID) {
			t.Errorf("%s: %q", name, text)
		}
		var filters, n int
		_, _ = fmt.Sscan(status["Seccomp_filters"], &filters)
		if filters < 2 { // the container's, and its own
			t.Errorf("%s: %d filters", name, filters)
		}
		_, _ = fmt.Sscan(status["Threads"], &n)
		threads += n
		// A process that isn't dumpable belongs to root in /proc (proc_pid(5)).
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/mem", c.pid), &st); err != nil || c.undumpable != (st.Uid == 0) {
			t.Errorf("%s: its memory belongs to %d, %v", name, st.Uid, err)
		}
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", c.pid))
		if err != nil || len(links) == 0 {
			t.Fatal(links, err)
		}
		allowed := regexp.MustCompile(c.allowed)
		var all []string
		for _, link := range links {
			to, err := os.Readlink(link)
			if err == nil && !allowed.MatchString(to) {
				t.Errorf("%s has %s", name, to)
			}
			all = append(all, filepath.Base(link)+" "+to)
		}
		if n := strings.Count(strings.Join(all, "\n"), " socket:"); n != c.sockets {
			t.Errorf("%s has %d sockets, want %d", name, n, c.sockets)
		}
		t.Logf("%s: %d threads, %s, descriptors %q", name, n, status["VmRSS"], all)
	}
	t.Logf("%d threads", threads)
	if threads > 40 {
		t.Errorf("%d threads", threads)
	}
}

// B5: however busy a guest is, the processes of its machine have fewer threads than a
// worker's container may have processes.
func TestRunThreads(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.startOutlet()
	root := filepath.Join(t.TempDir(), "root")
	if err := os.WriteFile(root, make([]byte, diskSize), 0o644); err != nil {
		t.Fatal(err)
	}
	w := r.startWorker(mark(t, busyGuest), config.Guest{}, func(m *config.Machine, c *containerspec.Container) {
		m.Root = "/vm/root"
		c.Mounts = append(c.Mounts, containerspec.Mount{Type: containerspec.Bind, Source: root, Target: m.Root, ReadOnly: true})
	})
	w.says("READY")
	qemu, files := w.processes()
	most := map[string]int{}
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		all := 0
		for name, pid := range map[string]int{"monitor": w.pid, "QEMU": qemu, "file server": files} {
			i, ok := reaper.Look(strconv.Itoa(pid))
			if !ok {
				t.Fatalf("%s ended", name)
			}
			most[name] = max(most[name], i.Threads)
			all += i.Threads
		}
		most["all"] = max(most["all"], all)
	}
	t.Log(most)
	w.echoes() // once it is less busy
	if most["all"] > 56 {
		t.Errorf("%v threads", most)
	}
}

// Each process's end ends the worker, and so does a mount that the host takes away.
func TestRunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *worker) error
		code int
		why  string
	}{
		"QEMU":        {func(w *worker) error { pid, _ := w.processes(); return unix.Kill(pid, unix.SIGKILL) }, 1, "QEMU ended: signal: killed"},
		"file server": {func(w *worker) error { _, pid := w.processes(); return unix.Kill(pid, unix.SIGKILL) }, 1, "the file server ended: signal: killed"},
		"mount":       {func(w *worker) error { return os.Rename(w.rw, w.rw+"-moved") }, pid1.MountLost, "the mount at /shares/rw/0 is gone"},
		"stopped": {func(w *worker) error { // QEMU doesn't hear of the signal
			pid, _ := w.processes()
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				return err
			}
			return unix.Kill(w.pid, unix.SIGTERM)
		}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRoom(t).startWorker(mark(t, floodsGuest), config.Guest{}, nil)
			w.says("READY")
			if err := c.do(w); err != nil {
				t.Fatal(err)
			}
			w.ends(c.code, 5*time.Second)
			if text := w.stderr.String(); !strings.Contains(text, c.why) {
				t.Errorf("it says %q, want %q", text, c.why)
			}
		})
	}
}

// What a guest says is its own word, and bounded.
func TestRunOutput(t *testing.T) {
	t.Run(forgesGuest, func(t *testing.T) {
		t.Parallel()
		w := newRoom(t).startWorker(mark(t, forgesGuest), config.Guest{}, nil)
		w.says("READY")
		if n := strings.Count("\n"+w.stdout.String(), "\n"+made.Prefix); n != 1 {
			t.Errorf("%d reports: %q", n, w.stdout.lines())
		}
		if strings.Contains("\n"+w.stderr.String(), "\n"+made.Prefix) {
			t.Error("a report on stderr")
		}
	})
	t.Run(endsGuest, func(t *testing.T) {
		t.Parallel()
		w := newRoom(t).startWorker(mark(t, endsGuest), config.Guest{}, nil)
		w.ends(1, 2*time.Minute)
		if got := strings.Join(w.stdout.lines(), "|"); got != "NOTE of the guest|FAILED the guest says why" {
			t.Errorf("it says %q", got)
		}
		if text := w.stderr.String(); !strings.Contains(text, "the guest powered off") && !strings.Contains(text, "the guest ended its carrier") { // the last on a slow machine
			t.Errorf("it says %q on stderr", text)
		}
	})
}

// B60: a guest that prints without end loses lines, and nothing else: sessions and signals
// don't wait for who reads them, nor is memory used for them.
func TestRunFlood(t *testing.T) {
	t.Parallel()
	w := newRoom(t).startWorker(mark(t, floodsGuest), config.Guest{}, nil)
	w.says("READY")
	before := anonymous(t, w.pid)
	w.stdout.held.Lock()
	time.Sleep(5 * time.Second)
	w.echoes()
	if more := anonymous(t, w.pid) - before; more > 16<<20 {
		t.Errorf("%d MiB more", more>>20)
	}
	w.stdout.held.Unlock()
	testutil.Eventually(t, "lost lines are told", func() bool { return strings.Contains(w.stderr.String(), " lines of the worker are lost") })
	w.stdout.held.Lock()
	defer w.stdout.held.Unlock()
	if err := unix.Kill(w.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "it ends though nobody reads", func() bool { return unix.Kill(w.pid, 0) != nil })
}

// B60: whatever a guest does with sessions, others go on.
func TestRunSessions(t *testing.T) {
	t.Parallel()
	w := newRoom(t).startWorker(mark(t, answersGuest), config.Guest{}, nil)
	w.says("READY")
	silent := w.session()
	w.says("NOTE silent")
	go func() { _, _ = silent.Write(make([]byte, 1<<20)) }() // more than is kept
	for _, how := range []string{"reset", "ended"} {
		c := w.session()
		w.says("NOTE " + how)
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: %d bytes, %v", how, n, err)
		}
		c.Close()
	}
	endless := w.session() // that nobody reads
	w.says("NOTE endless")
	time.Sleep(time.Second)
	for range 20 {
		w.echoes()
	}
	silent.Close()
	endless.Close()
	if err := unix.Kill(w.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.ends(0, 5*time.Second)
}

// A guest whose kernel doesn't boot is ended, and what can be done is said.
func TestRunSilent(t *testing.T) {
	t.Parallel()
	w := newRoom(t).startWorker(mark(t, "silent"), config.Guest{}, nil)
	w.ends(1, 2*time.Minute)
	if got := strings.Join(w.stdout.lines(), "|"); !strings.HasPrefix(got, "FAILED the guest's kernel did not boot within 1m0s: `workshop vm check`") {
		t.Errorf("it says %q", got)
	}
}
