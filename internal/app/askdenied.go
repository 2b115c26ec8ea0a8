package app

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/guard/control"
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

// refused returns what was refused to a worker since a time, all of it: the guard
// counts what it refuses before a program is told. Without an answer until ctx ends,
// as of a guard that hangs, it returns nothing: it only helps to understand a
// failure.
func (l *guardLine) refused(ctx context.Context, worker string, since time.Time) []Refusal {
	found := make(chan []Refusal, 1)
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		connected := l.c != nil
		d, err := l.ask(ctx, worker, since)
		if err != nil && connected && ctx.Err() == nil { // another guard may have taken its place
			d, _ = l.ask(ctx, worker, since)
		}
		list := Refusals{Worker: worker}
		for _, e := range d.Denied {
			e.Workers = []string{worker} // of this worker's room
			list.Add(e)
		}
		found <- list.List
	}()
	select {
	case list := <-found:
		return list
	case <-ctx.Done():
		return nil
	}
}

func (l *guardLine) ask(ctx context.Context, worker string, since time.Time) (d control.Denials, err error) {
	if err := l.opened(); err != nil {
		return d, err
	}
	conn := l.conn
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err = l.c.Do(control.Request{Op: control.OpDenied, Worker: worker, Since: since}, &d); err != nil {
		l.drop()
	}
	return d, err
}

// refusedSince asks once what was refused to a worker since a time.
func (r *Running) refusedSince(ctx context.Context, worker string, since time.Time) []Refusal {
	ctx, cancel := context.WithTimeout(ctx, AskTime)
	defer cancel()
	l := newGuardLine(ctx, r)
	defer l.close()
	return l.refused(ctx, worker, since)
}
