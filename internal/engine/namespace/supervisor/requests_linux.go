package supervisor

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// handle carries out one request. The file, if not nil, is sent with the response
// and closed by the caller. ctx ends when the client disconnects, which cancels
// waiting only.
func (s *Supervisor) handle(ctx context.Context, r *api.Request) (api.Answer, *os.File) {
	var a api.Answer
	var f *os.File
	switch r.Op {
	case api.OpHello:
		a.Hello = &api.Hello{Version: s.digest, PID: os.Getpid()}
		if s.groups != nil && s.groups.Require() == nil {
			a.Hello.Cgroup = s.groups.String()
		}
	case api.OpList:
		a.List = s.list()
	case api.OpCreate:
		a.Sum, a.Error = s.create(r.Container)
	case api.OpStart:
		a.Error = s.startService(r.Service)
	case api.OpReady:
		a.Ready, a.Error = s.ready(ctx, r.Service)
	case api.OpWait:
		a.Ready, a.Error = s.wait(ctx, r.Service)
	case api.OpSignal:
		a.Error = s.signal(r.Service, r.Signal)
	case api.OpStop, api.OpRemove:
		sv, err := s.mine(r.Service)
		if err == nil {
			if err = s.stop(sv); err == nil && r.Op == api.OpRemove {
				err = s.remove(sv)
			}
			sv.done()
			s.note()
		}
		a.Error = err
	case api.OpPid:
		f, a.Error = s.pid(r.Service)
	case api.OpControl:
		f, a.Error = s.control(r.Service)
	case api.OpShutdown:
		a.Error = s.shutdown()
	}
	a.FD = f != nil
	return a, f
}

// names returns the names of the services, sorted; mu is held.
func (s *Supervisor) names() []string {
	list := make([]string, 0, len(s.services))
	for name := range s.services {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func (s *Supervisor) list() []api.Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]api.Seen, 0, len(s.services))
	for _, name := range s.names() {
		list = append(list, s.services[name].seen())
	}
	return list
}

func (s *Supervisor) create(c *spec.Container) (sum []byte, _ *api.Error) {
	if err := errors.Join(container.Check(c), check(c)); err != nil {
		return nil, failure(api.CodeInvalid, "%v", err)
	}
	sv, err := s.newcomer(c)
	if err != nil {
		return nil, err
	}
	defer sv.done()
	if err := s.save(); err != nil { // merged with those of concurrent requests
		if e := s.remove(sv); e != nil {
			s.say("%v", e)
		}
		return nil, failure(api.CodeFailed, "%v", err)
	}
	is := sha256.Sum256(sv.form)
	return is[:], nil
}

// newcomer adds a service, of which its caller then holds the turn.
func (s *Supervisor) newcomer(c *spec.Container) (*service, *api.Error) {
	// Its log is opened only after making sure that the name is free.
	s.creating.Lock()
	defer s.creating.Unlock()
	s.mu.Lock()
	old, n, ending := s.services[c.Service], len(s.services), s.ending
	s.mu.Unlock()
	switch {
	case old != nil:
		return nil, failure(api.CodeExists, "service %q already exists", c.Service)
	case ending:
		return nil, endingError()
	case n >= maxServices:
		return nil, failure(api.CodeFailed, "too many services: a supervisor keeps at most %d", n)
	}
	sv, err := s.newService(*c, State{State: api.Created, Created: now()})
	if err != nil {
		return nil, failure(api.CodeFailed, "%v", err)
	}
	<-sv.turn
	s.mu.Lock()
	s.services[c.Service] = sv
	s.changed()
	s.mu.Unlock()
	return sv, nil
}

func endingError() *api.Error { return failure(api.CodeEnding, "the supervisor is ending") }

func (s *Supervisor) startService(name string) *api.Error {
	sv, err := s.mine(name)
	if err != nil {
		return err
	}
	defer sv.done()
	s.mu.Lock()
	state, ending := sv.state.State, s.ending
	s.mu.Unlock()
	switch {
	case ending:
		return endingError()
	case state == api.Running:
		return nil
	}
	s.halted(sv) // a pending restart
	s.mu.Lock()
	halt := make(chan struct{})
	sv.halt, sv.delay = halt, 0
	s.mu.Unlock()
	if err := s.launch(sv, false); err != nil {
		s.halted(sv)
		sv.unlisten()
		s.note()
		return err
	}
	s.note()
	return nil
}

// remove removes a service that isn't running; the caller holds the turn.
func (s *Supervisor) remove(sv *service) *api.Error {
	s.mu.Lock()
	delete(s.services, sv.c.Service)
	sv.gone = true
	s.changed()
	s.mu.Unlock()
	_ = sv.log.Close()
	if err := os.RemoveAll(s.logDir(sv.c.Service)); err != nil {
		return failure(api.CodeFailed, "the log of %s: %v", sv.c.Service, err)
	}
	return nil
}

func (s *Supervisor) signal(name, signal string) *api.Error {
	number := unix.SignalNum(signal)
	if number == 0 {
		return failure(api.CodeInvalid, "%q is not a signal", clip.Bytes(signal, maxText))
	}
	r, err := s.running(name)
	if err != nil {
		return err
	}
	switch err := r.proc.Signal(number); {
	case errors.Is(err, os.ErrProcessDone):
		return notRunning(name)
	case err != nil:
		return failure(api.CodeFailed, "%s: %v", name, err)
	}
	return nil
}

func notRunning(name string) *api.Error {
	return failure(api.CodeNotRunning, "%s is not running", name)
}

// running returns the run of a service.
func (s *Supervisor) running(name string) (*run, *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.services[name]
	switch {
	case sv == nil:
		return nil, unknown(name)
	case sv.state.State != api.Running:
		return nil, notRunning(name)
	}
	return sv.run, nil
}

// pid returns a pidfd of a service's main process.
func (s *Supervisor) pid(name string) (*os.File, *api.Error) {
	r, err := s.running(name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.pidfd == nil {
		return nil, notRunning(name)
	}
	fd, e := unix.FcntlInt(r.pidfd.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if e != nil {
		return nil, failure(api.CodeFailed, "%s: %v", name, e)
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// passTime bounds passing a connection to a guard that doesn't receive.
const passTime = 5 * time.Second

// control returns a connection to the guard's control. Without a name it is that of
// the only guard.
func (s *Supervisor) control(name string) (*os.File, *api.Error) {
	if name == "" {
		s.mu.Lock()
		for _, n := range s.names() {
			if s.services[n].c.Role == spec.Guard {
				name = n
				break
			}
		}
		s.mu.Unlock()
		if name == "" {
			return nil, failure(api.CodeUnknown, "there is no guard")
		}
	}
	r, err := s.running(name)
	if err != nil {
		return nil, err
	}
	if r.control == nil {
		return nil, failure(api.CodeInvalid, "%s is not a guard", name)
	}
	fds, e := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if e != nil {
		return nil, failure(api.CodeFailed, "%v", e)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	defer theirs.Close()
	_ = r.control.SetWriteDeadline(time.Now().Add(passTime))
	if err := control.Pass(r.control, theirs); err != nil {
		ours.Close()
		if _, gone := s.running(name); gone != nil {
			return nil, gone
		}
		return nil, failure(api.CodeFailed, "%s accepts no connection: %v", name, err)
	}
	return ours, nil
}
