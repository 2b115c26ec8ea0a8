//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// worksite runs the scripts of the part work at one place: on the host, or in the
// worker of one engine. Each has its own copy of the project, of the same owner.
type worksite struct {
	name string
	dir  string
	// output is what a script prints.
	output func(script string) (string, error)
}

// run runs a script, which is what is measured.
func (s *worksite) run(script string) func() error {
	return func() error { _, err := s.output(script); return err }
}

// work measures real work in a worker against the same commands of the same user on the
// host, in a directory of the same file system.
func (b *bench) work() (err error) {
	if err := b.need("npm=npm", "git=git", "tar=tar"); err != nil {
		return err
	}
	original, err := b.workTree()
	if err != nil {
		return err
	}
	sites := []*worksite{b.workHost()}
	for _, w := range []struct {
		engine string
		uid    int
	}{{"namespace", 0}, {"namespace", benchUser}, {"docker", 0}} {
		if w.engine == "docker" && exec.CommandContext(b.ctx, "docker", "version").Run() != nil {
			fmt.Fprintln(os.Stderr, "bench: work: no Docker engine answers; without its rows")
			continue
		}
		site, up, down, err := b.workWorker(w.engine, w.uid)
		if err != nil {
			return err
		}
		sites = append(sites, site)
		defer func() { err = errors.Join(err, down()) }()
		// The mount's source must exist before.
		if err := b.copyWork(original, site.dir); err != nil {
			return err
		}
		if err := up(); err != nil {
			return err
		}
	}
	if err := b.copyWork(original, sites[0].dir); err != nil {
		return err
	}
	if err := samePrograms(sites); err != nil {
		return err
	}
	for _, t := range workTasks {
		if err := b.workTask(t, sites); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) workTask(t workTask, sites []*worksite) error {
	all := make([]contender, len(sites))
	for i, s := range sites {
		all[i] = contender{s.run(t.script), 1}
	}
	took, err := b.compete(max(t.rounds, b.rounds), all...)
	if err != nil {
		return err
	}
	host := took[0]
	for i, s := range sites[1:] {
		ours := took[i+1]
		b.add(row{what: t.what + ", " + s.name, against: "the same on the host", ours: ours.median(), other: host.median(), unit: "ms", limit: 1.1,
			note: fmt.Sprintf("%.0f to %.0f ms, the host's %.0f to %.0f ms", ours.p(0), ours.p(100), host.p(0), host.p(100))})
	}
	return nil
}

// samePrograms refuses to compare different versions.
func samePrograms(sites []*worksite) error {
	var host string
	for i, s := range sites {
		got, err := s.output("versions.sh")
		if err != nil {
			return err
		}
		if i == 0 {
			host = got
		}
		if got != host {
			return fmt.Errorf("%s runs other programs than the host: got\n%s\nwant\n%s", s.name, got, host)
		}
	}
	return nil
}

// workHost runs the scripts as the user whom the workers run as.
func (b *bench) workHost() *worksite {
	s := &worksite{name: "host", dir: filepath.Join(b.dir, "work-host", "project")}
	home := filepath.Join(b.dir, "work-host", "home")
	s.output = func(script string) (string, error) {
		if err := errors.Join(os.MkdirAll(home, 0o700), os.Chown(home, benchUser, benchUser)); err != nil {
			return "", err
		}
		return (&user{uid: benchUser, home: home}).output(b, s.dir, "sh", script)
	}
	return s
}

// workWorker is a workshop of one worker, with the limits that init proposes for this
// machine, and what brings it up and down.
func (b *bench) workWorker(engine string, uid int) (s *worksite, up, down func() error, err error) {
	name := engine
	if engine == "namespace" {
		name += map[bool]string{true: " root", false: " rootless"}[uid == 0]
	}
	u, err := b.user(uid)
	if err != nil {
		return nil, nil, nil, err
	}
	project := "bench-work-" + strings.ReplaceAll(name, " ", "-")
	dir := filepath.Join(b.dir, project)
	if err := os.MkdirAll(filepath.Join(dir, "workers"), 0o755); err != nil {
		return nil, nil, nil, err
	}
	for file, text := range map[string]string{
		"workshop.yaml": fmt.Sprintf("workshop:\n  name: %s\n  container:\n    image: host\n    mounts: [\"./project:/workspace:rw\"]\n    workdir: /workspace\n    tmp: 2G\n    resources: {memory: 4G, cpu: %d}\n  workers: [one]\n",
			project, runtime.NumCPU()),
		"workers/one.md": "---\nname: one\ndescription: Measures nothing itself.\nallowed-tools: Bash\n---\nYou are measured.\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return nil, nil, nil, err
		}
	}
	start := []string{"--engine", engine, "up"}
	if uid != 0 {
		start = append(start, "--without-limits")
	}
	// Root's worker runs as the owner of the project's directory.
	if err := os.Chown(dir, benchUser, benchUser); err != nil {
		return nil, nil, nil, err
	}
	s = &worksite{name: name, dir: filepath.Join(dir, "project")}
	s.output = func(script string) (string, error) {
		return u.output(b, dir, b.workshop(), "--engine", engine, "exec", "one", "--", "sh", script)
	}
	// An interrupt doesn't leave the workers running.
	ending := &bench{ctx: context.WithoutCancel(b.ctx)}
	return s, u.command(b, dir, b.workshop(), start...), u.command(ending, dir, b.workshop(), "--engine", engine, "down"), nil
}
