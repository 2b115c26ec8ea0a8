package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/reaper"
)

// starter is container.Start; tests begin plain processes with it.
type starter func(r container.Starter, program string, c *spec.Container, o container.Options) (*reaper.Process, error)

func contained(r container.Starter, program string, c *spec.Container, o container.Options) (*reaper.Process, error) {
	return container.Start(r, program, c, o)
}

// run is one start of a service, from the execution of its program to its end.
type run struct {
	proc    *reaper.Process
	pidfd   *os.File
	net     *os.File      // its network namespace, for services that join it; nil if it has ended
	control *net.UnixConn // of a guard: passes control connections to it
	group   *cgroup.Group // nil: without limits
	heard   *hearing
	output  sync.WaitGroup
	readers []*os.File
	started time.Time
	joined  time.Time
	ready   bool          // under the Supervisor's mu
	ended   chan struct{} // closed when the end is in the service's state
	code    int           // how it ended, when ended is closed
	oom     bool
}

// launch starts a service's program, with again set as a restart; its caller holds
// the turn. Unless it fails, it leaves a run with a goroutine that waits for its end.
func (s *Supervisor) launch(sv *service, again bool) *api.Error {
	s.starts <- struct{}{}
	defer func() { <-s.starts }()

	r := &run{ended: make(chan struct{}), heard: newHearing()}
	r.heard.told = func() { s.isReady(sv, r) }
	c := sv.c
	var o container.Options
	var handed []*os.File // duplicates for the child, closed here
	letGo := func() {
		for _, f := range handed {
			f.Close()
		}
		handed = nil
	}
	defer letGo()
	if c.Network.Mode == spec.NetJoin {
		ns, joined, err := s.namespace(c.Network.Of)
		if err != nil {
			return err
		}
		handed = append(handed, ns)
		o.NetNS, r.joined = ns, joined
	}
	if c.Role == spec.Guard {
		s.copyResolv()
		if err := sv.listen(); err != nil {
			return err
		}
		theirs, err := r.connect()
		if err != nil {
			return r.drop(s, fmt.Errorf("a connection to the guard: %w", err))
		}
		handed = append(handed, theirs)
		c.Process.Args = slices.Clone(c.Process.Args)
		hand := func(f *os.File, flags ...string) {
			o.Files = append(o.Files, f)
			fd := strconv.Itoa(2 + len(o.Files))
			flags[len(flags)-1] += fd
			c.Process.Args = append(c.Process.Args, flags...)
		}
		hand(theirs, "--control-fd", "")
		for _, p := range sv.ports {
			hand(p.socket, "--inbound-fd", strconv.Itoa(int(p.target))+"=")
		}
	}
	var err error
	if o.Stdout, err = s.pipe(sv, r, stdoutOf(r)); err == nil {
		handed = append(handed, o.Stdout)
		if o.Stderr, err = s.pipe(sv, r, stderrOf(r)); err == nil {
			handed = append(handed, o.Stderr)
		}
	}
	if err == nil && !c.Limits.Unlimited {
		r.group, err = s.group(&c)
	}
	if err != nil {
		letGo()
		return r.drop(s, err)
	}
	if r.group != nil {
		o.Cgroup = r.group.Add
		for _, m := range r.group.Mounts() {
			o.CgroupMounts = append(o.CgroupMounts, container.CgroupMount(m))
		}
	}
	pidfd := -1
	o.PidFD = &pidfd
	r.started = now()
	r.proc, err = s.begin(s.reaper, s.program, &c, o)
	letGo() // or the output would never reach EOF
	if err != nil {
		return r.drop(s, err)
	}
	if pidfd >= 0 {
		r.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	_ = r.proc.While(func() error { // until it is reaped its PID can't be reused
		r.net, err = os.Open("/proc/" + strconv.Itoa(r.proc.Pid) + "/ns/net")
		return err
	})
	s.mu.Lock()
	sv.run = r
	sv.state.State, sv.state.Ready, sv.state.ExitCode, sv.state.OOMKilled = api.Running, r.ready, 0, false
	sv.state.Started, sv.state.Joined = r.started, r.joined
	if again {
		sv.state.Restarts++
	}
	s.changed()
	s.mu.Unlock()
	go s.watch(sv, r)
	if c.Role == spec.Guard {
		go s.followResolv(r.ended)
	}
	return nil
}

// isReady records that a run printed READY, perhaps before launch has assigned it to
// the service.
func (s *Supervisor) isReady(sv *service, r *run) {
	s.mu.Lock()
	r.ready = true
	if sv.run == r {
		sv.state.Ready = true
		s.changed()
	}
	s.mu.Unlock()
	go s.note()
}

// drop undoes a failed start.
func (r *run) drop(s *Supervisor, why error) *api.Error {
	if r.control != nil {
		r.control.Close()
	}
	r.removeGroup(s)
	// A process that is being killed may hold the pipe.
	r.drain(time.Second)
	var taken *api.Error
	var missing *cgroup.Unavailable
	switch {
	case errors.As(why, &taken):
		return taken
	case errors.As(why, &missing):
		return failure(api.CodeRefused, "%v", why)
	}
	message := why.Error()
	if words := r.heard.lastWords(); words != "" {
		message += ": " + words
	}
	return failure(api.CodeFailed, "%s", message)
}

// namespace returns the network namespace of a running service, and its start time.
func (s *Supervisor) namespace(of string) (*os.File, time.Time, *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.services[of]
	if sv == nil {
		return nil, time.Time{}, unknown(of)
	}
	if sv.state.State != api.Running || sv.run.net == nil {
		return nil, time.Time{}, failure(api.CodeNotRunning, "%s is not running: there is no network to join", of)
	}
	fd, err := unix.FcntlInt(sv.run.net.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, time.Time{}, failure(api.CodeFailed, "the network of %s: %v", of, err)
	}
	return os.NewFile(uintptr(fd), "netns"), sv.run.started, nil
}

// connect makes the socket pair by which connections are passed to a guard.
func (r *run) connect() (theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs = os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	r.control = conn.(*net.UnixConn)
	return theirs, nil
}

// group makes the control group of a start, with its limits.
func (s *Supervisor) group(c *spec.Container) (*cgroup.Group, error) {
	if s.groups == nil {
		return nil, s.noGroups
	}
	if err := s.groups.Require(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.numbers++
	name := s.prefix + strconv.FormatUint(s.numbers, 10) + "-" + strings.Map(func(r rune) rune {
		if r == '.' {
			return '_'
		}
		return r
	}, c.Service[:min(len(c.Service), 100)])
	s.mu.Unlock()
	return s.groups.New(name, cgroup.Limit{MemoryBytes: c.Limits.Memory, CPUs: c.Limits.CPUs, PIDs: c.Limits.PIDs})
}

func (r *run) removeGroup(s *Supervisor) {
	if r.group == nil {
		return
	}
	err := r.group.Kill()
	if e := r.group.Remove(); e != nil {
		s.say("%v", errors.Join(err, e))
	}
}
