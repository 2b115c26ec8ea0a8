package broker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// Version of what is said at the socket, and of [Use].
const Version = 1

// Op is what a command asks of a broker.
type Op string

// The operations. Each is answered by how credentials stand after it.
const (
	OpStatus Op = "status"
	// OpUse: an `up` says what the broker is for.
	OpUse Op = "use"
	// OpLook: what may be leased has changed. What must go has gone at the answer.
	OpLook Op = "look"
	OpStop Op = "stop"
)

// Request is one line at the socket.
type Request struct {
	Version int  `json:"version"`
	Op      Op   `json:"op"`
	Use     *Use `json:"use,omitempty"`
}

// Use is what an `up` says.
type Use struct {
	// Directory is the project's, by which the user's consent is found.
	Directory string `json:"directory"`
	// File is the user's file of credentials.
	File string `json:"file"`
	// Lines are those of the workshop, each with what the user must have agreed to.
	Lines []Line `json:"lines"`
	// Agents are the workshop's lines of `agents`, one for each worker that has it.
	Agents []Agent `json:"agents,omitempty"`
	// Approvals says whom the user wants to be asked about pushes; nil: nobody.
	Approvals *Approvals `json:"approvals,omitempty"`
	// Values are variables of the environment of `up` that credentials are read from.
	Values map[string]string `json:"values,omitempty"`
}

// Line is one line of the workshop's with a credential, in one room.
type Line struct {
	lease.Line
	Consents []string `json:"consents"`
	// Workers are those of its room.
	Workers []string `json:"workers,omitempty"`
}

// Approvals is what the user's settings approvals_command and approvals_socket say.
type Approvals struct {
	Command []string `json:"command,omitempty"` // absolute
	Socket  string   `json:"socket,omitempty"`
	// Display are variables by which the command finds the user's screen.
	Display []string `json:"display,omitempty"`
}

// Agent is what a worker may have signed by one of the user's keys.
type Agent struct {
	Worker     string `json:"worker"`
	Directory  string `json:"directory"` // the worker's dial-in directory
	Credential string `json:"credential"`
	// Key is the public key, as the user's agent has it.
	Key        []byte      `json:"key"`
	Hosts      []AgentHost `json:"hosts,omitempty"`
	Namespaces []string    `json:"namespaces,omitempty"`
	// Consent is what the user must have agreed to.
	Consent string `json:"consent"`
}

// AgentHost is a host that a key logs in at.
type AgentHost struct {
	Name string `json:"name"`
	Port uint16 `json:"port"`
}

// Answer is the broker's.
type Answer struct {
	Version int    `json:"version"`
	Error   string `json:"error,omitempty"`
	// Attached: a guard has said its lines.
	Attached    bool     `json:"attached"`
	Problem     string   `json:"problem,omitempty"`
	Credentials []Status `json:"credentials"`
	// Agents are the keys that workers have now.
	Agents []AgentStatus `json:"agents,omitempty"`
}

// AgentStatus is a key that a worker has.
type AgentStatus struct {
	Directory  string `json:"directory"`
	Credential string `json:"credential"`
	Key        []byte `json:"key"`
}

// Bounds of a connection at the socket.
const (
	maxRequest = 4 << 20 // bytes: values of 64 KiB, and all lines
	callTime   = 10 * time.Second
)

// Call asks the broker at a socket.
func Call(ctx context.Context, socket string, q Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	q.Version = Version
	b, err := plainjson.Marshal(q)
	if err != nil {
		return Answer{}, err
	}
	defer clear(b)
	if _, err := c.Write(append(b, '\n')); err != nil {
		return Answer{}, err
	}
	var a Answer
	if err := json.NewDecoder(io.LimitReader(c, maxRequest)).Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("the broker's answer: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

// errStopped ends a broker that was told to.
var errStopped = errors.New("stopped")

// IsStop reports whether a broker ended because it was told to.
func IsStop(err error) bool { return errors.Is(err, errStopped) }

// accept serves the socket. Who can connect to it is this user: its directory is theirs.
func (r *loop) accept(l net.Listener, cancel context.CancelCauseFunc) {
	for {
		c, err := l.Accept()
		if err != nil {
			cancel(fmt.Errorf("the broker's socket: %w", err))
			return
		}
		go r.answer(c, cancel)
	}
}

func (r *loop) answer(c net.Conn, cancel context.CancelCauseFunc) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(callTime))
	q, err := readRequest(c)
	a := Answer{Version: Version, Credentials: []Status{}}
	if err == nil {
		done := make(chan struct{})
		r.do(func() {
			defer close(done)
			if q.Op == OpUse {
				err = r.Use(*q.Use)
			}
			if err == nil && q.Op != OpStatus {
				r.next(true)
			}
			a.Attached, a.Problem, a.Credentials = r.attached, r.problem, r.core.Status(time.Now())
			a.Agents = r.doors.status()
		})
		select {
		case <-done:
		case <-r.ctx.Done():
			err = errStopped
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	_ = json.NewEncoder(c).Encode(a)
	if q.Op == OpStop && err == nil {
		cancel(errStopped)
	}
}

var errRequest = errors.New("a request that is not valid, or of a version or with a field that isn't known")

// readRequest reads the line of a request. What is wrong isn't quoted: it may be a value.
func readRequest(in io.Reader) (q Request, err error) {
	line, err := bufio.NewReader(io.LimitReader(in, maxRequest)).ReadBytes('\n')
	defer clear(line)
	if err != nil {
		return Request{}, errRequest
	}
	return ParseRequest(line)
}

// ParseRequest reads a request.
func ParseRequest(line []byte) (q Request, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil || d.More() || q.Version != Version {
		return Request{}, errRequest
	}
	switch q.Op {
	case OpStatus, OpLook, OpStop:
		if q.Use != nil {
			return Request{}, errRequest
		}
	case OpUse:
		if q.Use == nil {
			return Request{}, errRequest
		}
	default:
		return Request{}, errRequest
	}
	return q, nil
}
