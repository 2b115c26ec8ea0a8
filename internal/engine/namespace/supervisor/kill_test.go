//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
)

func namespaceOf(pid int) (uint64, error) {
	info, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}

// below lists the processes below one, with it.
func below(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", list[i]))
		for _, task := range tasks {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", list[i], task.Name()))
			for _, f := range strings.Fields(string(b)) {
				var n int
				fmt.Sscan(f, &n)
				list = append(list, n)
			}
		}
	}
	return list
}

// TestKilled: kill -9 of the supervisor ends everything that it started; the
// next one says so, and begins where it ended.
func TestKilled(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.up(w.guard(spec.Port{Address: free(t, "127.0.0.1"), Target: 80}))
		for i := range 5 {
			// Each has processes that would outlive a parent.
			w.up(w.shell(fmt.Sprint("w", i), "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & echo READY; while :; do sleep 1; done"))
		}
		w.run(w.shell("gone", "exit 4"))
		testutil.Eventually(w, "an end", func() bool { return w.seen("gone").State == api.Exited })
		flaky := w.shell("flaky", "exit 5")
		flaky.Restart = spec.RestartUnlessStopped
		w.run(flaky)
		testutil.Eventually(w, "a restart", func() bool { return w.seen("flaky").Restarts > 1 })
		var all []*os.File
		for _, pid := range below(w.pid) {
			f, err := pidfdOpen(pid)
			if err == nil {
				all = append(all, f)
				defer f.Close()
			}
		}
		if len(all) < 1+1+5*3 {
			t.Fatalf("only %d processes", len(all))
		}
		begin := time.Now()
		w.kill()
		for _, f := range all {
			if !over(f, time.Until(begin.Add(10*time.Second))) {
				t.Fatal("a process lives")
			}
		}
		t.Logf("%d processes were gone after %v", len(all), time.Since(begin))
		if _, err := client.Dial(t.Context(), w.dir); err != client.ErrNone {
			t.Error(err)
		}
		if f, err := client.State(w.dir); err != nil || len(f.Containers) != 8 {
			t.Errorf("%+v, %v", f, err)
		}
		w.start()
		for name, want := range map[string]int{"guard": 137, "w0": 137, "w4": 137, "gone": 4, "flaky": 5} {
			s := w.seen(name)
			// It may have been killed in a run.
			if name == "flaky" && s.ExitCode == 137 {
				want = 137
			}
			s.Container.Seccomp = nil
			if s.State != api.Exited || s.ExitCode != want || s.Finished.IsZero() || s.Ready {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if r, err := w.Ready(t.Context(), "w0"); err != nil || r.Ready || !r.Ended || r.ExitCode != 137 {
			t.Errorf("%+v, %v", r, err)
		}
		if got := w.log("w0"); got != "READY\n" {
			t.Errorf("the log: %q", got)
		}
		w.must(w.Start(t.Context(), "w0"))
		w.must(w.Start(t.Context(), "guard"))
		if r, err := w.Ready(t.Context(), "w0"); err != nil || !r.Ready {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestTerm: SIGTERM stops everything in its own way first.
func TestTerm(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.up(w.shell("one", "trap 'echo bye; exit 9' TERM; echo READY; while :; do sleep 1000 & wait; done"))
		stubborn := w.shell("stubborn", "trap '' TERM; echo READY; while :; do sleep 1; done")
		stubborn.Grace = 300 * time.Millisecond
		w.up(stubborn)
		w.must(w.pidSignal(syscall.SIGTERM))
		if !over(w.pidfd, 5*time.Second) {
			t.Fatal("it lives")
		}
		w.start()
		if s := w.seen("one"); s.ExitCode != 9 || !strings.HasSuffix(w.log("one"), "bye\n") {
			t.Errorf("%+v", s)
		}
		if s := w.seen("stubborn"); s.ExitCode != 137 {
			t.Errorf("%+v", s)
		}
		// Other signals end nothing.
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGPIPE, syscall.SIGABRT} {
			w.must(w.pidSignal(sig))
		}
		_, err := w.Hello(t.Context())
		w.must(err)
	})
}

func (w *world) pidSignal(s syscall.Signal) error { return syscall.Kill(w.pid, s) }

// TestTwo: one supervisor in a directory.
func TestTwo(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.up(w.shell("one", sleeper))
		line, _, second := w.begin()
		if !strings.HasPrefix(line, "FAILED another supervisor lives in ") {
			t.Errorf("%q", line)
		}
		if second != nil && !over(second, 5*time.Second) {
			t.Error("the second lives")
		}
		if s := w.seen("one"); s.State != api.Running {
			t.Errorf("%+v", s)
		}
		// Those that look are no second one.
		w.kill()
		stop := make(chan struct{})
		var looking sync.WaitGroup
		for range 4 {
			looking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, _ = client.Lives(w.dir)
					}
				}
			})
		}
		defer looking.Wait()
		defer close(stop)
		w.start()
	})
}

// TestDirectoryRemoved: where somebody removed its state directory, no client finds
// a supervisor any more: it ends with all that it started, and leaves to another one
// what that has there.
func TestDirectoryRemoved(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.up(w.shell("one", sleeper))
		old := w.pidfd
		if os.RemoveAll(w.dir) != nil { // it was just writing there
			w.must(os.RemoveAll(w.dir))
		}
		w.must(os.Mkdir(w.dir, 0o700))
		w.start()
		w.up(w.shell("two", sleeper))
		if !over(old, 10*time.Second) {
			t.Fatal("it lives")
		}
		old.Close()
		within, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.Dial(within, w.dir)
		w.must(err)
		if s := w.seen("two"); s.State != api.Running {
			t.Errorf("%+v", s)
		}
		w.kill()
		w.start() // from the file, which is the other one's
		if s := w.seen("two"); s.State != api.Exited {
			t.Errorf("%+v", s)
		}
	})
}

// TestUnreadableState: nothing is guessed.
func TestUnreadableState(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.run(w.shell("one", "exit 0"))
		w.must(w.Shutdown(t.Context()))
		path := w.dir + "/" + api.StateName
		good, err := os.ReadFile(path)
		w.must(err)
		for _, text := range []string{
			"", "{}", "null", string(good[:len(good)/2]), strings.Replace(string(good), fmt.Sprintf(`"version":%d`, spec.Version), `"version":99`, 1),
			strings.Replace(string(good), `"one"`, `"../x"`, 1), strings.Replace(string(good), `"exited"`, `"happy"`, 1),
			strings.Replace(string(good), `{`, `{"more":1,`, 1),
			string(good) + "x",
		} {
			w.must(os.WriteFile(path, []byte(text), 0o600))
			if line, _, _ := w.begin(); !strings.HasPrefix(line, "FAILED ") || strings.Count(line, "\n") != 1 {
				t.Errorf("%.60q: %q", text, line)
			}
		}
		w.must(os.WriteFile(path, good, 0o600))
		w.must(os.Chmod(w.dir, 0o750))
		if line, _, _ := w.begin(); !strings.Contains(line, "mode 0700") {
			t.Errorf("%q", line)
		}
		w.must(os.Chmod(w.dir, 0o700))
		w.start()
	})
}
