package app

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/procgroup"
)

// Hidden verbs that [Env.Self] runs, in processes that outlive the command that starts them.
const (
	BrokerVerb = "broker"
	ModelVerb  = "serve-model"
)

// ownReady is the line that such a process prints when it serves; any other says what is
// wrong.
const ownReady = "ready"

// startOwn starts this program with a hidden verb, tells it start on its stdin, and returns
// when it serves.
func (env *Env) startOwn(ctx context.Context, verb string, start any, dir string, within time.Duration) error {
	text, err := json.Marshal(start)
	if err != nil {
		return err
	}
	defer clear(text)
	cmd := exec.Command(env.Self[0], append(env.Self[1:len(env.Self):len(env.Self)], verb)...)
	procgroup.Detach(cmd)
	cmd.Dir = dir
	// Nothing else of the environment: it may have secrets, and who may read it in /proc.
	cmd.Env = append(env.placesAndCommand(), engineVariables(env)...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	said := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(io.LimitReader(out, 4<<10)).ReadString('\n')
		said <- strings.TrimSpace(line)
		_ = cmd.Wait() // where this process goes on, as one that serves tools
	}()
	select {
	case line := <-said:
		if line == ownReady {
			return nil
		}
		_ = cmd.Process.Kill()
		if line == "" {
			line = "it ended at once"
		}
		return errors.New(Printable(clip.Bytes(line, 500)))
	case <-time.After(within):
		_ = cmd.Process.Kill()
		return errors.New("it didn't start in " + within.String())
	case <-ctx.Done():
		_ = cmd.Process.Kill()
		return context.Cause(ctx)
	}
}

// engineVariables are further ones by which an engine is found.
func engineVariables(env *Env) (out []string) {
	for _, name := range []string{"DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "DOCKER_API_VERSION", "TMPDIR"} {
		if v, ok := env.Lookup(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

var errStart = errors.New("what it is to do can't be read")

// readStart reads what startOwn says, at most so many bytes.
func readStart(in io.Reader, most int64, start any) error {
	text, err := io.ReadAll(io.LimitReader(in, most))
	defer clear(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, start)
}

// lockOwn keeps a second process from a socket, which waits so long for the one before to end.
// The lock is next to it: it goes with the directory.
func lockOwn(ctx context.Context, socket string, wait time.Duration) (*flock.Flock, error) {
	for late := time.Now().Add(wait); ; {
		lock, _, err := lockFile(socket + ".lock")
		if lock != nil || err != nil {
			return lock, err
		}
		if time.Now().After(late) {
			return nil, errors.New("another one is there")
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// ownListener is the socket of such a process, which is its user's alone.
type ownListener struct {
	net.Listener
	socket string
	mine   os.FileInfo
}

func listenOwn(socket string) (*ownListener, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	if err = os.Chmod(socket, 0o600); err == nil {
		var mine os.FileInfo
		if mine, err = os.Lstat(socket); err == nil {
			return &ownListener{l, socket, mine}, nil
		}
	}
	l.Close()
	return nil, err
}

// gone reports whether the socket isn't there any more: the process is to end.
func (l *ownListener) gone() bool {
	now, err := os.Lstat(l.socket)
	return err != nil || !os.SameFile(l.mine, now)
}

// sayReady tells who started the process that it serves: they wait for no more.
func sayReady(out io.Writer) {
	fmt.Fprintln(out, ownReady)
	if c, ok := out.(io.Closer); ok {
		c.Close()
	}
}
