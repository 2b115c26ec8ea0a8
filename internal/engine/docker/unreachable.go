package docker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/docker/docker/client"

	"github.com/llmdo/workshop/internal/engine"
)

// UnreachableError means that the engine doesn't respond.
type UnreachableError struct {
	Endpoint string
	// Flavour is the one that was asked for; empty: any.
	Flavour engine.Flavour
	Err     error
	Hint    string
	// Absent: nothing is at the default endpoint, so there is no Docker Engine here.
	Absent bool
}

// Error returns one line; Hint has the remedy.
func (e *UnreachableError) Error() string {
	name := "Docker Engine"
	if e.Flavour == engine.FlavourPodman {
		name = string(e.Flavour)
	}
	msg := "no " + name + " answers at " + e.Endpoint
	if e.Err != nil {
		msg += ": " + cause(e.Err)
	}
	if e.Hint != "" {
		msg += ": " + e.Hint
	}
	return msg
}

// Unwrap returns the client's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ExitCode is 5: engine.
func (e *UnreachableError) ExitCode() int { return 5 }

// foreignSocketError is a socket at which another user listens.
type foreignSocketError struct{ uid uint32 }

func (e *foreignSocketError) Error() string {
	return fmt.Sprintf("uid %d listens there, who is neither root nor you", e.uid)
}

// leadsTo returns where a symbolic link leads, "" for something else.
func leadsTo(path string) string {
	to, err := os.Readlink(path)
	if err != nil || filepath.IsAbs(to) {
		return to
	}
	return filepath.Join(filepath.Dir(path), to)
}

// isFull reports whether the listener at a socket has more connections waiting than it
// takes (EAGAIN, unix(7)): the client's error doesn't keep the dialer's.
func isFull(socket string) bool {
	c, err := net.DialTimeout("unix", socket, dialTime)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.EAGAIN)
}

// cause returns the innermost message of a chain that repeats the endpoint.
func cause(err error) string {
	msg := err.Error()
	if i := strings.LastIndex(msg, ": "); i >= 0 && strings.Contains(msg, "dial") {
		return msg[i+2:]
	}
	return msg
}

// closed reports whether an error is that the engine closed the connection.
func closed(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// explain turns a failed connection into an [UnreachableError], says of a closed one that
// the engine may have ended, and returns other errors unchanged.
func (e *Engine) explain(err error) error {
	if err != nil && closed(err) {
		// systemd accepts connections for a podman that can't start.
		if install := podmanLacks(e.endpoint.host); install != "" && e.opts.Flavour == engine.FlavourPodman {
			return &UnreachableError{Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: errors.New("it closed the connection"), Hint: install}
		}
		return fmt.Errorf("the engine at %s closed the connection (%w): if it has ended, start it, and run the command again", e.endpoint.host, err)
	}
	if a, ok := errors.AsType[*answerError](err); ok {
		return &UnreachableError{Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: a, Hint: restartHint}
	}
	foreign, isForeign := errors.AsType[*foreignSocketError](err)
	if err == nil || !isForeign && !client.IsErrConnectionFailed(err) && !strings.Contains(err.Error(), "permission denied while trying to connect") {
		return err
	}
	out := &UnreachableError{Endpoint: e.endpoint.host, Flavour: e.opts.Flavour, Err: err}
	socket := e.endpoint.socket()
	info, statErr := os.Stat(socket)
	absent := errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Mode().Type() != fs.ModeSocket
	out.Absent = absent && e.endpoint.host == client.DefaultDockerHost && e.endpoint.context == ""
	switch {
	case isForeign:
		out.Err, out.Hint = foreign, "don't use it: see whose it is with `sudo ss -xlp src "+socket+"`"
	case socket == "":
		out.Hint = "check DOCKER_HOST or `docker context ls`"
	case e.opts.Flavour == engine.FlavourPodman && (errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied")):
		out.Err, out.Hint = errors.New("permission denied"), startUserPodman
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied"):
		out.Err, out.Hint = errors.New("permission denied"), "run `sudo usermod -aG docker $USER`, then log in again"
	case absent && leadsTo(socket) != "":
		out.Err, out.Hint = fmt.Errorf("it leads to %s, which doesn't exist", leadsTo(socket)), startHint(e.opts.Flavour, e.endpoint.host)
	case errors.Is(statErr, fs.ErrNotExist):
		out.Err, out.Hint = errors.New("the socket does not exist"), "install Docker, or "+startHint(e.opts.Flavour, e.endpoint.host)
		if e.opts.Flavour == engine.FlavourPodman {
			out.Hint = startHint(e.opts.Flavour, e.endpoint.host)
		}
	case statErr != nil:
		out.Err = errors.Unwrap(statErr)
		out.Hint = "name the engine's own socket"
	case absent:
		out.Err = errors.New("it is not a socket")
		out.Hint = "name the engine's own socket"
	case isFull(socket):
		out.Err, out.Hint = errors.New("it accepts no connections"), restartHint
	default:
		out.Err, out.Hint = errors.New("connection refused"), startHint(e.opts.Flavour, e.endpoint.host)
	}
	if e.endpoint.context != "" {
		out.Hint += fmt.Sprintf(" (the endpoint comes from the docker context %q)", e.endpoint.context)
	}
	return out
}
