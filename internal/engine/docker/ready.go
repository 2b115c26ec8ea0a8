package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Lines that workshop-init prints on stdout when it is ready, or can't become
// ready.
const (
	readyLine    = "READY"
	failedPrefix = "FAILED"
	notePrefix   = "NOTE " // of a line that `up` shows
)

// maxNotes bounds the kept notes.
const maxNotes = 32

// maxLine bounds the kept bytes of a line, and of stderr.
const maxLine = 4 << 10

// readiness is the output of a container until it is ready.
type readiness struct {
	done  chan struct{}
	told  chan struct{} // closed when made is known
	conn  io.Closer
	once  sync.Once
	ready bool
	line  string // of FAILED
	made  string // of MADE, what the container says of itself
	start string // the name of the start that it is of; empty: not known
	notes []string

	mu     sync.Mutex
	stderr []byte
}

func newReadiness(conn io.Closer) *readiness {
	return &readiness{done: make(chan struct{}), told: make(chan struct{}), conn: conn}
}

func (rd *readiness) close() { rd.once.Do(func() { rd.conn.Close() }) }

// listen attaches to a container before it is started, so that no line is missed.
// It detaches at READY: an attached client that doesn't read would block the
// container's output.
func (e *Engine) listen(ctx context.Context, id, start string, tty bool) (*readiness, error) {
	conn, err := e.attach(ctx, id)
	if err != nil {
		return nil, err
	}
	rd := newReadiness(conn.Conn)
	rd.start = start
	go rd.read(conn.Reader, tty)
	return rd, nil
}

// errHeard ends the copy once the line is found.
var errHeard = fmt.Errorf("heard")

func (rd *readiness) read(r io.Reader, tty bool) {
	defer close(rd.done)
	defer rd.close()
	out := &lineWriter{line: rd.hear}
	if tty {
		_, _ = io.Copy(out, r)
		return
	}
	_ = copyFrames(out, rd, r, false)
}

// hear parses one line of stdout.
func (rd *readiness) hear(line string) error {
	line = strings.TrimRight(line, "\r")
	if line == readyLine {
		rd.ready = true
		return errHeard
	}
	if rest, ok := strings.CutPrefix(line, failedPrefix); ok && (rest == "" || rest[0] == ' ') {
		rd.line = strings.TrimSpace(rest)
		return errHeard
	}
	if report, ok := strings.CutPrefix(line, made.Prefix); ok && report != "" && rd.made == "" {
		rd.made = report
		close(rd.told)
	}
	if note, ok := strings.CutPrefix(line, notePrefix); ok && len(rd.notes) < maxNotes {
		rd.notes = append(rd.notes, note)
	}
	return nil
}

// Write keeps the end of stderr.
func (rd *readiness) Write(p []byte) (int, error) {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	rd.stderr = append(rd.stderr, p...)
	if over := len(rd.stderr) - maxLine; over > 0 {
		rd.stderr = rd.stderr[over:]
	}
	return len(p), nil
}

func (rd *readiness) lastWords() string {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	return strings.TrimSpace(string(rd.stderr))
}

// lineWriter calls line for every line, cut at maxLine or, of a report, at
// [made.MaxLine].
type lineWriter struct {
	line func(string) error
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.add(p)
			return n, nil
		}
		w.add(p[:i])
		line := w.rest
		w.rest, p = nil, p[i+1:]
		if err := w.line(string(line)); err != nil {
			return n, err
		}
	}
}

func (w *lineWriter) add(p []byte) {
	for _, limit := range []int{maxLine, made.MaxLine} {
		part := p[:min(len(p), max(0, limit-len(w.rest)))]
		w.rest, p = append(w.rest, part...), p[len(part):]
		if !bytes.HasPrefix(w.rest, []byte(made.Prefix)) {
			return
		}
	}
}

// wait waits until the container of a step is ready.
func (r *run) wait(ctx context.Context, s engine.Step) error {
	if r.p.WaitTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.p.WaitTimeout, &engine.NotReadyError{
			Service: s.Service, Reason: fmt.Sprintf("not ready after %s (see `workshop logs %s`, or raise --wait-timeout)", r.p.WaitTimeout, s.Service)})
		defer cancel()
	}
	id := s.ObjectID
	if id == "" {
		id = r.id(s.Service)
	}
	r.mu.Lock()
	rd := r.ready[id]
	r.mu.Unlock()
	if rd == nil {
		return r.alreadyReady(ctx, s, id)
	}
	told := rd.told
	for {
		select {
		case <-told: // before it waits for a room, in which it may not be
			told = nil
			if err := r.compare(ctx, s, id, rd.start, rd.made); err != nil {
				return err
			}
		case <-rd.done:
			for _, note := range rd.notes {
				r.runner.Emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: note})
			}
			// Why it isn't what was asked for also says why it isn't ready.
			if told != nil && (rd.ready || rd.made != "") {
				if err := r.compare(ctx, s, id, rd.start, rd.made); err != nil {
					return err
				}
			}
			return r.verdict(ctx, rd, id, s.Service)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(logEvery):
			// A killed run had started it, and it was ready before listen.
			if said := r.e.said(ctx, id); said.ready {
				return r.compare(ctx, s, id, said.start, said.made)
			}
		}
	}
}

// logEvery is how often the log of a started but silent container is checked.
const logEvery = time.Second

func (r *run) verdict(ctx context.Context, rd *readiness, id, service string) error {
	if rd.ready {
		return nil
	}
	if rd.line != "" {
		return &engine.NotReadyError{Service: service, Reason: rd.line}
	}
	ctx, cancel := engine.Finish(ctx)
	defer cancel()
	reason := "it ended before it was ready"
	c, err := r.e.inspect(ctx, id, service)
	switch {
	case err != nil:
		return conflict(err)
	case isGoing(c.State):
		return engine.Conflict("the container of %s is being removed", service)
	case !c.State.Running:
		reason += fmt.Sprintf(" (exit code %d)", c.State.ExitCode)
		if c.State.OOMKilled {
			reason += ", OOM-killed"
		}
	}
	return &engine.NotReadyError{Service: service, Reason: reason, Stderr: rd.lastWords()}
}

// told returns the failure that a container printed, if another step failed first as
// a consequence.
func (r *run) told() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, service := range sortedKeys(r.ids) {
		rd := r.ready[r.ids[service]]
		if rd == nil {
			continue
		}
		select {
		case <-rd.done:
			if rd.line != "" {
				return &engine.NotReadyError{Service: service, Reason: service + ": " + rd.line}
			}
		default:
		}
	}
	return nil
}

// healthEvery is how often the health of a running container without a READY line
// in its log is checked.
const healthEvery = 500 * time.Millisecond

// alreadyReady waits for a container that ran before this plan: its log has the
// READY line, unless the log was rotated or the container isn't ready yet. Then its
// health command decides. It compares one that was not compared since its start.
func (r *run) alreadyReady(ctx context.Context, s engine.Step, id string) error {
	c, service := r.p.Compiled, s.Service
	said := r.e.said(ctx, id)
	compared := r.e.opts.Compared.Has(r.p.Project, service, said.start)
	for {
		if !compared && said.made != "" { // before it is ready, which it may never be
			if err := r.compareAgain(ctx, s, id, said); err != nil {
				return err
			}
			compared = true
		}
		if said.ready && compared {
			return nil
		}
		var out bytes.Buffer
		err := r.e.health(ctx, id, c.Project.Name, service, c.Roles[service], &out)
		if isSilent(err) || err == nil && compared {
			return err
		}
		if !compared {
			if said = r.e.said(ctx, id); err == nil {
				return r.compareAgain(ctx, s, id, said)
			}
		}
		state, inspect := r.e.inspect(ctx, id, service)
		switch {
		case cerrdefs.IsNotFound(inspect):
			return conflict(inspect)
		case inspect == nil && !state.State.Running: // it ran when it was observed
			return &engine.ConflictError{Err: &engine.NotReadyError{
				Service: service, Reason: fmt.Sprintf("it ended (exit code %d)", state.State.ExitCode), Stderr: strings.TrimSpace(out.String())}}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(healthEvery):
		}
	}
}

// health returns nil if a running container is ready. For a worker it checks the
// dial-in socket, which opens just before READY.
func (e *Engine) health(ctx context.Context, id, project, service string, role compose.Role, out io.Writer) error {
	name, program := "gate", compose.InitPath
	switch role {
	case compose.RoleRoom:
		name, program = "room", compose.ImageInit
	case compose.RoleGuard:
		name, program = "guard", compose.ImageInit
	case compose.RoleOutlet:
		name, program = "outlet", compose.ImageInit
	case compose.RoleWorker:
		w, err := e.lookAt(ctx, id, project, service)
		if err != nil {
			return err
		}
		if state := e.dialInOf(w); state != dialInGone {
			conn, err := dialin.Accept(ctx, w.dialIn, w.pid)
			if err == nil {
				return conn.Close()
			}
			if state == dialInHere {
				return err
			}
		}
	}
	code, err := e.execIn(ctx, id, program, engine.ExecOptions{Command: []string{program, "health", name}, Stdout: out, Stderr: out})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s is not ready", service)
	}
	return err
}

// isGoing reports whether a container is being removed.
func isGoing(s *container.State) bool { return s.Status == "removing" || s.Dead }

// neverFinished is the engine's time of an event that hasn't happened.
const neverFinished = "0001-01-01T00:00:00Z"

// said looks for the READY line, and what is before it, since the end of the container's
// previous run: the lines may be older than the start time that the engine records.
func (e *Engine) said(ctx context.Context, id string) *readiness {
	rd := newReadiness(nil)
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := e.inspect(ctx, id, id)
	if err != nil {
		return rd
	}
	rd.start = startOf(id, c.State.FinishedAt)
	since := c.State.FinishedAt
	if since == neverFinished {
		since = ""
	}
	r, err := answer(ctx, id, func(ctx context.Context) (io.ReadCloser, error) {
		return e.cli.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, Since: since})
	})
	if err != nil {
		return rd
	}
	rd.conn = r
	rd.read(io.LimitReader(r, 1<<20), c.Config.Tty)
	return rd
}
