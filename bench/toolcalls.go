//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/llmdo/workshop/internal/toolbox/client"
)

// trueArgs are those of a call of shell.
const trueArgs = `{"argv": ["/bin/true"]}`

// hostTrue is the floor: a process on the host.
func hostTrue() error { return exec.Command("/bin/true").Run() }

// calls measures one call in an open session.
func (r *room) calls() error {
	here, err := r.host(r.here)
	if err != nil {
		return err
	}
	defer here.Close()
	far, err := r.host(r.far)
	if err != nil {
		return err
	}
	defer far.Close()
	bare, err := r.bare(r.here)
	if err != nil {
		return err
	}
	defer bare.Close()
	t, err := r.b.compete(20,
		contender{r.hostCall(here, "shell", trueArgs), 50},
		contender{r.bareCall(bare, "shell", trueArgs), 50},
		contender{hostTrue, 50},
		contender{r.hostCall(far, "shell", trueArgs), 20},
		contender{r.apiExec("/bin/true"), 1},
		contender{r.dockerExec("/bin/true"), 1},
		contender{func() error { return bare.Call(r.b.ctx, "ping", struct{}{}, nil) }, 50},
	)
	if err != nil {
		return err
	}
	call, wire, floor, remote, api, cli, ping := t[0], t[1], t[2], t[3], t[4], t[5], t[6]
	for _, c := range []struct {
		what string
		times
	}{{"call of /bin/true, Host", call}, {"call of /bin/true, wire alone", wire}} {
		note := fmt.Sprintf("p99 %.2f ms; the floor's %.2f ms; p10 %.2f and %.2f ms", c.p(99), floor.p(99), c.p(10), floor.p(10))
		r.b.add(row{what: c.what, against: "fork + exec on the host", ours: c.median(), other: floor.median(), unit: "ms", limit: 1.5, note: note})
		r.b.add(row{what: c.what, against: "exec by API", ours: c.median(), other: api.median(), unit: "ms", limit: 1.0 / 40})
		r.b.add(row{what: c.what, against: "docker exec", ours: c.median(), other: cli.median(), unit: "ms", limit: 1.0 / 55})
	}
	// What could be reached at all: no call is faster than its process.
	r.b.add(row{what: "floor: fork + exec on the host", against: "exec by API", ours: floor.median(), other: api.median(), unit: "ms"})
	r.b.add(row{what: "floor: fork + exec on the host", against: "docker exec", ours: floor.median(), other: cli.median(), unit: "ms"})
	r.b.add(row{what: "call of /bin/true, session by exec -i", against: "exec by API", ours: remote.median(), other: api.median(), unit: "ms",
		note: "as with an engine elsewhere, here behind a port of the loopback"})
	r.b.add(row{what: "ping, wire alone", against: "fork + exec on the host", ours: ping.median(), other: floor.median(), unit: "ms"})
	return nil
}

// readSizes are sizes of files that are read.
var readSizes = []int{64, 16 << 10, 1 << 20}

// outputs measures what is read and printed.
func (r *room) outputs() error {
	here, err := r.host(r.here)
	if err != nil {
		return err
	}
	defer here.Close()
	for _, size := range readSizes {
		file := fmt.Sprintf("/workspace/src/%d.txt", size)
		args := fmt.Sprintf(`{"path": %q, "max_bytes": %d}`, file, 2<<20)
		t, err := r.b.compete(10,
			contender{r.hostCall(here, "read_file", args), 20},
			contender{r.apiExec("/bin/cat", file), 1},
			contender{r.dockerExec("/bin/cat", file), 1})
		if err != nil {
			return err
		}
		what := fmt.Sprintf("read_file, %d bytes", size)
		r.b.add(row{what: what, against: "cat, exec by API", ours: t[0].median(), other: t[1].median(), unit: "ms", note: fmt.Sprintf("p99 %.2f ms", t[0].p(99))})
		limit := 0.0
		if size == 1<<20 {
			limit = 0.25
		}
		r.b.add(row{what: what, against: "cat, docker exec", ours: t[0].median(), other: t[2].median(), unit: "ms", limit: limit})
	}
	args := fmt.Sprintf(`{"command": %q, "max_output_bytes": %d}`, oneMega, 2<<20)
	t, err := r.b.compete(10,
		contender{r.hostCall(here, "shell", args), 5},
		contender{r.stream(), 5},
		contender{func() error { _, err := exec.Command("/bin/sh", "-c", oneMega).Output(); return err }, 5},
		contender{r.apiExec("/bin/sh", "-c", oneMega), 1},
		contender{r.dockerExec("/bin/sh", "-c", oneMega), 1})
	if err != nil {
		return err
	}
	for i, what := range []string{"shell, 1 MiB of output", "exec, 1 MiB of output, new session"} {
		limit := []float64{0.25, 0}[i]
		r.b.add(row{what: what, against: "the same on the host", ours: t[i].median(), other: t[2].median(), unit: "ms"})
		r.b.add(row{what: what, against: "exec by API", ours: t[i].median(), other: t[3].median(), unit: "ms"})
		r.b.add(row{what: what, against: "docker exec", ours: t[i].median(), other: t[4].median(), unit: "ms", limit: limit})
	}
	return nil
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// stream is what `workshop exec` does, in this process.
func (r *room) stream() func() error {
	return func() error {
		conn, err := r.here.Session(r.b.ctx, r.name, toolsWorker, r.dir)
		if err != nil {
			return err
		}
		var n counter
		code, err := client.Exec(r.b.ctx, conn, client.Command{Argv: []string{"/bin/sh", "-c", oneMega}, Stdout: &n})
		if err == nil && (code != 0 || n != 1<<20) {
			err = errors.New("the command's output isn't whole")
		}
		return err
	}
}
