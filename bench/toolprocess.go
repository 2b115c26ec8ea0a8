//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/engine"
)

// commands measures whole programs, new sessions, and MCP.
func (r *room) commands() error {
	m, stop, err := r.mcp()
	if err != nil {
		return err
	}
	defer stop()
	t, err := r.b.compete(21,
		contender{r.command(r.b.workshop(), "exec", toolsWorker, "--", "/bin/true"), 1},
		contender{r.command(r.b.workshop(), "call", "--approve-all", toolsWorker, "shell", "argv=/bin/true"), 1},
		contender{r.dockerExec("/bin/true"), 1},
		contender{r.fresh(r.here, false), 5},
		contender{r.fresh(r.here, true), 5},
		contender{r.fresh(r.far, false), 1},
		contender{r.fresh(r.far, true), 1},
		contender{r.apiExec("/bin/true"), 1},
		contender{m, 20},
		contender{hostTrue, 20},
		contender{r.command(r.b.workshop(), "--version"), 1},
	)
	if err != nil {
		return err
	}
	cli, api, floor := t[2].median(), t[7].median(), t[9].median()
	r.b.add(row{what: "workshop exec -- true", against: "docker exec", ours: t[0].median(), other: cli, unit: "ms", limit: 0.2,
		note: fmt.Sprintf("whole processes; workshop --version takes %.1f ms of it", t[10].median())})
	r.b.add(row{what: "workshop call shell, /bin/true", against: "docker exec", ours: t[1].median(), other: cli, unit: "ms"})
	for i, what := range []string{"session open, door", "session open and first answer, door", "session open, exec -i", "session open and first answer, exec -i"} {
		r.b.add(row{what: what, against: "exec by API", ours: t[3+i].median(), other: api, unit: "ms"})
	}
	r.b.add(row{what: "tools/call by MCP, /bin/true", against: "fork + exec on the host", ours: t[8].median(), other: floor, unit: "ms",
		note: fmt.Sprintf("workshop tools over stdio, the Go SDK as client; p99 %.2f ms", t[8].p(99))})
	r.b.add(row{what: "tools/call by MCP, /bin/true", against: "exec by API", ours: t[8].median(), other: api, unit: "ms"})
	return nil
}

// fresh opens a session up to its hello's answer, with a call or without, and
// ends it.
func (r *room) fresh(e engine.Engine, call bool) func() error {
	return func() error {
		c, err := r.bare(e)
		if err != nil {
			return err
		}
		if call {
			err = r.bareCall(c, "shell", trueArgs)()
		}
		return errors.Join(err, c.Close())
	}
}

// mcp is a call by an MCP client of `workshop tools`.
func (r *room) mcp() (call func() error, stop func(), err error) {
	cmd := exec.CommandContext(r.b.ctx, r.b.workshop(), "tools", "--approve-all", toolsWorker)
	cmd.Dir, cmd.Stderr = r.dir, os.Stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	ctx, cancel := context.WithTimeout(r.b.ctx, time.Minute)
	defer cancel()
	s, err := c.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return nil, nil, err
	}
	call = func() error {
		result, err := s.CallTool(r.b.ctx, &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"argv": []string{"/bin/true"}}})
		if err == nil && result.IsError {
			err = errors.New("tools/call: the tool failed")
		}
		return err
	}
	return call, func() { s.Close() }, nil
}

// memory looks at what an idle session and its worker's PID 1 hold.
func (r *room) memory() error {
	c, err := r.bare(r.here)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 100 {
		if err := r.bareCall(c, "shell", trueArgs)(); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	pids := map[string]int{"PID 1 of the worker": r.pid}
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if field(path, "PPid") == strconv.Itoa(r.pid) {
			pids["a session after 100 calls"] = pid
		}
	}
	for _, what := range []string{"PID 1 of the worker", "a session after 100 calls"} {
		path := fmt.Sprintf("/proc/%d/status", pids[what])
		rss, anonymous := kilobytes(field(path, "VmRSS")), kilobytes(field(path, "RssAnon"))
		if rss == 0 {
			return fmt.Errorf("%s: its memory can't be read", what)
		}
		r.b.add(row{what: "VmRSS of " + what, ours: rss * 1024 / mega, unit: "MB",
			note: fmt.Sprintf("%.0f bytes, of which %.0f are its own (RssAnon); the rest is the program, shared by all workers", rss*1024, anonymous*1024)})
	}
	return nil
}

// field is one of /proc/PID/status.
func field(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		if key, value, _ := strings.Cut(string(line), ":"); key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kilobytes(s string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(s, " kB"), 64)
	return n
}
