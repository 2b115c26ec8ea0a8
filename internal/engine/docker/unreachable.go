package docker

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/docker/docker/client"
)

// UnreachableError means that the engine doesn't respond.
type UnreachableError struct {
	Endpoint string
	Err      error
	Hint     string
	// Absent: nothing is at the default endpoint, so there is no Docker Engine here.
	Absent bool
}

// Error returns one line; Hint has the remedy.
func (e *UnreachableError) Error() string {
	msg := "no Docker Engine answers at " + e.Endpoint
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
		return fmt.Errorf("the engine at %s closed the connection (%w): if it has ended, start it, and run the command again", e.endpoint.host, err)
	}
	if err == nil || !client.IsErrConnectionFailed(err) && !strings.Contains(err.Error(), "permission denied while trying to connect") {
		return err
	}
	out := &UnreachableError{Endpoint: e.endpoint.host, Err: err}
	socket := e.endpoint.socket()
	info, statErr := os.Stat(socket)
	absent := errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Mode().Type() != fs.ModeSocket
	out.Absent = absent && e.endpoint.host == client.DefaultDockerHost && e.endpoint.context == ""
	switch {
	case socket == "":
		out.Hint = "check DOCKER_HOST or `docker context ls`"
	case errors.Is(err, fs.ErrPermission) || strings.Contains(err.Error(), "permission denied"):
		out.Err, out.Hint = errors.New("permission denied"), "run `sudo usermod -aG docker $USER`, then log in again"
	case errors.Is(statErr, fs.ErrNotExist):
		out.Err, out.Hint = errors.New("the socket does not exist"), "install Docker, or start it with `sudo systemctl start docker`"
	default:
		out.Err, out.Hint = errors.New("connection refused"), "start it with `sudo systemctl start docker`"
	}
	if e.endpoint.context != "" {
		out.Hint += fmt.Sprintf(" (the endpoint comes from the docker context %q)", e.endpoint.context)
	}
	return out
}
