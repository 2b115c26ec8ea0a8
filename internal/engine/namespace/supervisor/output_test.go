//go:build linux

package supervisor

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
)

func TestOutput(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		c := w.shell("one", "printf 'a\\nb\\n\\nc'; printf 'to stderr\\n' >&2; exit 0")
		w.run(c)
		_, err := w.Ready(t.Context(), "one")
		w.must(err)
		var got []string
		w.must(logfile.Read(t.Context(), w.dir+"/log/one", logfile.Options{Tail: logfile.All}, func(e logfile.Entry) error {
			got = append(got, e.Stream+":"+e.Text)
			if since := time.Since(e.Time); since < 0 || since > time.Minute {
				t.Error(e.Time)
			}
			return nil
		}))
		for _, want := range []string{"stdout:a\n", "stdout:b\n", "stdout:\n", "stdout:c", "stderr:to stderr\n"} {
			if !strings.Contains("|"+strings.Join(got, "|")+"|", "|"+want+"|") {
				t.Errorf("%q lacks %q", got, want)
			}
		}
		// A line without end: pieces as Docker's, and READY is found after it.
		w.run(w.shell("long", "head -c 40000 /dev/zero | tr '\\0' x; echo; echo READY; sleep 1000"))
		if r, err := w.Ready(t.Context(), "long"); err != nil || !r.Ready {
			t.Fatalf("%+v, %v", r, err)
		}
		var sizes []int
		w.must(logfile.Read(t.Context(), w.dir+"/log/long", logfile.Options{Tail: logfile.All}, func(e logfile.Entry) error {
			sizes = append(sizes, len(e.Text))
			return nil
		}))
		if len(sizes) != 4 || sizes[0] != 16384 || sizes[1] != 16384 || sizes[2] != 40001-2*16384 || sizes[3] != 6 {
			t.Error(sizes)
		}
	})
}

// TestSlowed: what is printed at once is read at its pace.
func TestSlowed(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		begin := time.Now()
		w.up(w.shell("loud", "yes '' | head -n 300000; echo READY; exec sleep 1000"))
		if took, want := time.Since(begin), 300000*70*time.Second/perSecond-burst-100*time.Millisecond; took < want {
			t.Errorf("it was read in %v, which was to be %v", took, want)
		}
	})
}

// TestLent: what a container leaves to another doesn't keep it from ending.
func TestLent(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		shared := w.dir + "/volumes/shared"
		w.must(os.MkdirAll(shared, 0o777))
		w.must(os.Chmod(shared, 0o777))
		program, _ := binaries()
		for _, name := range []string{"borrow", "lend"} {
			c := w.shell(name, "")
			c.Process.Args = []string{"/init", name, "/shared/socket"}
			c.Mounts = []spec.Mount{
				{Type: spec.Bind, Source: program, Target: "/init", ReadOnly: true},
				{Type: spec.Bind, Source: shared, Target: "/shared"},
			}
			c.Grace = 100 * time.Millisecond
			w.run(c)
			if name == "borrow" {
				_, err := w.Ready(t.Context(), name)
				w.must(err)
			}
		}
		if r, err := w.Ready(t.Context(), "lend"); err != nil || !r.Ended || r.ExitCode != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if got := w.log("lend"); !strings.Contains(got, "lent <nil>") || !strings.Contains(got, "borrowed") {
			t.Errorf("%q", got)
		}
		testutil.Eventually(w, "the other's writes to fail", func() bool { return strings.Contains(w.log("borrow"), "then broken pipe") })
		w.must(w.Remove(t.Context(), "lend"))
		if s := w.seen("borrow"); s.State != api.Running {
			t.Errorf("%+v", s.State)
		}
	})
}

// TestEndless: workers that print without end have bounded logs, and slow
// nobody else; the supervisor doesn't grow.
func TestEndless(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b"} {
			c := w.shell(name, "echo READY; exec yes a line that is neither long nor short")
			c.Log.MaxSize, c.Grace = 200<<10, 200*time.Millisecond // yes(1) as PID 1 ends by SIGKILL alone
			w.up(c)
		}
		noline := w.shell("c", "echo READY; exec cat /dev/zero >&2")
		noline.Log.MaxSize = 200 << 10
		w.up(noline)
		follow, cancel := context.WithCancel(t.Context())
		var lines atomic.Int64
		damaged, last := 0, 0
		ended := make(chan error)
		go func() {
			ended <- logfile.Read(follow, w.dir+"/log/a", logfile.Options{Follow: true, Tail: 1}, func(e logfile.Entry) error {
				lines.Add(1)
				damaged, last = damaged+last, 0
				if strings.TrimSuffix(e.Text, "\n") != "a line that is neither long nor short" && e.Text != "READY\n" {
					last = 1 // SIGKILL may end the program within its last line
				}
				return nil
			})
		}()
		var worst time.Duration
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			begin := testutil.Now()
			_, err := w.List(t.Context())
			w.must(err)
			worst = max(worst, testutil.Since(begin))
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("a request took %v at most; RSS %s; %d lines followed", worst, rss(w.pid), lines.Load())
		if worst > time.Second {
			t.Errorf("a request took %v", worst)
		}
		var size int64
		for _, name := range []string{"a", "b", "c"} {
			entries, err := os.ReadDir(w.dir + "/log/" + name)
			w.must(err)
			if len(entries) > 4 { // one may just be removed
				t.Errorf("%s: %d files", name, len(entries))
			}
			for _, e := range entries {
				if info, err := e.Info(); err == nil {
					size += info.Size()
				}
			}
		}
		if size > 3*4*210<<10 {
			t.Errorf("the logs have %d bytes", size)
		}
		begin := testutil.Now()
		w.must(w.Stop(t.Context(), "a"))
		if took := testutil.Since(begin); took > 2*time.Second {
			t.Errorf("stop took %v", took)
		}
		cancel()
		if err := <-ended; err != nil || lines.Load() < 100 || damaged > 0 {
			t.Errorf("%d lines, %d damaged, %v", lines.Load(), damaged, err)
		}
	})
}

// rss is what a process has in memory, as the kernel says it.
func rss(pid int) string {
	b, _ := os.ReadFile("/proc/" + itoa(pid) + "/status")
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(text)
		}
	}
	return "?"
}

func TestPace(t *testing.T) {
	var p pace
	at := time.Now()
	if got := p.spend(perSecond/4, at); got > time.Millisecond {
		t.Error("a burst waits", got)
	}
	if got := p.spend(perSecond, at); got < 900*time.Millisecond || got > 1100*time.Millisecond {
		t.Error("a second's worth waits", got)
	}
	if got := p.spend(1, at.Add(time.Hour)); got != 0 {
		t.Error(got)
	}
}

func TestHearing(t *testing.T) {
	for text, want := range map[string]struct {
		ready, failed bool
		reason        string
	}{
		"READY\n": {ready: true}, "READY": {}, "READYX\n": {}, "xREADY\nREADY\r\n": {ready: true}, " READY\n": {},
		"FAILED\n": {failed: true}, "FAILEDX\n": {}, "FAILED why so\nREADY\n": {failed: true, reason: "why so"}, "READY\nFAILED x\n": {ready: true},
		strings.Repeat("x", 100000) + "\nREADY\n":           {ready: true},
		strings.Repeat("x", maxWords-3) + "READY\nFAILED\n": {failed: true},
	} {
		for _, step := range []int{1, 3, 1 << 20} {
			h := newHearing()
			told := 0
			h.told = func() { told++ }
			for rest := []byte(text); len(rest) > 0; {
				n := min(step, len(rest))
				h.stdout(rest[:n])
				rest = rest[n:]
			}
			ready, failed, reason := h.verdict()
			if ready != want.ready || failed != want.failed || reason != want.reason || (told == 1) != ready || cap(h.line) > 2*maxWords {
				t.Errorf("%.40q by %d: %v, %v, %q, %d", text, step, ready, failed, reason, told)
			}
		}
	}
	h := newHearing()
	report := strings.Repeat("m", 100000)
	for rest := "MADE " + report + "\nREADY\n"; rest != ""; rest = rest[min(1000, len(rest)):] {
		h.stdout([]byte(rest[:min(1000, len(rest))]))
	}
	if _, got := h.noted(); got != report {
		t.Errorf("%d bytes of a report", len(got))
	}
	h = newHearing()
	for range 1000 {
		h.stderr([]byte(strings.Repeat("words ", 100)))
	}
	h.stderr([]byte("last\n"))
	if got := h.lastWords(); len(got) > maxWords || !strings.HasSuffix(got, "words last") {
		t.Errorf("%d: %q", len(got), got[len(got)-20:])
	}
}
