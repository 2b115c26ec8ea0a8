package namespace

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
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// answerTime is how long a new supervisor may take until its first response; it
// takes milliseconds.
const answerTime = 15 * time.Second

// find connects to the supervisor of a project; nil if none is alive.
func (e *Engine) find(ctx context.Context, project string) (*client.Client, error) {
	dir := e.dir(project)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := client.Dial(ctx, dir)
	if errors.Is(err, client.ErrNone) {
		return nil, nil
	}
	return c, err
}

// deathTime is how long a killed supervisor may take to end.
const deathTime = 2 * time.Second

// hasEnded reports whether a request failed because the supervisor was ending: while
// it is being killed it still accepts connections.
func (e *Engine) hasEnded(ctx context.Context, project string, err error) bool {
	if errors.Is(err, client.ErrNone) {
		return true
	}
	if _, said := errors.AsType[*api.Error](err); said {
		return false
	}
	for end := time.Now().Add(deathTime); ctx.Err() == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if lives, err := client.Lives(e.dir(project)); err == nil && !lives {
			return true
		}
	}
	return false
}

// silentTime is how long a supervisor may take to respond: normally it takes less
// than a millisecond. After one timeout it has silentAgain.
var silentTime = 10 * time.Second // shorter in a test

const silentAgain = time.Second

// alive returns the supervisor of a project; nil if there is none, or it doesn't
// respond.
func (e *Engine) alive(ctx context.Context, project string) (c *client.Client, silent bool, err error) {
	limit := silentTime
	if _, was := e.silent.Load(project); was {
		limit = min(limit, silentAgain)
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c, err = e.find(within, project); err == nil && c != nil {
		_, err = c.Hello(within)
	}
	switch {
	case err == nil:
		return c, false, nil
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	case e.fellSilent(ctx, within, project, err):
		return nil, true, nil
	case e.hasEnded(ctx, project, err):
		return nil, false, nil
	}
	return nil, false, err
}

// fellSilent reports whether a request timed out.
func (e *Engine) fellSilent(ctx, within context.Context, project string, err error) bool {
	silent := ctx.Err() == nil && (within.Err() != nil || isTimeout(err)) // the connection's own timeout is slightly earlier
	if silent {
		e.silent.Store(project, true)
	}
	return silent
}

func isTimeout(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout()
}

// Begin starts the project's supervisor. That it can't be started is an error of the first
// step that needs it.
func (e *Engine) Begin(project string) {
	done := make(chan struct{})
	e.begun.Store(project, done)
	go func() {
		defer close(done)
		_ = e.start(project)
	}()
}

// awaitBegun waits for a supervisor that Begin starts.
func (e *Engine) awaitBegun(project string) {
	if done, ok := e.begun.Load(project); ok {
		<-done.(chan struct{})
	}
}

// supervisor returns the supervisor of a project, or starts one, also to replace one
// that doesn't respond. One of another build is replaced once it has no container, and
// else kept if it understands our specs.
func (e *Engine) supervisor(ctx context.Context, project string) (*client.Client, error) {
	e.awaitBegun(project)
	c, silent, err := e.alive(ctx, project)
	switch {
	case err != nil:
		return nil, err
	case c != nil:
		if list, err := c.List(ctx); err != nil || len(list) > 0 || !e.outdated(ctx, c) {
			return c, errors.Join(err, e.sameForm(project))
		}
		if err := e.end(ctx, project); err != nil {
			return nil, err
		}
	case silent:
		if err := e.end(ctx, project); err != nil {
			return nil, err
		}
		e.silent.Delete(project) // the next supervisor starts afresh
	}
	if err := e.start(project); err != nil {
		return nil, err
	}
	if c, err = e.find(ctx, project); err == nil && c == nil {
		err = errors.New("the supervisor exited at once: its output is in " + filepath.Join(e.dir(project), api.ErrorsName))
	}
	return c, err
}

// outdated reports whether a supervisor is not of this build.
func (e *Engine) outdated(ctx context.Context, c *client.Client) bool {
	h, err := c.Hello(ctx)
	if err != nil {
		return false
	}
	n, err := e.init.Names(arch)
	return err == nil && h.Version != n.Digest
}

func isForm(err error) bool {
	_, is := errors.AsType[*client.FormError](err)
	return is
}

// sameForm refuses a supervisor with another version of specs.
func (e *Engine) sameForm(project string) error {
	var f struct {
		Version int `json:"version"`
	}
	b, err := os.ReadFile(filepath.Join(e.dir(project), api.StateName))
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err != nil {
		return damaged(e.dir(project), api.StateName, err)
	}
	if f.Version != spec.Version {
		return &engine.RefusedError{
			Reason: fmt.Sprintf("project %s was brought up by another version of workshop", project), Do: "run `workshop down`, then `workshop up`",
		}
	}
	return nil
}

// start starts a supervisor: PID 1 of a pid namespace, detached, so that it outlives
// this process. Without root it gets a user namespace that maps only the caller's
// ids, with all capabilities in it.
func (e *Engine) start(project string) error {
	if why := e.whyNot(); why != nil {
		return why
	}
	program, err := e.program()
	if err != nil {
		return err
	}
	if err := e.makeDir(project); err != nil {
		return err
	}
	dir := e.dir(project)
	if err := cleanGroups(dir); err != nil {
		return err
	}
	if err := e.prepareGroups(); err != nil {
		return err
	}
	// Nothing of it runs, and a supervisor of this build doesn't read it.
	if _, err := client.State(dir); isForm(err) {
		if err := os.Remove(filepath.Join(dir, api.StateName)); err != nil {
			return err
		}
	}
	words, err := os.OpenFile(filepath.Join(dir, api.ErrorsName), os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer words.Close()
	said, its, err := os.Pipe()
	if err != nil {
		return err
	}
	defer said.Close()
	cmd := &exec.Cmd{
		Path: filepath.Join(program, programName), Args: []string{programName, "supervise", "--dir", dir, "--digest", filepath.Base(program)}, // see programDir
		Dir: "/", Env: []string{"PATH=" + defaultPath}, Stdout: its, Stderr: words, SysProcAttr: e.attributes(),
	}
	scope, err := e.launch(cmd, project)
	its.Close()
	if err != nil {
		return err
	}
	// It may end before this process does.
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	_ = said.SetReadDeadline(time.Now().Add(answerTime))
	line, err := bufio.NewReader(io.LimitReader(said, 64<<10)).ReadString('\n')
	line = strings.TrimSpace(line)
	switch reason, failed := strings.CutPrefix(line, "FAILED "); {
	case line == "READY":
		e.sayScope(scope)
		return nil
	case failed:
		return e.refuseSaid(reason)
	case errors.Is(err, os.ErrDeadlineExceeded):
		_ = cmd.Process.Kill()
		return fmt.Errorf("the supervisor isn't ready after %v: its output is in %s", answerTime, words.Name())
	}
	select {
	case err = <-ended:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("the supervisor exited at once (%v): %s", err, lastLine(words.Name()))
}

// launch starts the supervisor's process. If it is to be in a scope, whose name is
// returned, it is moved there before it does anything.
func (e *Engine) launch(cmd *exec.Cmd, project string) (scope string, err error) {
	its, ours, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer its.Close()
	inScope := e.groups().scope
	if inScope {
		cmd.Args, cmd.Stdin = append(cmd.Args, "--moved"), its
	}
	if e.opts.Attached { // then our end is open as long as this process lives
		cmd.Args, cmd.Stdin = append(cmd.Args, "--attached"), its
		e.leashes.Store(ours, nil)
	} else {
		defer ours.Close()
	}
	// Don't leak descriptors of the caller: a pipe would never reach EOF.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err := cmd.Start(); err != nil {
		return "", e.refuseStart(fmt.Errorf("the supervisor can't be started: %w", err))
	}
	if !inScope {
		return "", nil
	}
	if scope, err = e.enterScope(project, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return "", err
	}
	_, _ = io.WriteString(ours, api.Moved) // if it has ended, it says why
	return scope, nil
}

// prepareGroups prepares control groups where a supervisor can't do it: it doesn't
// see the other processes of a delegated group. A scope has none.
func (e *Engine) prepareGroups() error {
	p, err := cgroup.Find()
	if e.groups().scope || err != nil || p.Require() != nil {
		return nil // Info reports why, and what to do
	}
	return p.Prepare()
}

// refuseSaid returns the error for a supervisor's reason not to start.
func (e *Engine) refuseSaid(reason string) error {
	if strings.Contains(reason, "permission denied") || strings.Contains(reason, "not permitted") || strings.Contains(reason, "refuses it") {
		if why := e.whyNot(); why != nil {
			return why
		}
		return &engine.RefusedError{Promise: "B6", Reason: "workers can't be isolated from the machine: " + reason, Do: "use --engine docker, or a machine whose rules allow it"}
	}
	if strings.Contains(reason, "another supervisor lives") { // started by a killed run
		return engine.Conflict("the supervisor can't start: %s", reason)
	}
	return errors.New("the supervisor can't start: " + reason)
}

// attributes returns the attributes of the supervisor's process.
func (e *Engine) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if !e.rootless {
		return a
	}
	a.Cloneflags |= unix.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	for c := range lastCapability() + 1 {
		a.AmbientCaps = append(a.AmbientCaps, uintptr(c))
	}
	return a
}

// lastCapability returns the highest capability of the kernel.
func lastCapability() int {
	b, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	n, e := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil || e != nil {
		return unix.CAP_LAST_CAP
	}
	return n
}

// lastLine returns the last line of a file.
func lastLine(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	text := strings.TrimSpace(string(b[max(0, len(b)-2000):]))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
