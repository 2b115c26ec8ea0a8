package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/sshagent"
)

// brokerIdle is how long a broker waits for a guard that isn't there.
const brokerIdle = 10 * time.Minute

// maxBrokerStart bounds what a broker is told at its start, in bytes.
const maxBrokerStart = 4 << 20

// Broker is the process that leases a project's credentials: it reads a [BrokerStart],
// prints a line when it listens, and serves until the project is down.
func (env *Env) Broker(ctx context.Context, in io.Reader, out io.Writer) error {
	err := env.serveBroker(ctx, in, out)
	if err != nil {
		fmt.Fprintln(out, firstLine(err)) // `up` shows it, where it wasn't ready
	}
	return err
}

func (env *Env) serveBroker(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := undumpable(); err != nil {
		return err
	}
	var start BrokerStart
	if err := readStart(in, maxBrokerStart, &start); err != nil || !filepath.IsAbs(start.Runtime) {
		return errStart
	}
	socket := brokerSocket(start.Runtime)
	lock, err := lockOwn(ctx, socket, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	l, err := listenOwn(socket)
	if err != nil {
		return err
	}
	defer l.Close()
	logs, err := os.OpenFile(socket+".log", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	e, err := env.Engine(ctx, start.Engine, EngineOptions{
		Lookup: env.Lookup, StateDir: env.StateDir(), CacheDir: env.CacheDir(), Version: env.Version, Project: start.Project,
		Endpoint: start.Endpoint, Context: start.Context,
	})
	if err != nil {
		return err
	}
	defer e.Close()
	var use atomic.Pointer[broker.Use] // readings go on beside the loop
	use.Store(&start.Use)
	s := &broker.Server{
		Attach: func(ctx context.Context) (io.ReadWriteCloser, error) {
			if len(use.Load().Lines) == 0 {
				return nil, errors.New("no line needs the guard")
			}
			conn, err := e.Control(ctx, start.Project, start.Directory)
			if err != nil {
				return nil, err
			}
			return attach(conn, controlTime)
		},
		Use: func(u broker.Use) error {
			// A command without the variables changes the lines alone.
			values := maps.Clone(use.Load().Values)
			maps.Copy(values, u.Values)
			u.Values = values
			use.Store(&u)
			return nil
		},
		Allowed: func() (broker.Allowed, error) { return env.allowed(*use.Load()) },
		Agents:  func() (map[string][]sshagent.Key, error) { return env.agentKeys(*use.Load()) },
		Dial:    func() (net.Conn, error) { return dialAgent(use.Load().Values[agentVariable]) },
		Ask: func(ctx context.Context, m *lease.Ask) (lease.Decided, error) {
			return env.askPush(ctx, *use.Load(), m)
		},
		Gone: l.gone,
		Idle: brokerIdle,
		Log:  log.New(&boundedLog{f: logs}, "", log.LstdFlags|log.LUTC),
	}
	lookup := func(name string) (string, bool) {
		if v, ok := use.Load().Values[name]; ok {
			return v, true
		}
		return env.Lookup(name)
	}
	s.Read = func(ctx context.Context, c credential.Credential) (broker.Value, error) {
		return readCredential(ctx, c, lookup)
	}
	sayReady(out)
	err = s.Run(ctx, l)
	s.Log.Printf("ends: %v", err)
	if broker.IsStop(err) || errors.Is(err, broker.ErrIdle) {
		err = nil
	}
	return err
}

// attach attaches to a guard, whose answer must be there in time: one that hangs is asked again.
func attach(conn io.ReadWriteCloser, within time.Duration) (io.ReadWriteCloser, error) {
	late := time.AfterFunc(within, func() { conn.Close() })
	c, err := control.NewClient(conn).Attach()
	if !late.Stop() {
		return nil, fmt.Errorf("the guard doesn't answer within %v", within)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// maxBrokerLog bounds the broker's log, in bytes: a guard that crashes again and again is
// attached each time.
const maxBrokerLog = 256 << 10

// maxBrokerLine bounds a line of it, in bytes.
const maxBrokerLine = 2 << 10

// boundedLog begins its file anew where it would be too long.
type boundedLog struct {
	f *os.File
	n int
}

func (l *boundedLog) Write(p []byte) (int, error) {
	// A guard or a worker may have said it.
	line := Printable(clip.Bytes(string(p), maxBrokerLine)) + "\n"
	if l.n += len(line); l.n > maxBrokerLog {
		if err := l.f.Truncate(0); err != nil {
			return 0, err
		}
		l.n = len(line)
	}
	if _, err := l.f.WriteString(line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// readCredential reads the value of a credential, and the authorities that go with it.
func readCredential(ctx context.Context, c credential.Credential, lookup func(string) (string, bool)) (v broker.Value, err error) {
	if v.Roots, err = readRoots(c); err != nil {
		return broker.Value{}, err
	}
	v.Secret, err = c.Source.Read(ctx, lookup)
	return v, err
}

// readRoots reads the authorities of a credential; nil: the machine's.
func readRoots(c credential.Credential) ([][]byte, error) {
	if c.Authorities == "" {
		return nil, nil
	}
	roots, err := facts.ReadAuthorities(c.Authorities)
	if err != nil {
		return nil, err
	}
	if size := rootsSize(roots); size > maxRoots {
		return nil, fmt.Errorf("%s has %d bytes of certificates, more than %d: name the host's own authority alone", c.Authorities, size, maxRoots)
	}
	return roots, nil
}

// maxRoots bounds the certificates of a credential, in bytes: they are in each lease, whose
// message has [lease.MaxLine] bytes at most.
const maxRoots = 32 << 10

func rootsSize(roots [][]byte) (n int) {
	for _, r := range roots {
		n += len(r)
	}
	return n
}
