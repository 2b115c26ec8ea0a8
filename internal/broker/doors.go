package broker

import (
	"cmp"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/sshagent"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

const (
	// maxAgentConns of a worker at a time; one more is refused.
	maxAgentConns = 16
	// agentTime bounds one answer of the user's agent: a person may have to touch a key.
	agentTime = 2 * time.Minute
	// maxAgentLog are the lines of a worker in the log, for each agentLogFor.
	maxAgentLog = 20
	agentLogFor = time.Minute
	// agentBurst requests of a worker are answered at once, and then one each agentEvery.
	agentBurst = 100
	agentEvery = 20 * time.Millisecond
)

// doors are the dial-in directories in which the user's agent is offered.
type doors struct {
	dial func() (net.Conn, error)
	log  *log.Logger
	open map[string]*door
}

// door is that of one worker. Who connects is a program of the worker, by the directory,
// which no other has; which one doesn't matter, so no pid is asked for (SO_PEERCRED).
type door struct {
	dir  string
	keys []sshagent.Key
	l    net.Listener
	file os.FileInfo
	doors
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	lines  int
	since  time.Time
	pace   *rate.Limiter // of the answers of all connections together
}

// set opens what is wanted and closes all else: its connections end at once.
func (d *doors) set(want map[string][]sshagent.Key) {
	for dir, x := range d.open {
		keys, is := want[dir]
		if !is || !reflect.DeepEqual(keys, x.keys) || !x.there() {
			x.close()
			delete(d.open, dir)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(want)) {
		if d.open[dir] != nil {
			continue
		}
		x := &door{dir: dir, keys: want[dir], doors: doors{dial: d.dial, log: d.log}, conns: map[net.Conn]bool{}, pace: rate.NewLimiter(rate.Every(agentEvery), agentBurst)}
		if err := x.listen(); err != nil {
			d.log.Printf("agents at %s: %v", filepath.Base(dir), err)
			continue
		}
		d.open[dir] = x
		go x.accept()
	}
}

// status are the keys that are offered now.
func (d *doors) status() (out []AgentStatus) {
	for _, dir := range slices.Sorted(maps.Keys(d.open)) {
		for _, k := range d.open[dir].keys {
			out = append(out, AgentStatus{Directory: dir, Credential: k.Name, Key: k.Blob})
		}
	}
	return out
}

func (x *door) socket() string { return filepath.Join(x.dir, compose.AgentSocket) }

// there reports whether the socket is still in the directory.
func (x *door) there() bool {
	now, err := os.Lstat(x.socket())
	return err == nil && os.SameFile(now, x.file)
}

// listen writes what programs read beside the socket, and listens.
func (x *door) listen() error {
	var signing []byte
	for i := range x.keys {
		if signing == nil && slices.Contains(x.keys[i].Namespaces, compose.GitNamespace) {
			signing = x.keys[i].PublicKey()
		}
	}
	err := errors.Join(
		atomicfile.Write(filepath.Join(x.dir, compose.KnownHosts), sshagent.KnownHosts(x.keys), 0o644),
		atomicfile.Write(filepath.Join(x.dir, compose.SigningKey), signing, 0o644))
	if err != nil {
		return err
	}
	if x.l, err = dialin.Listen(x.dir, compose.AgentSocket); err != nil {
		return err
	}
	if x.file, err = os.Lstat(x.socket()); err != nil {
		x.l.Close()
	}
	return err
}

func (x *door) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.l.Close()
	for c := range x.conns {
		c.Close()
	}
	for _, name := range []string{compose.AgentSocket, compose.KnownHosts, compose.SigningKey} {
		_ = os.Remove(filepath.Join(x.dir, name))
	}
}

// take counts a connection, unless there are too many or the door is closed.
func (x *door) take(c net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || len(x.conns) >= maxAgentConns {
		return false
	}
	x.conns[c] = true
	return true
}

func (x *door) accept() {
	for {
		c, err := x.l.Accept()
		if err != nil {
			return
		}
		if !x.take(c) {
			c.Close()
			continue
		}
		go func() {
			defer func() {
				c.Close()
				x.mu.Lock()
				defer x.mu.Unlock()
				delete(x.conns, c)
			}()
			if err := sshagent.Serve(paced{c, x.pace}, x.keys, x.agent, x.say); err != nil {
				x.say(sshagent.Verdict{Refused: err})
			}
		}()
	}
}

// agent connects to the user's agent, for one connection of a worker's. It is among the
// connections that end with the door.
func (x *door) agent() (io.ReadWriteCloser, error) {
	c, err := x.dial()
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		c.Close()
		return nil, net.ErrClosed
	}
	return &timed{c}, nil
}

// timed is a connection to the user's agent, each of whose answers has agentTime.
type timed struct{ net.Conn }

func (t *timed) Write(b []byte) (int, error) {
	if err := t.SetDeadline(time.Now().Add(agentTime)); err != nil {
		return 0, err
	}
	return t.Conn.Write(b)
}

// paced is a connection of a worker's program, each of whose answers waits for its turn: what
// they cost is the host's CPU, and the user's agent does one at a time.
type paced struct {
	net.Conn
	pace *rate.Limiter
}

func (p paced) Write(b []byte) (int, error) {
	time.Sleep(p.pace.Reserve().Delay())
	return p.Conn.Write(b)
}

// say logs what was signed or refused. A worker can't fill the log.
func (x *door) say(v sshagent.Verdict) {
	x.mu.Lock()
	now := time.Now()
	if now.Sub(x.since) >= agentLogFor {
		x.since, x.lines = now, 0
	}
	x.lines++
	n, closed := x.lines, x.closed
	x.mu.Unlock()
	name := filepath.Base(x.dir)
	switch {
	case closed || n > maxAgentLog:
	case n == maxAgentLog:
		x.log.Printf("agents at %s: more in this minute is not logged", name)
	case v.Refused != nil:
		x.log.Printf("agents at %s: refused: %v", name, v.Refused)
	default:
		x.log.Printf("agents at %s: %s", name, cmp.Or(v.For, "bound"))
	}
}
