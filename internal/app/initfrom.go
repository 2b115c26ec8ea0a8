package app

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/importer"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// imported is the proposal for a directory with what a file has. What the file has and a
// workshop doesn't is said.
func (env *Env) imported(dir string, o InitOptions) (*proposal, error) {
	file := env.Abs(o.From)
	data, err := boundedfile.Read(file, importer.MaxSize)
	if err != nil {
		return nil, Fail(CodeFailed, "--from %s: %w", o.From, PlainPathError(err))
	}
	real := RealPath(dir)
	rel, err := filepath.Rel(real, RealPath(file))
	if err != nil {
		return nil, Fail(CodeUsage, "--from %s: %w", o.From, err)
	}
	rel = filepath.ToSlash(rel)
	in := importer.Read(data, importer.Options{
		File: rel, Base: filepath.Base(real), Project: filepath.ToSlash(real), Home: env.Home,
		Refused: env.toolchains(dir).Refused, Worker: cmp.Or(o.Worker, "dev"),
	})
	if len(in.Problems) > 0 {
		shown := env.Shown(file)
		for i := range in.Problems {
			in.Problems[i].Range.Filename = shown
		}
		sources := map[string][]byte{}
		if subpath.Within(filepath.ToSlash(RealPath(file)), filepath.ToSlash(real)) {
			sources[shown] = data // a link of the repository must not show what is elsewhere (B45)
		}
		env.event(Event{Kind: Problems, Diagnostics: in.Problems, Sources: sources})
	}
	if n := in.Problems.Count(diag.Error); n > 0 {
		return nil, Fail(CodeInvalid, "%s can't be imported: %s", env.Shown(file), Count(n, "error"))
	}
	p := env.propose(dir, &in)
	p.from = rel
	return p, nil
}

// workspace is where the project is in workers.
func (p *proposal) workspace() string {
	if p.imported != nil && p.imported.Container.Workdir.Text != "" {
		return p.imported.Container.Workdir.Text
	}
	return workspace
}

// merge puts what was imported into a draft: its keys win, lists are added to.
func (p *proposal) merge(f *draft.File) {
	c, in := &f.Container, &p.imported.Container
	f.About = append(f.About, "`workshop init --from "+p.from+"` wrote it.")
	if !p.hostImage() {
		delete(c.Notes, "image")
		c.Image, c.Build = in.Image, in.Build
	}
	c.User, c.Shm = in.User, in.Shm
	if len(in.Mounts) > 0 {
		c.Mounts = in.Mounts
		delete(c.Notes, "mounts")
	}
	if in.Workdir.Text != "" {
		c.Workdir = in.Workdir
	}
	for _, l := range in.Allow {
		if i := slices.IndexFunc(c.Allow, func(x draft.Line) bool { return x.Text == l.Text }); i < 0 {
			c.Allow = append(c.Allow, l)
		}
	}
	for _, e := range in.Env {
		c.Env = append(slices.DeleteFunc(c.Env, func(x draft.Pair) bool { return x.Name == e.Name }), e)
	}
	c.Secrets, c.Ports = in.Secrets, in.Ports
	c.Memory, c.CPU = cmp.Or(in.Memory, c.Memory), cmp.Or(in.CPU, c.CPU)
	f.MCP = p.imported.MCP
	for _, w := range p.imported.Workers {
		f.Workers = append(f.Workers, p.ordinary(w))
	}
}
