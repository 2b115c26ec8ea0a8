//go:build linux

package reaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A subreaper that collects everything is no process of tests: os/exec would
// miss its children. So each test runs in a process of its own.
const roleVariable = "WORKSHOP_REAP_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		os.Unsetenv(roleVariable)
		r := &Reaper{}
		must(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		children := make(chan os.Signal, 1)
		signal.Notify(children, unix.SIGCHLD)
		go func() {
			for range children {
				if r.Reap() {
					select {
					case strays <- true:
					default:
					}
				}
			}
		}()
		roles[name](r)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// strays has an entry when Reap has reported one.
var strays = make(chan bool, 1)

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func require(ok bool, format string, args ...any) {
	if !ok {
		must(fmt.Errorf(format, args...))
	}
}

var roles = map[string]func(*Reaper){
	"statuses": statuses, "signals": signals, "descendants": descendants, "zombie leader": zombieLeader, "bomb": bomb, "chain": chain, "held": held, "deadline": deadline, "unrelated": unrelated, "unseen": unseen, "told": told, "stray": stray, "threads": threads, "environment": environment, "stopped": stopped, "unborn": unborn,
}

func TestInProcesses(t *testing.T) {
	for name := range roles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/proc/self/exe")
			cmd.WaitDelay = time.Second
			cmd.Env = append(os.Environ(), roleVariable+"="+name, "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func start(r *Reaper, argv ...string) *Process {
	path, err := exec.LookPath(argv[0])
	must(err)
	p, err := r.Start(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	for end := time.Now().Add(10 * time.Second); errors.Is(err, unix.EAGAIN) && time.Now().Before(end); { // the bomb beside it
		time.Sleep(time.Millisecond)
		p, err = r.Start(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	}
	must(err)
	return p
}

// statuses: each process gets its own, while orphans come and go and starts
// fail.
func statuses(r *Reaper) {
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			p := start(r, "sh", "-c", "sleep 0.01 & exit "+strconv.Itoa(i%100))
			s := p.Wait()
			require(s.ExitStatus() == i%100, "exit %d, want %d", s.ExitStatus(), i%100)
		})
		wg.Go(func() {
			_, err := r.Start("/no/such/program", []string{"x"}, &syscall.ProcAttr{})
			require(errors.Is(err, unix.ENOENT), "a failed start: %v", err)
		})
	}
	wg.Wait()
	for range 100 {
		time.Sleep(10 * time.Millisecond)
		if list, err := Scan(); err == nil && len(Descendants(list, os.Getpid())) == 0 {
			return
		}
	}
	require(false, "orphans were not collected")
}

func signals(r *Reaper) {
	p := start(r, "sleep", "100")
	must(p.Signal(unix.SIGUSR1))
	require(p.Wait().Signal() == unix.SIGUSR1, "ended by %v", p.Wait())
	require(errors.Is(p.Signal(unix.SIGKILL), os.ErrProcessDone), "a signal after the end")
	require(errors.Is(p.SignalGroup(unix.SIGKILL), os.ErrProcessDone), "a signal to a group after the end")
}

// descendants: what ignores SIGTERM, has left its group and parent, and closed
// its streams.
func descendants(r *Reaper) {
	start(r, "sh", "-c", "trap '' TERM HUP; (setsid sh -c '(setsid sh -c \"exec <&- >&- 2>&-; trap : TERM; while :; do sleep 1; done\" &)' &); sleep 100 & sleep 100 & wait")
	for n := 0; n < 5; {
		list, err := Scan()
		must(err)
		n = len(Descendants(list, os.Getpid()))
	}
	begin := time.Now()
	left := r.KillDescendants(5 * time.Second)
	require(left == 0, "%d are left", left)
	require(time.Since(begin) < time.Second, "it took %v", time.Since(begin))
	// Orphans among them are collected when they come to this process.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		list, err := Scan()
		must(err)
		if len(Descendants(list, os.Getpid())) == 0 {
			return
		}
		require(time.Now().Before(end), "%v", Descendants(list, os.Getpid()))
	}
}

// zombieLeader: a process whose first thread has ended looks like one that has
// ended.
func zombieLeader(r *Reaper) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return
	}
	p := start(r, python, "-c", "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(100,)).start(); ctypes.CDLL(None).syscall(60, 0)")
	for state := byte(0); state != 'Z'; {
		i, ok := Look(strconv.Itoa(p.Pid))
		require(ok && !i.Ended(), "%+v", i)
		state = i.State
	}
	left := r.KillDescendants(5 * time.Second)
	require(left == 0 && p.Wait().Signal() == unix.SIGKILL, "%d left, %v", left, p.Wait())
}

// stopped: children are killed when they stop, where that is wanted; what fell
// to this process is left alone.
func stopped(r *Reaper) {
	p := start(r, "sleep", "100")
	must(p.Signal(unix.SIGSTOP))
	time.Sleep(100 * time.Millisecond)
	i, ok := Look(strconv.Itoa(p.Pid))
	require(ok && i.State == 'T', "without the option: %+v", i)
	r.mu.Lock()
	r.KillStopped = true
	r.mu.Unlock()
	q := start(r, "sh", "-c", "(sh -c 'kill -STOP $$; sleep 100' & echo) & wait; sleep 0.2; kill -STOP $$")
	require(q.Wait().Signal() == unix.SIGKILL && p.Wait().Signal() == unix.SIGKILL, "%v, %v", q.Wait(), p.Wait())
	list, err := Scan()
	must(err)
	below := Descendants(list, os.Getpid())
	require(len(below) == 1 && below[0].State == 'T', "an orphan that stopped: %+v", below)
	require(r.KillDescendants(5*time.Second) == 0, "some are left")
}

// unborn: children are stopped before they are their program. Each start ends, also
// with one thread of Go.
func unborn(r *Reaper) {
	runtime.GOMAXPROCS(1)
	SpareThreads(4)
	runtime.LockOSThread() // so that all are children of one thread
	self := strconv.Itoa(os.Getpid())
	// It reads and writes a number at most, and ends with this process.
	const stop = `
import os, sys, time
me, end, stopped = sys.argv[1], time.time() + 20, set()
mine = open("/proc/%s/cmdline" % me).read()
children = "/proc/%s/task/%s/children" % (me, sys.argv[2])
while time.time() < end:
    try:
        for pid in open(children).read().split():
            line = open("/proc/%s/cmdline" % pid).read()
            if int(pid) != os.getpid() and line == mine:
                os.kill(int(pid), 19)
                stopped.add(pid)
            elif pid in stopped: # it was its program before the signal came
                os.kill(int(pid), 18)
    except FileNotFoundError:
        if not os.path.exists("/proc/" + me):
            break
    except ProcessLookupError:
        pass
`
	python, err := exec.LookPath("python3")
	if err != nil {
		return
	}
	if _, err := os.Stat("/proc/self/task/" + self + "/children"); err != nil {
		return // a kernel without CONFIG_PROC_CHILDREN
	}
	hostile, err := r.Start(python, []string{"python3", "-c", stop, self, strconv.Itoa(unix.Gettid())}, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	must(err)
	time.Sleep(200 * time.Millisecond)
	files := make([]uintptr, 900) // each takes the child some time
	stopped := 0
	for begun := time.Now(); stopped < 3 && time.Since(begun) < 5*time.Second; {
		p, err := r.Start("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: files, Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}})
		if err == nil && p.Wait().Signal() == unix.SIGKILL {
			stopped++
		}
	}
	must(hostile.Signal(unix.SIGKILL))
	hostile.Wait()
	require(runtime.GOMAXPROCS(0) == 1, "%d threads of Go", runtime.GOMAXPROCS(0))
}

// held: while something is killed, an orphan that has ended stays, and a round that
// chose nothing isn't believed. What was started here gets its status.
func held(r *Reaper) {
	rounds := 0
	ended := func(list []Info) []Info {
		return slices.DeleteFunc(slices.Clone(list), func(i Info) bool { return i.Parent != os.Getpid() || !i.Ended() })
	}
	left := r.KillAll(5*time.Second, func(chosen []Info) []Info {
		if rounds++; rounds > 1 {
			return Descendants(chosen, os.Getpid())
		}
		require(start(r, "sh", "-c", "sleep 0.05 & exit 3").Wait().ExitStatus() == 3, "another status")
		for n := 0; n == 0; time.Sleep(time.Millisecond) {
			list, err := Scan()
			must(err)
			n = len(ended(list))
		}
		require(!r.Reap(), "it was collected")
		list, err := Scan()
		must(err)
		require(len(ended(list)) == 1, "%+v", Descendants(list, os.Getpid()))
		return []Info{{Pid: 1 << 30, State: 'R'}} // one that is gone when it is signalled
	})
	require(left == 0 && rounds == 3, "%d are left, %d rounds", left, rounds)
	list, err := Scan()
	must(err)
	require(len(Descendants(list, os.Getpid())) == 0, "not collected: %+v", Descendants(list, os.Getpid()))
}

// deadline: where the last list missed something, it isn't said that nothing is left.
func deadline(r *Reaper) {
	rounds := 0
	left := r.KillAll(150*time.Millisecond, func(list []Info) []Info {
		if rounds++; rounds == 1 {
			start(r, "sh", "-c", "sleep 0.02 &").Wait()
			time.Sleep(100 * time.Millisecond)
			return []Info{{Pid: 1 << 30, State: 'R'}}
		}
		time.Sleep(100 * time.Millisecond)
		return Descendants(list, os.Getpid())
	})
	require(left > 0, "after %d rounds nothing is left", rounds)
}

// unrelated: an orphan that nobody chose doesn't keep the search going.
func unrelated(r *Reaper) {
	rounds := 0
	left := r.KillAll(5*time.Second, func([]Info) []Info {
		if rounds++; rounds > 1 {
			return nil
		}
		start(r, "sh", "-c", "sleep 0.02 &").Wait()
		time.Sleep(100 * time.Millisecond)
		return []Info{{Pid: 1 << 30, State: 'R'}}
	})
	require(left == 0 && rounds == 2, "%d are left, %d rounds", left, rounds)
}

// unseen: a worker of the same user lets this process open no file more.
func unseen(r *Reaper) {
	p := start(r, "sleep", "100")
	_, err := Scan() // the runtime has its own descriptors from now
	must(err)
	var before unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	must(err)
	must(unix.Close(fd))
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd) + 1, Max: before.Max})) // /proc opens, and nothing in it
	left := r.KillDescendants(50 * time.Millisecond)
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	require(left > 0, "nothing is left")
	require(r.KillDescendants(5*time.Second) == 0 && p.Wait().Signal() == unix.SIGKILL, "some are left")
}

// told: an orphan that SIGKILL ended is reported by Reap, whoever collected it.
func told(r *Reaper) {
	p := start(r, "sh", "-c", "(echo; exec sleep 100) & wait")
	for n := 0; n < 2; {
		list, err := Scan()
		must(err)
		n = len(Descendants(list, os.Getpid()))
	}
	require(r.KillDescendants(5*time.Second) == 0 && p.Wait().Signal() == unix.SIGKILL, "some are left")
	if r.Reap() {
		return
	}
	select {
	case <-strays: // the handler has it
	case <-time.After(5 * time.Second):
		require(false, "not reported")
	}
}

// bomb: programs that make new processes as fast as they can.
func bomb(r *Reaper) {
	explode(r, 64202, "b() { trap '' TERM; b & b & }; b & while :; do :; done", "b() { b & b & }; b & while :; do :; done")
}

// chain: each process starts the next and ends, sooner than it can be listed and
// then signalled.
func chain(r *Reaper) {
	explode(r, 64203, "c() { c & }; for i in 1 2 3 4 5; do c; done")
}

// explode kills what shells without a way to their end start. Root has no limit of
// processes, so they run as a user.
func explode(r *Reaper, uid uint32, scripts ...string) {
	must(unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 200, Max: 200}))
	path, err := exec.LookPath("sh")
	must(err)
	in, begin, err := os.Pipe() // all are there before the first begins
	must(err)
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{in.Fd()}}
	if os.Geteuid() == 0 {
		attr.Sys = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	for _, script := range scripts {
		_, err = r.Start(path, []string{"sh", "-c", "read x; " + script}, attr)
		must(err)
	}
	must(begin.Close())
	time.Sleep(300 * time.Millisecond)
	left := r.KillDescendants(10 * time.Second)
	require(left == 0, "%d are left", left)
	list, err := Scan()
	must(err)
	require(len(Descendants(list, os.Getpid())) == 0, "%+v", Descendants(list, os.Getpid()))
}

// stray: processes whose session is gone are killed, those of one that lives
// and those without a mark are not.
func stray(r *Reaper) {
	owner, err := Owner()
	must(err)
	run := func(mark string) *Process {
		path, err := exec.LookPath("sleep")
		must(err)
		p, err := r.Start(path, []string{"sleep", "100"}, &syscall.ProcAttr{Env: []string{"A=B", MarkEnv + "=" + mark}})
		must(err)
		return p
	}
	mine, none, odd := run(owner+".1"), start(r, "sleep", "100"), run("nonsense")
	other := strings.SplitN(owner, ".", 2)
	dead := []*Process{run("1.0.7"), run("999999.5.1"), run(other[0] + "." + other[1] + "0.1")}
	require(r.KillStray(5*time.Second) == 0, "some are left")
	for _, p := range dead {
		require(p.Wait().Signal() == unix.SIGKILL, "%v", p.Wait())
	}
	for _, p := range []*Process{mine, none, odd} {
		must(p.Signal(0))
	}
	require(r.KillDescendants(5*time.Second) == 0, "some are left")
}

// threads: with spare threads a program at its limit of processes goes on.
func threads(r *Reaper) {
	before := count()
	SpareThreads(10)
	require(count() >= before+5 || count() >= 10, "%d threads, before %d", count(), before)
}

func count() int {
	list, err := os.ReadDir("/proc/self/task")
	must(err)
	return len(list)
}

func TestParseStat(t *testing.T) {
	for line, want := range map[string]Info{
		"7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 123456 20\n": {Pid: 7, State: 'S', Parent: 1, Group: 2, Session: 3, Threads: 1, Start: 123456},
		"7 (a": {}, "": {}, ")(": {}, "x (a) S 1": {}, "7 (a) S 1 2 3": {}, "7 (a) Long 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 123456 20": {},
	} {
		if got, ok := parseStat([]byte(line)); ok != (want.Pid != 0) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}

func TestDescendantsOfACycle(t *testing.T) {
	got := Descendants([]Info{{Pid: 2, Parent: 1}, {Pid: 3, Parent: 2}, {Pid: 2, Parent: 3}, {Pid: 9, Parent: 8}}, 1)
	if len(got) > 3 || len(got) < 2 {
		t.Errorf("%+v", got)
	}
}

func FuzzParseStat(f *testing.F) {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(b) })
}
