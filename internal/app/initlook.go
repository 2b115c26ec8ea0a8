package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/detect"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/internal/importer"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/toolchain"
	"github.com/llmdo/workshop/workshop"
)

// propose looks at a directory and at this machine, with what was imported; nil:
// nothing.
func (env *Env) propose(dir string, in *importer.Imported) *proposal {
	p := &proposal{found: detect.Look(ProjectDir(dir)), home: env.Home, imported: in}
	programs := p.found.Programs
	if in != nil {
		programs = slices.Concat(programs, in.Programs)
	}
	if !p.hostImage() {
		return p
	}
	m := env.toolchains(dir)
	for _, program := range programs {
		if place, ok := m.Find(program); ok {
			p.places = append(p.places, place)
		} else if !slices.Contains(p.missing, program) {
			p.missing = append(p.missing, program)
		}
	}
	return p
}

// toolchains are those of this machine, for a project.
func (env *Env) toolchains(dir string) *toolchain.Machine {
	homes := append(facts.Homes(os.Getuid(), env.Lookup), env.Home)
	return &toolchain.Machine{
		Lookup: env.Lookup, Home: env.Home, Project: filepath.ToSlash(RealPath(dir)),
		Refused: hostpath.For(hostpath.Caller{Homes: homes, Lookup: env.Lookup, Project: filepath.ToSlash(RealPath(dir))}),
	}
}

// draftName is what a draft is called.
const draftName = "workshop.yaml"

// draftFiles is the file for a proposal. It has been loaded: definitions of workers that
// the loader complains of are comments in it.
func (env *Env) draftFiles(ctx context.Context, in *Inited, p *proposal, dir string, o InitOptions) ([]newFile, error) {
	o.Worker = cmp.Or(o.Worker, "dev")
	f := p.draft(o.Name, o.Worker)
	o.Worker = f.Workers[0].Name
	files := []newFile{{draftName, f.Text()}}
	list := env.loadDraft(ctx, dir, files)
	if withoutWrongWorkers(f, list) {
		files[0].text = f.Text()
		list = env.loadDraft(ctx, dir, files)
	}
	// A variable that is imported needn't be set yet; `up` asks for it.
	for i := range list {
		if list[i].Code == "unset-variable" {
			list[i].Severity = diag.Warning
		}
	}
	in.Text = files[0].text
	env.draftProblems(dir, files, list)
	in.Chosen = p.choices(f)
	if list.HasErrors() {
		return nil, Fail(CodeInvalid, "init: the proposal is not a valid workshop, and nothing was written").
			Hint("`workshop init --dry-run` prints it, to be corrected by hand; `--bare` looks at nothing")
	}
	for _, line := range []string{p.found.Setup, p.found.Test} {
		if program, _, _ := strings.Cut(line, " "); line != "" && !slices.Contains(p.missing, program) {
			in.Next = append(in.Next, execLine(o.Worker, line))
		}
	}
	if len(in.Next) == 0 {
		in.Next = []string{"workshop shell " + o.Worker}
	}
	return files, nil
}

// draftProblems says what was found in a draft.
func (env *Env) draftProblems(dir string, files []newFile, list diag.List) {
	if len(list) == 0 {
		return
	}
	sources := map[string][]byte{}
	for _, f := range files {
		sources[env.Shown(filepath.Join(dir, f.path))] = f.text
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Range.Filename = env.Shown(filepath.Join(dir, list[i].Range.Filename))
	}
	env.event(Event{Kind: Problems, Diagnostics: list, Sources: sources})
}

// execLine runs a command line in a worker.
func execLine(worker, line string) string {
	if strings.ContainsAny(line, "&|;<>$") {
		line = "sh -c " + shellquote.Quote(line)
	}
	return "workshop exec " + worker + " -- " + line
}

// withoutWrongWorkers makes comments of workers whose definitions have problems, unless
// no other is left, and reports whether it did.
func withoutWrongWorkers(f *draft.File, list diag.List) bool {
	workers := slices.Clone(f.Workers)
	for _, d := range list {
		for i := range workers {
			if w := &workers[i]; len(w.Tools) == 0 && !w.Off && d.Range.Filename == w.Why {
				w.Off, w.Why = true, w.Why+": "+d.Summary
			}
		}
	}
	left := slices.ContainsFunc(workers, func(w draft.Worker) bool { return !w.Off })
	if !left || !slices.ContainsFunc(workers, func(w draft.Worker) bool { return w.Off }) {
		return false
	}
	f.Workers = workers
	return true
}

// loadDraft loads a draft as if its files were there.
func (env *Env) loadDraft(ctx context.Context, dir string, files []newFile) diag.List {
	fsys := draftFS{projectFS{dir: dir}, files}
	_, list := workshop.Load(ctx, fsys, files[0].path, workshop.Options{
		Lookup: env.Lookup, Home: env.Home, Homes: facts.Homes(os.Getuid(), env.Lookup), Root: filepath.ToSlash(dir),
	})
	return list
}

// choices says what was found, and what the file has for it.
func (p *proposal) choices(file *draft.File) (out []Chosen) {
	if p.imported != nil {
		out = append(out, Chosen{Printable(p.from), "imported", strings.Join(p.imported.Took, ", ")})
		if names := p.imported.HostVariables(); len(names) > 0 {
			out = append(out, Chosen{strings.Join(names, ", "), "of your environment", "workers get the values (B45)"})
		}
	}
	for _, f := range p.found.Findings {
		if p.imported == nil || f.Path != p.from {
			c := Chosen{Printable(f.Path), f.What, f.Gives}
			for _, w := range file.Workers {
				if why, ok := strings.CutPrefix(w.Why, f.Path+": "); ok && w.Off {
					c.Gives = "left out: " + why
				}
			}
			out = append(out, c)
		}
	}
	for _, place := range p.places {
		c := Chosen{Path: tilde(place.Found, p.home), What: "this machine's " + place.Program}
		switch {
		case place.Why != "":
			c.Gives = "not in workers: " + place.Why
		case len(place.Mounts) > 0:
			var sources []string
			for _, s := range place.Mounts {
				sources = append(sources, tilde(s, p.home))
			}
			c.Path, c.Gives = strings.Join(sources, ", "), "a read-only mount, on PATH"
		default:
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Path == c.Path {
			out[last].What += ", " + place.Program
			continue
		}
		out = append(out, c)
	}
	if p.imported == nil || len(p.imported.Container.Mounts) == 0 {
		out = slices.Insert(out, 0, Chosen{".", "the project", "writable at " + workspace + ", except workshop.yaml"})
	}
	if p.found.Builds && (p.imported == nil || p.imported.Container.Memory == "") {
		out = append(out, Chosen{"", "a compiler", "memory 4G, cpu 2"})
	}
	for _, w := range file.Workers {
		if len(w.Tools) > 0 {
			out = append(out, Chosen{w.Name, "a new worker", "file tools and a shell"})
		}
	}
	if len(p.missing) > 0 {
		gives := "install what is needed"
		if p.found.Image != "" {
			gives += ", or name an image, such as " + p.found.Image
		}
		out = append(out, Chosen{strings.Join(p.missing, ", "), "not found on this machine", gives})
	}
	return out
}
