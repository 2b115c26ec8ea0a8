//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/e2e/ownengine"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/engine"
	docker "github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/session/audit"
)

// ownKernel is a kernel that workers can have, beside this machine's, and what they may take
// longer with it, in milliseconds; 0: no limit.
type ownKernel struct {
	name, other   string // "gVisor", "runc"
	up, call, get float64
	// ownExec: the limit of a call is above what the kernel itself takes to start a program.
	ownExec bool
	work    []workTask
}

var gvisor = ownKernel{name: "gVisor", other: "runc", up: 150, call: 4, get: 6, work: kernelTasks}

// insideAtOnce is how often the program inside measures each time.
const insideAtOnce = 20

// kernelTasks are in the table without a limit.
var kernelTasks = []workTask{
	{fmt.Sprintf("git status, %d files", smallFiles), "status.sh", "test -z \"$(git -C files status --short --untracked-files=all)\"\n", 7},
	{"npm ci of 150 packages from its cache", "ci.sh", "npm ci" + npmOffline, 3},
}

// kernel measures a worker on gVisor beside the same worker on this machine's kernel, by
// runc, on one Docker engine of its own.
func (b *bench) kernel() error {
	if err := b.need("dockerd=docker.io", "npm=npm", "git=git", "tar=tar"); err != nil {
		return err
	}
	original, err := b.kernelTree()
	if err != nil {
		return err
	}
	host, stop, err := b.startGVisor()
	if err != nil {
		return err
	}
	defer stop()
	env := []string{"DOCKER_HOST=" + host, "XDG_STATE_HOME=" + filepath.Join(b.dir, "kernel-state")}
	return b.besideHost(gvisor, kernelPlace{engine: "docker", kernel: "sandboxed", env: env, original: original,
		connect: func() (engine.Engine, error) {
			return docker.New(b.ctx, docker.Options{Host: host, Lookup: os.LookupEnv, Compared: engine.Compared{Dir: filepath.Join(b.dir, "kernel-state/workshop/projects")}})
		}})
}

// kernelPlace is where two workers are made that differ in their kernel.
type kernelPlace struct {
	engine, kernel string
	env            []string // of our programs
	up             []string // flags of `up` that the kernel needs
	original       string   // what the workers find in their workspace
	connect        func() (engine.Engine, error)
}

// besideHost measures a worker with a kernel of its own beside the same one without.
func (b *bench) besideHost(k ownKernel, at kernelPlace) error {
	ours, err := b.kernelSite(at)
	if err != nil {
		return err
	}
	defer ours.close()
	at.kernel, at.up = "host", nil
	other, err := b.kernelSite(at)
	if err != nil {
		return err
	}
	defer other.close()
	for _, part := range []func(k ownKernel, ours, other *kernelSite) error{b.kernelUps, b.kernelCalls, b.kernelGets, b.kernelWork} {
		if err := part(k, ours, other); err != nil {
			return err
		}
	}
	return nil
}

// startGVisor starts a Docker engine with gVisor's runtime, in a network of its own that has
// the test internet.
func (b *bench) startGVisor() (host string, stop func(), err error) {
	runsc := exec.CommandContext(b.ctx, filepath.Join(filepath.Dir(b.bin), "scripts/runsc"))
	runsc.Stderr = os.Stderr
	program, err := runsc.Output()
	if err != nil {
		return "", nil, fmt.Errorf("scripts/runsc: %w", err)
	}
	args, err := ownengine.WithGVisor(filepath.Join(b.dir, "gvisor.json"), strings.TrimSpace(string(program)))
	if err != nil {
		return "", nil, err
	}
	ns, err := testnet.NewNS()
	if err != nil {
		return "", nil, err
	}
	defer ns.Close()
	in, err := testnet.Start(b.ctx, testnet.Options{Near: ns})
	if err != nil {
		return "", nil, err
	}
	s, err := ownengine.NewDocker(args...)
	if err != nil {
		in.Close()
		return "", nil, err
	}
	s.Argv = append([]string{"unshare", "--mount"}, s.Argv...)
	stop = func() {
		if err := s.Remove(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: docker: left behind:", err)
		}
		in.Close()
	}
	if err := ns.Do(s.Start); err != nil {
		stop()
		return "", nil, err
	}
	return s.Host, stop, nil
}

// kernelTree is what the two workers find in their workspace.
func (b *bench) kernelTree() (string, error) {
	dir := filepath.Join(b.dir, "kernel")
	files := map[string]string{
		"package.json": workPackages,
		"get.sh":       fmt.Sprintf("./inside get allowed.example.org %d\n", insideAtOnce),
		"run.sh":       fmt.Sprintf("./inside run /bin/true %d\n", insideAtOnce),
		"commit.sh":    "set -e\nmkdir files\ntar -xf files.tar -C files\nrm files.tar\ngit init -q files\ncd files\ngit add .\ngit -c user.name=bench -c user.email=bench@example.org -c gc.auto=0 commit -q -m files\n",
	}
	for _, t := range kernelTasks {
		files[t.script] = "set -e\n" + t.text
	}
	if err := writeFiles(dir, files); err != nil {
		return "", err
	}
	if err := errors.Join(b.npmCache(dir), b.smallFiles(dir)); err != nil {
		return "", err
	}
	if _, err := b.timed(dir, nil, "sh", "commit.sh"); err != nil {
		return "", err
	}
	_, err := b.timed(filepath.Dir(b.bin), []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-o", filepath.Join(dir, "inside"), "./bench/inside")
	return dir, err
}

// kernelSite is one of the two workers. They go with the engine.
type kernelSite struct {
	room
	work     worksite
	up, down func() error
}

// kernelSite writes the workshop of a worker with a kernel, which isn't up.
func (b *bench) kernelSite(at kernelPlace) (*kernelSite, error) {
	project := "bench-kernel-" + at.kernel
	dir := filepath.Join(b.dir, project)
	s := &kernelSite{room: room{b: b, name: project, dir: dir}, work: worksite{name: "kernel: " + at.kernel, dir: filepath.Join(dir, "project")}}
	if err := writeFiles(dir, map[string]string{
		"workshop.yaml": fmt.Sprintf("workshop:\n  name: %s\n  container:\n    image: host\n    kernel: %s\n    network: {mode: restricted, allow: [allowed.example.org], dns: [%s]}\n"+
			"    mounts: [\"./project:/workspace:rw\"]\n    workdir: /workspace\n    tmp: 2G\n    resources: {memory: 4G, cpu: 2}\n  workers: [%s]\n", project, at.kernel, testnet.DNS, toolsWorker),
		"workers/" + toolsWorker + ".md": "---\nname: " + toolsWorker + "\ndescription: Measures nothing itself.\nallowed-tools: Bash\n---\nYou are measured.\n",
	}); err != nil {
		return nil, err
	}
	// The worker runs as the owner of the project's directory.
	if err := errors.Join(os.Chown(dir, benchUser, benchUser), b.copyWork(at.original, s.work.dir)); err != nil {
		return nil, err
	}
	workshop := func(args ...string) func() error {
		return func() error {
			_, err := b.timed(dir, at.env, b.workshop(), append([]string{"--engine", at.engine}, args...)...)
			return err
		}
	}
	s.up, s.down = workshop(append([]string{"up"}, at.up...)...), workshop("down")
	s.work.output = func(script string) (string, error) {
		cmd := exec.CommandContext(b.ctx, b.workshop(), "--engine", at.engine, "exec", toolsWorker, "--", "sh", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), at.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s: %s: %w\n%s", s.work.name, script, err, out)
		}
		return string(out), nil
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	var err error
	if s.log, err = audit.Open(filepath.Join(b.dir, project+".jsonl"), project, nil); err != nil {
		return nil, err
	}
	s.here, err = at.connect()
	return s, err
}

// added is a row of what a worker with a kernel of its own takes longer; limit 0: none.
func (b *bench) added(k ownKernel, what string, ours, other times, limit float64, note string) {
	r := row{what: k.name + ": " + what + ", added", against: "to " + k.other + "'s " + number(other.median(), "ms"), ours: max(0, ours.median()-other.median()), unit: "ms",
		note: strings.TrimSpace(fmt.Sprintf("a quarter takes up to %.2f ms, on %s %.2f ms%s", ours.p(25), k.other, other.p(25), note))}
	if limit > 0 {
		r.against, r.other, r.limit = "its limit above "+k.other+"'s "+number(other.median(), "ms"), limit, 1
	}
	b.add(r)
}

// kernelUps measures up of one worker to every gate passed, and leaves both up.
func (b *bench) kernelUps(k ownKernel, ours, other *kernelSite) error {
	t, err := b.compete(max(11, b.rounds), contender{ours.up, 1}, contender{ours.down, 1}, contender{other.up, 1}, contender{other.down, 1})
	if err != nil {
		return err
	}
	b.added(k, "up, 1 worker", t[0], t[2], k.up, "")
	b.add(row{what: k.name + ": down, 1 worker", against: "the same on " + k.other, ours: t[1].median(), other: t[3].median(), unit: "ms"})
	return errors.Join(ours.up(), other.up())
}

// kernelCalls measures one call in an open session.
func (b *bench) kernelCalls(k ownKernel, ours, other *kernelSite) error {
	var all []contender
	for _, s := range []*kernelSite{ours, other} {
		h, err := s.host(s.here)
		if err != nil {
			return err
		}
		defer h.Close()
		c, err := s.bare(s.here)
		if err != nil {
			return err
		}
		defer c.Close()
		all = append(all, contender{s.hostCall(h, "shell", trueArgs), 25}, contender{func() error { return c.Call(b.ctx, "ping", struct{}{}, nil) }, 25})
	}
	t, err := b.compete(20, all...)
	if err != nil {
		return err
	}
	floor, err := b.inside("run.sh", 1, ours, other)
	if err != nil {
		return err
	}
	// What could be reached at all: no call is faster than its process.
	b.added(k, "floor: fork + exec inside", floor[0][0], floor[0][1], 0, "")
	call, what := t[0], "call of /bin/true"
	if k.ownExec {
		what += " beyond that floor"
		for i := range call {
			call[i] -= floor[0][0].median() - floor[0][1].median()
		}
	}
	b.added(k, what, call, t[2], k.call, fmt.Sprintf("; p99 %.2f and %.2f ms; a ping %.2f and %.2f ms", t[0].p(99), t[2].p(99), t[1].median(), t[3].median()))
	return nil
}

// kernelGets measures requests from inside, through the guard.
func (b *bench) kernelGets(k ownKernel, ours, other *kernelSite) error {
	t, err := b.inside("get.sh", 2, ours, other)
	if err != nil {
		return err
	}
	lookup, first := t[0], t[1]
	b.added(k, "GET through the guard, connect + first byte", first[0], first[1], k.get,
		fmt.Sprintf("; p99 %.2f and %.2f ms; the lookup before takes %.2f and %.2f ms", first[0].p(99), first[1].p(99), lookup[0].median(), lookup[1].median()))
	return nil
}

// inside runs the program inside at both sites in turn, and returns by column what it
// measured at each.
func (b *bench) inside(script string, columns int, sites ...*kernelSite) ([][]times, error) {
	all := make([][]times, columns)
	for i := range all {
		all[i] = make([]times, len(sites))
	}
	for round := range 11 {
		for i, s := range sites {
			out, err := s.work.output(script)
			if err != nil {
				return nil, err
			}
			words := strings.Fields(out)
			if len(words) != columns*insideAtOnce {
				return nil, fmt.Errorf("%s prints %q, want %d figures", script, out, columns*insideAtOnce)
			}
			for at, word := range words {
				ns, err := strconv.Atoi(word)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", script, err)
				}
				if round > 0 { // after one to warm up
					all[at%columns][i] = append(all[at%columns][i], float64(ns)/1e6)
				}
			}
		}
	}
	for _, column := range all {
		for _, t := range column {
			slices.Sort(t)
		}
	}
	return all, nil
}

// kernelWork measures real work.
func (b *bench) kernelWork(k ownKernel, ours, other *kernelSite) error {
	for _, task := range k.work {
		t, err := b.compete(max(task.rounds, b.rounds), contender{ours.work.run(task.script), 1}, contender{other.work.run(task.script), 1})
		if err != nil {
			return err
		}
		b.add(row{what: k.name + ": " + task.what, against: "the same on " + k.other, ours: t[0].median(), other: t[1].median(), unit: "ms",
			note: fmt.Sprintf("%.0f to %.0f ms, %s's %.0f to %.0f ms", t[0].p(0), t[0].p(100), k.other, t[1].p(0), t[1].p(100))})
	}
	return nil
}
