package reaper

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// startTime bounds an undisturbed start.
const startTime = 20 * time.Millisecond

// A child that isn't its program yet can be stopped, by any process of its uid.
// Its parent waits in vfork(2) then, for ever, and with one thread of Go at a time
// all of the process waits: a worker's PID 1 would start and collect nothing more.
// So while a child is made, a second thread kills it if it is stopped.

// starts counts those under way. With the first and the last the number of threads
// and the collection of garbage change: for either all goroutines must stand still,
// and the one that waits in vfork(2) doesn't hear of that.
var starts struct {
	sync.Mutex
	n, threads, percent int
}

// watchStart kills a child that is stopped before it is its program, until end is
// called.
func watchStart() (end func()) {
	starts.Lock()
	if starts.n++; starts.n == 1 {
		starts.percent = debug.SetGCPercent(-1) // waits for one that has begun
		if starts.threads = runtime.GOMAXPROCS(0); starts.threads < 2 {
			runtime.GOMAXPROCS(2)
		}
	}
	starts.Unlock()
	ended := make(chan struct{})
	go func() {
		t := time.NewTicker(startTime)
		defer t.Stop()
		for {
			select {
			case <-ended:
				return
			case <-t.C:
				killUnborn()
			}
		}
	}()
	return func() {
		close(ended)
		starts.Lock()
		if starts.n--; starts.n == 0 {
			if starts.threads < 2 {
				runtime.GOMAXPROCS(starts.threads)
			}
			debug.SetGCPercent(starts.percent)
		}
		starts.Unlock()
	}
}

// killUnborn kills stopped children that still have our own command line, as they share
// our memory.
func killUnborn() {
	self := os.Getpid()
	line, err := commandLine(self)
	if err != nil || len(line) == 0 {
		return
	}
	list, err := Scan()
	if err != nil {
		return
	}
	for _, i := range list {
		if i.Parent != self || i.State != 'T' {
			continue
		}
		if its, err := commandLine(i.Pid); err == nil && bytes.Equal(its, line) {
			i.Signal(unix.SIGKILL)
		}
	}
}

// commandLine returns the beginning of a process's command line, for comparison.
func commandLine(pid int) ([]byte, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, err := f.Read(b)
	return b[:n], err
}
