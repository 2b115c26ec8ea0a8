package supervisor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// The restart delays are Docker's: 100 ms before the first restart, doubled for each
// further one, up to a minute; a run of 10 s resets them.
const (
	firstDelay = 100 * time.Millisecond
	lastDelay  = time.Minute
	longRun    = 10 * time.Second
)

// drainTime is how long the output of an ended container is read: another process
// may hold a descriptor that was sent to it.
const drainTime = 2 * time.Second

// watch waits for the end of a run and records it. Once PID 1 is reaped, its pid
// namespace is empty: the kernel notifies the parent afterwards
// (zap_pid_ns_processes).
func (s *Supervisor) watch(sv *service, r *run) {
	status := r.proc.Wait()
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	r.drain(drainTime)
	r.code, r.oom = code, code == killed && r.group != nil && r.group.OOMKills() > 0
	r.removeGroup(s)
	if r.control != nil {
		r.control.Close()
	}

	s.mu.Lock()
	for _, f := range []*os.File{r.net, r.pidfd} {
		if f != nil {
			f.Close()
		}
	}
	r.net, r.pidfd = nil, nil
	sv.state.State, sv.state.ExitCode, sv.state.OOMKilled, sv.state.Finished = api.Exited, code, r.oom, now()
	if sv.halt != nil && !s.ending && sv.c.Restart == spec.RestartUnlessStopped {
		sv.state.State = api.Restarting
		if time.Since(r.started) >= longRun {
			sv.delay = 0
		}
		go s.again(sv, sv.halt, sv.next())
	}
	sv.state.Ready = false
	s.changed()
	close(r.ended)
	s.mu.Unlock()
	s.note()
}

// next returns the delay of the next restart.
func (sv *service) next() time.Duration {
	if sv.delay == 0 {
		sv.delay = firstDelay
	} else {
		sv.delay = min(2*sv.delay, lastDelay)
	}
	return sv.delay
}

// again restarts a service after a delay, until it runs or halt is closed.
func (s *Supervisor) again(sv *service, halt chan struct{}, delay time.Duration) {
	for {
		select {
		case <-halt:
			return
		case <-time.After(delay):
		}
		select {
		case <-halt:
			return
		case <-sv.turn:
		}
		s.mu.Lock()
		stop := sv.halt != halt || s.ending
		s.mu.Unlock()
		if stop {
			sv.done()
			return
		}
		err := s.launch(sv, true)
		if err == nil {
			sv.done()
			s.note()
			return
		}
		s.say("%s is not restarted: %v", sv.c.Service, err)
		s.mu.Lock()
		delay = sv.next()
		s.mu.Unlock()
		sv.done()
	}
}

// halted stops restarts of a service, and returns the run that may still have to be
// ended.
func (s *Supervisor) halted(sv *service) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sv.halt != nil {
		close(sv.halt)
		sv.halt = nil
	}
	if sv.state.State == api.Restarting {
		sv.state.State = api.Exited
		s.changed()
	}
	return sv.run
}

// stop ends a service; its caller holds the turn. If it returns without an error,
// nothing of the service runs.
func (s *Supervisor) stop(sv *service) *api.Error {
	r := s.halted(sv)
	defer sv.unlisten()
	if r == nil {
		return nil
	}
	select {
	case <-r.ended:
		return nil
	default:
	}
	err := r.proc.Signal(unix.SIGTERM)
	if err == nil && sv.c.Grace > 0 {
		select {
		case <-r.proc.Done():
		case <-time.After(sv.c.Grace):
		}
	}
	// PID 1: the kernel then kills its whole namespace, which is everything in the
	// group.
	if err := r.proc.Signal(unix.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return failure(api.CodeFailed, "%s can't be killed: %v", sv.c.Service, err)
	}
	select {
	case <-r.ended:
		return nil
	case <-time.After(killTime):
		return failure(api.CodeFailed, "%s was killed but has not ended after %v: one of its processes is blocked in the kernel, perhaps by a file system", sv.c.Service, killTime)
	}
}

// killTime is how long a killed run may take to end.
const killTime = 30 * time.Second

// shutdown stops everything concurrently, and refuses later requests. It returns
// when nothing runs and ended is closed.
func (s *Supervisor) shutdown() *api.Error {
	s.mu.Lock()
	first := !s.ending
	s.ending = true
	names := s.names()
	s.mu.Unlock()
	if !first {
		<-s.ended
		return nil
	}
	defer close(s.ended)
	failures := make(chan *api.Error, len(names))
	for _, name := range names {
		go func() {
			sv, err := s.mine(name)
			if err != nil { // removed
				failures <- nil
				return
			}
			defer sv.done()
			failures <- s.stop(sv)
		}()
	}
	var problems []error
	for range names {
		if err := <-failures; err != nil {
			problems = append(problems, err)
		}
	}
	if err := s.save(); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return failure(api.CodeFailed, "%v", fmt.Errorf("the supervisor is ending with what still runs: %w", err))
	}
	return nil
}
