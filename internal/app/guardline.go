package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// idleTime is how long a connection to the guard's control stays open between two
// questions: each is a process in the guard's container, on Docker.
const idleTime = 10 * time.Second

// guardLine asks the guard of a running project, over one connection where
// questions follow each other: to connect takes an engine up to 100 ms, a question
// less than one. It is safe for use by several goroutines.
type guardLine struct {
	connect func() (io.ReadWriteCloser, error)

	mu   sync.Mutex // of what follows, held during a question
	conn io.ReadWriteCloser
	c    *control.Client
	idle *time.Timer
}

// newGuardLine connects when it is used first. The context is that of its
// connections.
func newGuardLine(ctx context.Context, r *Running) *guardLine {
	return &guardLine{connect: func() (io.ReadWriteCloser, error) { return r.Control(ctx, r.Name, r.Dir) }}
}

// open connects, so that the next question needn't.
func (l *guardLine) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.opened() // who asks tries again
}

func (l *guardLine) opened() error {
	if l.c != nil {
		l.idle.Reset(idleTime)
		return nil
	}
	conn, err := l.connect()
	if err != nil {
		return err
	}
	l.conn, l.c = conn, control.NewClient(conn)
	if l.idle == nil {
		l.idle = time.AfterFunc(idleTime, l.close)
	}
	l.idle.Reset(idleTime)
	return nil
}

// connected reports whether a question can be asked at once.
func (l *guardLine) connected() bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	return l.c != nil
}

// close ends the connection; the next question makes another.
func (l *guardLine) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

func (l *guardLine) drop() {
	if l.c != nil {
		_ = l.c.Close() // nothing is on its way
		l.conn, l.c = nil, nil
	}
}

// failures are what a worker's programs saw fail by the guard.
type failures struct {
	refused     []Refusal
	unreachable []events.Line // what is allowed, and can't be reached
}

// failures returns what failed for a worker since a time, all of it: the guard
// counts it before a program is told. Without an answer until ctx ends, as of a guard
// that hangs, it returns nothing: it only helps to understand a failure.
func (l *guardLine) failures(ctx context.Context, worker string, since time.Time) failures {
	found := make(chan failures, 1)
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		connected := l.c != nil
		answer, err := l.ask(ctx, worker, since)
		if err != nil && connected && ctx.Err() == nil { // another guard may have taken its place
			answer, _ = l.ask(ctx, worker, since)
		}
		var f failures
		list, sharing := Refusals{Worker: worker}, answer.Workers
		if !slices.Contains(sharing, worker) { // of a guard of before
			sharing = []string{worker}
		}
		for _, e := range answer.Events {
			e.Room, e.Workers = answer.Room, sharing
			if e.Verdict == events.Deny {
				list.Add(e)
			} else {
				f.unreachable = append(f.unreachable, e)
			}
		}
		f.refused = list.List
		found <- f
	}()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return failures{}
	}
}

func (l *guardLine) ask(ctx context.Context, worker string, since time.Time) (d control.Failures, err error) {
	if err := l.opened(); err != nil {
		return d, err
	}
	conn := l.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err = l.c.Do(control.Request{Op: control.OpFailed, Worker: worker, Since: since}, &d); err != nil {
		l.drop()
	}
	return d, err
}

// failuresSince asks once what failed for a worker since a time.
func (r *Running) failuresSince(ctx context.Context, worker string, since time.Time) failures {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	l := newGuardLine(ctx, r)
	defer l.close()
	return l.failures(ctx, worker, since)
}

// hintUnreachable says of what is allowed why it can't be reached; empty for none.
func (f failures) hintUnreachable() string {
	if len(f.unreachable) == 0 {
		return ""
	}
	l := f.unreachable[len(f.unreachable)-1] // a look-up comes before the connection that says more
	target := EventTarget(l)
	if target == "" { // of the upstream proxy, whatever was dialled
		return fmt.Sprintf("a connection is %s; to try it: `workshop firewall explain HOST`", WhyText(l))
	}
	return fmt.Sprintf("%s is %s; to try it: `workshop firewall explain %s`", target, WhyText(l), shellquote.Quote(target))
}
