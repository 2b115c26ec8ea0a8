//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/llmdo/workshop/internal/engine"
	docker "github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/workshop"
)

// toolsProject has one worker with all that is measured of tools.
const (
	toolsProject = "bench-tools"
	toolsWorker  = "worker"
	// oneMega prints a megabyte of text.
	oneMega = `head -c 1048576 /dev/zero | tr '\0' x`
)

// room is a workshop that is up, with the ways into its worker.
type room struct {
	b    *bench
	name string // of the project
	dir  string
	w    *workshop.Workshop
	id   string // of the worker's container
	pid  int    // of its main process
	cli  *client.Client
	here engine.Engine // by the engine's socket: sessions come through the door
	far  engine.Engine // as from another machine: sessions are execs of the engine
	log  *audit.Log
}

// tools measures calls, sessions and whole commands, beside the engine's exec
// and a process on the host.
func (b *bench) tools() (err error) {
	r := &room{b: b, name: toolsProject}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	defer b.timed(r.dir, nil, b.workshop(), "down")
	if _, err := b.timed(r.dir, nil, b.workshop(), "up"); err != nil {
		return err
	}
	i, err := r.cli.ContainerInspect(b.ctx, toolsProject+"-"+toolsWorker+"-1")
	if err != nil {
		return err
	}
	r.id, r.pid = i.ID, i.State.Pid
	for _, part := range []func() error{r.calls, r.outputs, r.parallel, r.commands, r.memory} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (r *room) open() (err error) {
	b := r.b
	// The audit of the commands belongs to nobody either.
	if err := os.Setenv("XDG_STATE_HOME", filepath.Join(b.dir, "state")); err != nil {
		return err
	}
	if r.cli, err = client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation()); err != nil {
		return err
	}
	if err := b.importTools(r.cli); err != nil {
		return err
	}
	r.dir = filepath.Join(b.dir, toolsProject)
	files := map[string][]byte{
		"workshop.yaml": []byte("workshop:\n  name: " + toolsProject + "\n  container:\n    image: " + toolsImage +
			"\n    pull: never\n    network: {mode: restricted, allow: [allowed.example.org, ssh.example.org:22], dns: [198.51.100.53]}\n    mounts: [\"./src:/workspace/src\"]\n    resources: {memory: 512M, cpu: 2, pids: 512}\n  workers: [" + toolsWorker + "]\n"),
		"workers/" + toolsWorker + ".md": []byte("---\nname: " + toolsWorker + "\ndescription: Measures nothing itself.\nallowed-tools: Read, Bash\n---\nYou are measured.\n"),
	}
	for _, size := range readSizes {
		files[fmt.Sprintf("src/%d.txt", size)] = bytes.Repeat([]byte("a line of a file, sixty-four bytes of it with the end of line..\n"), size/64)
	}
	for name, data := range files {
		at := filepath.Join(r.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, data, 0o644)); err != nil {
			return err
		}
	}
	if err := r.load(); err != nil {
		return err
	}
	compared := engine.Compared{Dir: filepath.Join(b.dir, "state/workshop/projects")}
	if r.here, err = docker.New(b.ctx, docker.Options{Lookup: os.LookupEnv, Compared: compared}); err != nil {
		return err
	}
	at, err := r.forward()
	if err != nil {
		return err
	}
	if r.far, err = docker.New(b.ctx, docker.Options{Host: at, Lookup: os.LookupEnv, Compared: compared}); err != nil {
		return err
	}
	r.log, err = audit.Open(filepath.Join(b.dir, "audit.jsonl"), toolsProject, nil)
	return err
}

// load reads the workshop that its sessions are checked by.
func (r *room) load() error {
	w, problems := workshop.Load(context.Background(), os.DirFS(r.dir), "workshop.yaml", workshop.Options{Lookup: func(string) (string, bool) { return "", false }})
	if problems.HasErrors() {
		return problems
	}
	r.w = w
	return nil
}

func (r *room) close() {
	for _, e := range []engine.Engine{r.here, r.far} {
		if e != nil {
			e.Close()
		}
	}
	if r.log != nil {
		r.log.Close()
	}
}

// forward gives the engine a TCP port on the loopback, as that of an engine
// elsewhere.
func (r *room) forward() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(r.b.ctx, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				d, err := r.cli.Dialer()(r.b.ctx)
				if err != nil {
					return
				}
				defer d.Close()
				go func() {
					_, _ = io.Copy(d, c)
					if half, ok := d.(interface{ CloseWrite() error }); ok {
						_ = half.CloseWrite()
					}
				}()
				_, _ = io.Copy(c, d)
			}()
		}
	}()
	return "tcp://" + l.Addr().String(), nil
}

// host is what `workshop tools` serves: its Host, with its checks, decisions
// and audit.
func (r *room) host(e engine.Engine) (*session.Host, error) {
	return session.Open(session.Config{
		Workshop: r.w, Client: "bench", Audit: r.log,
		Gate: &approval.Gate{Policy: approval.Policy{ApproveAll: true}},
		Dial: func(ctx context.Context, worker string) (io.ReadWriteCloser, error) {
			return e.Session(ctx, r.name, worker, r.dir)
		},
	}, toolsWorker)
}

// bare is a session without a Host.
func (r *room) bare(e engine.Engine) (*wire.Conn, error) {
	rwc, err := e.Session(r.b.ctx, r.name, toolsWorker, r.dir)
	if err != nil {
		return nil, err
	}
	c := wire.NewClient(rwc)
	hello := protocol.Hello{Version: wire.Version, Client: "bench", Role: protocol.RoleTools}
	if err := c.Call(r.b.ctx, "hello", hello, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// hostCall is a call by a Host.
func (r *room) hostCall(h *session.Host, tool, args string) func() error {
	return func() error {
		result, err := h.Call(r.b.ctx, tool, json.RawMessage(args), session.Options{})
		if err == nil && result.Failed {
			err = fmt.Errorf("%s failed: %s", tool, result.Content)
		}
		return err
	}
}

// bareCall is a call by the wire alone.
func (r *room) bareCall(c *wire.Conn, tool, args string) func() error {
	return func() error {
		var raw json.RawMessage
		return c.Call(r.b.ctx, "call", protocol.Call{Tool: tool, Arguments: json.RawMessage(args)}, &raw)
	}
}

// apiExec is the engine's exec by its API: create, start, its output, its code.
func (r *room) apiExec(command ...string) func() error {
	return func() error {
		made, err := r.cli.ContainerExecCreate(r.b.ctx, r.id, container.ExecOptions{AttachStdout: true, AttachStderr: true, Cmd: command})
		if err != nil {
			return err
		}
		a, err := r.cli.ContainerExecAttach(r.b.ctx, made.ID, container.ExecAttachOptions{})
		if err != nil {
			return err
		}
		defer a.Close()
		if _, err := stdcopy.StdCopy(io.Discard, io.Discard, a.Reader); err != nil {
			return err
		}
		i, err := r.cli.ContainerExecInspect(r.b.ctx, made.ID)
		if err == nil && i.ExitCode != 0 {
			err = fmt.Errorf("exec %s: exit code %d", strings.Join(command, " "), i.ExitCode)
		}
		return err
	}
}

// command runs a whole program.
func (r *room) command(name string, args ...string) func() error {
	return func() error {
		_, err := r.b.timed(r.dir, nil, name, args...)
		return err
	}
}

// dockerExec is that of the docker command.
func (r *room) dockerExec(command ...string) func() error {
	return r.command("docker", append([]string{"exec", r.id}, command...)...)
}
