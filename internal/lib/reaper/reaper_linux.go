package reaper

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reaper starts children and reaps all that end, including orphans that this process
// gets. There must be one in a process, and nothing else in it may wait for processes.
// The zero value is ready for use.
type Reaper struct {
	// KillStopped kills stopped children: a stopped session would keep its place
	// and its threads for ever. Set it before the first child.
	KillStopped bool

	// starting is held for reading while a child is made, so that a status
	// can't be collected before its process is known; a start that fails
	// collects its own child (syscall.ForkExec).
	starting sync.RWMutex
	mu       sync.Mutex // held while PIDs must not be reused
	children map[int]*Process
	stray    bool // what Reap reports next
	holds    int  // of KillAll: while there is one orphans aren't collected
}

// Process is a child that a Reaper started.
type Process struct {
	Pid    int
	reaper *Reaper
	done   chan struct{}
	status unix.WaitStatus
}

// Start starts a program as syscall.ForkExec does; its errors are that
// function's.
func (r *Reaper) Start(path string, argv []string, attr *syscall.ProcAttr) (*Process, error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	end := watchStart()
	pid, err := syscall.ForkExec(path, argv, attr)
	end()
	if err != nil {
		return nil, err
	}
	p := &Process{Pid: pid, reaper: r, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = map[int]*Process{}
	}
	r.children[pid] = p
	return p, nil
}

// Reap collects every child that has ended; while a [Reaper.KillAll] runs, those
// alone that were started here. Signals of the same kind are merged, so one SIGCHLD
// may mean many. It reports whether an orphan that SIGKILL ended was collected since
// the last Reap: what a session leaves that is killed, see [Reaper.KillStray].
func (r *Reaper) Reap() (stray bool) {
	r.reap()
	r.mu.Lock()
	defer r.mu.Unlock()
	stray, r.stray = r.stray, false
	return stray
}

func (r *Reaper) reap() {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.holds == 0 {
		for {
			pid, status := r.wait(-1)
			if pid <= 0 {
				return
			}
			if p := r.children[pid]; p != nil {
				r.ended(p, status)
			} else {
				r.stray = r.stray || status.Signaled() && status.Signal() == unix.SIGKILL
			}
		}
	}
	for pid, p := range r.children {
		if got, status := r.wait(pid); got == pid {
			r.ended(p, status)
		}
	}
}

// wait collects one child that has ended, or sees one that has stopped, where
// that is wanted; which is as in wait4(2). The pid is 0 or less when there is none.
func (r *Reaper) wait(which int) (pid int, status unix.WaitStatus) {
	options := unix.WNOHANG
	if r.KillStopped {
		options |= unix.WUNTRACED
	}
	for {
		pid, err := unix.Wait4(which, &status, options, nil)
		if err != unix.EINTR {
			return pid, status
		}
	}
}

// ended keeps how a child ended; one that has only stopped is killed.
func (r *Reaper) ended(p *Process, status unix.WaitStatus) {
	if status.Stopped() {
		_ = unix.Kill(p.Pid, unix.SIGKILL)
		return
	}
	delete(r.children, p.Pid)
	p.status = status
	close(p.done)
}

// Started reports whether a process was started here and isn't collected yet.
func (r *Reaper) Started(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.children[pid] != nil
}

// hold adds to the number of those who want orphans to stay uncollected.
func (r *Reaper) hold(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds += n
}

// Done is closed when the process has ended and was collected.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and returns the exit status.
func (p *Process) Wait() unix.WaitStatus {
	<-p.done
	return p.status
}

// Signal sends a signal to the process, never to another with a reused PID: after its
// end the error is os.ErrProcessDone.
func (p *Process) Signal(s unix.Signal) error {
	return p.While(func() error { return unix.Kill(p.Pid, s) })
}

// SignalGroup sends a signal to the process group of the process. After its end the
// error is os.ErrProcessDone.
func (p *Process) SignalGroup(s unix.Signal) error {
	return p.While(func() error { return unix.Kill(-p.Pid, s) })
}

// While runs f while the PID of the process can't be reused.
func (p *Process) While(f func() error) error {
	p.reaper.mu.Lock()
	defer p.reaper.mu.Unlock()
	select {
	case <-p.done:
		return os.ErrProcessDone
	default:
		return f()
	}
}
