//go:build linux

package supervisor

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

func TestLife(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		h, err := w.Hello(t.Context())
		w.must(err)
		if h.PID != 1 || h.Version != digest {
			t.Errorf("%+v", h)
		}
		w.must(w.Create(t.Context(), w.shell("one", sleeper)))
		if s := w.seen("one"); s.State != api.Created || s.Created.IsZero() || !s.Started.IsZero() {
			t.Errorf("created: %+v", s)
		}
		if _, err := w.Ready(t.Context(), "one"); code(err) != api.CodeNotRunning {
			t.Error(err)
		}
		if err := w.Create(t.Context(), w.shell("one", sleeper)); code(err) != api.CodeExists {
			t.Error(err)
		}
		w.must(w.Start(t.Context(), "one"))
		r, err := w.Ready(t.Context(), "one")
		if err != nil || !r.Ready || r.Ended {
			t.Fatalf("%+v, %v", r, err)
		}
		if s := w.seen("one"); s.State != api.Running || !s.Ready || s.Started.IsZero() {
			t.Errorf("running: %+v", s)
		}
		pid, pidfd, err := w.Pid(t.Context(), "one")
		w.must(err)
		defer pidfd.Close()
		comm, _ := os.ReadFile("/proc/" + itoa(pid) + "/comm")
		if string(comm) != "sh\n" {
			t.Errorf("process %d is %q", pid, comm)
		}
		w.must(w.Start(t.Context(), "one")) // it runs
		begin := testutil.Now()
		w.must(w.Stop(t.Context(), "one"))
		if !over(pidfd, 0) || testutil.Since(begin) > 2*time.Second {
			t.Errorf("after stop it runs, or it took %v", testutil.Since(begin))
		}
		if _, err := client.Number(pidfd); !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		if s := w.seen("one"); s.State != api.Exited || s.ExitCode != 0 || s.Ready || s.Finished.Before(s.Started) {
			t.Errorf("stopped: %+v", s)
		}
		if r, err := w.Ready(t.Context(), "one"); err != nil || r.Ready || !r.Ended {
			t.Errorf("%+v, %v", r, err)
		}
		w.must(w.Start(t.Context(), "one"))
		w.must(w.Signal(t.Context(), "one", "SIGKILL"))
		testutil.Eventually(w, "its end", func() bool { return w.seen("one").State == api.Exited })
		if s := w.seen("one"); s.ExitCode != 137 || s.OOMKilled {
			t.Errorf("killed: %+v", s)
		}
		if err := w.Signal(t.Context(), "one", "SIGTERM"); code(err) != api.CodeNotRunning {
			t.Error(err)
		}
		if _, _, err := w.Pid(t.Context(), "one"); code(err) != api.CodeNotRunning {
			t.Error(err)
		}
		w.must(w.Remove(t.Context(), "one"))
		if err := w.Start(t.Context(), "one"); code(err) != api.CodeUnknown {
			t.Error(err)
		}
		if _, err := os.Stat(w.dir + "/log/one"); !errors.Is(err, os.ErrNotExist) {
			t.Error("the log is left:", err)
		}
		w.must(w.Shutdown(t.Context()))
		if !over(w.pidfd, time.Second) { // its lock goes first, within its exit
			t.Error("it lives")
		}
		if _, err := client.Dial(t.Context(), w.dir); !errors.Is(err, client.ErrNone) {
			t.Error(err)
		}
	})
}

// TestNotReady: FAILED, and an end before any line.
func TestNotReady(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.run(w.shell("failed", "echo first; echo 'FAILED no such thing'; exit 1"))
		if r, err := w.Ready(t.Context(), "failed"); err != nil || r.Ready || r.Reason != "no such thing" {
			t.Errorf("%+v, %v", r, err)
		}
		w.run(w.shell("stays", "echo 'FAILED and stays'; exec sleep 1000"))
		if r, err := w.Ready(t.Context(), "stays"); err != nil || r.Ready || r.Ended || r.Reason != "and stays" {
			t.Errorf("%+v, %v", r, err)
		}
		w.run(w.shell("ended", "echo READYTOO; echo last words >&2; exit 7"))
		if r, err := w.Ready(t.Context(), "ended"); err != nil || r.Ready || !r.Ended || r.ExitCode != 7 || r.Stderr != "last words" || r.OOM {
			t.Errorf("%+v, %v", r, err)
		}
		if got := w.log("ended"); !strings.Contains(got, "last words\n") || !strings.Contains(got, "READYTOO\n") {
			t.Errorf("the log: %q", got)
		}
		none := w.shell("none", "")
		none.Process.Args = []string{"/no/such/program"}
		w.must(w.Create(t.Context(), none))
		if err := w.Start(t.Context(), "none"); code(err) != api.CodeFailed || !strings.Contains(err.Error(), "/no/such/program") {
			t.Error(err)
		}
		if s := w.seen("none"); s.State != api.Created {
			t.Errorf("%+v", s)
		}
	})
}
