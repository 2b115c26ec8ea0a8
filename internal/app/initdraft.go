package app

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/detect"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/importer"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/toolchain"
	"github.com/llmdo/workshop/tool"
)

// workspace is where a project is in its workers.
const workspace = "/workspace"

// ordinaryTools are those of a worker that works on a project.
var ordinaryTools = []string{tool.ReadFile, tool.WriteFile, tool.EditFile, tool.ListFiles, tool.SearchFiles, tool.Shell}

// proposal is what a repository and this machine give for a new workshop.yaml.
type proposal struct {
	found  detect.Found
	places []toolchain.Place
	// missing are programs that this machine doesn't have.
	missing []string
	home    string
	// imported is what a file has, whose path in the project is from; nil: there is none.
	imported *importer.Imported
	from     string
}

// hostImage reports whether workers have this machine's programs.
func (p *proposal) hostImage() bool {
	return p.imported == nil || p.imported.Container.Image.Text == "" && p.imported.Container.Build == nil && len(p.imported.Workers) < 2
}

// draft is the file that is proposed, with its first worker.
func (p *proposal) draft(name, worker string) *draft.File {
	f := &draft.File{Name: name}
	c := &f.Container
	c.Notes = map[string][]string{
		"image":   {"This machine's programs, read-only."},
		"network": {"Only these names can be reached, through the guard. `workshop presets` lists more."},
		"mounts":  {"The project, which workers may change. In it .git, .github, .claude, .vscode and the like are read-only."},
	}
	c.Image = draft.Line{Text: "host"}
	if p.found.Image != "" {
		c.Notes["image"] = []string{"This machine's programs, read-only. Or an image, such as " + p.found.Image}
	}
	c.Mode, c.Workdir = "restricted", draft.Line{Text: workspace}
	for _, r := range p.found.Presets {
		c.Allow = append(c.Allow, draft.Line{Text: "preset: " + r.Name, Why: r.Why})
	}
	c.Mounts = []draft.Line{{Text: ".:" + workspace + ":rw"}, {Text: "./workshop.yaml:" + workspace + "/workshop.yaml", Why: "what it grants, no worker changes"}}
	if names := p.caches(); len(names) > 0 {
		c.Caches = draft.Line{Text: draft.List(names), Why: "outlive a worker; empty when it is granted more"}
	}
	for _, v := range p.found.Env {
		c.Env = append(c.Env, draft.Pair{Name: v.Name, Value: v.Value, Why: v.Why})
	}
	if p.found.Builds {
		c.Memory, c.CPU = "4G", "2"
		c.Tmp = draft.Line{Text: p.found.Tmp}
	}
	for _, s := range p.found.Suggestions {
		switch s.Key {
		case "allow":
			c.Allow = append(c.Allow, draft.Line{Text: s.Line, Why: s.Why, Off: true})
		case "image":
			c.Notes["image"] = append(c.Notes["image"], s.Why+": "+s.Line)
		}
	}
	p.toolchains(c)
	if p.imported != nil {
		p.merge(f)
	}
	p.workers(f, worker)
	return f
}

// caches are the names of the caches that are proposed.
func (p *proposal) caches() (names []string) {
	for _, r := range p.found.Caches {
		names = append(names, r.Name)
	}
	return names
}

// toolchains adds the mounts and PATH that show this machine's toolchains.
func (p *proposal) toolchains(c *draft.Container) {
	var dirs []string
	names := map[string][]string{}
	for _, place := range p.places {
		for _, source := range place.Mounts {
			names[source] = append(names[source], place.Program)
		}
		if place.Dir != "" && !slices.Contains(dirs, place.Dir) {
			dirs = append(dirs, place.Dir)
		}
	}
	for _, place := range p.places {
		for _, source := range place.Mounts {
			if programs := names[source]; programs != nil {
				delete(names, source)
				c.Mounts = append(c.Mounts, draft.Line{Text: toolchainMount(source, p.home), Why: WorkersText(programs) + " of this machine"})
			}
		}
	}
	if len(dirs) > 0 {
		value := strings.Join(append(dirs, compose.HostPath), ":")
		c.Env = append(c.Env, draft.Pair{Name: "PATH", Value: value})
	}
}

// toolchainMount is the line that shows a toolchain to workers, at its own path.
func toolchainMount(source, home string) string {
	return "{source: " + draft.Scalar(tilde(source, home)) + ", target: " + draft.Scalar(source) + ", outside_project: true}"
}

// tilde is a path with ~ for the home directory.
func tilde(p, home string) string {
	if rest, ok := subpath.Below(p, home); ok && home != "" && rest != "" {
		return path.Join("~", rest)
	}
	return p
}

// workers adds one worker that works on the project, and those whose definitions are
// there.
func (p *proposal) workers(f *draft.File, worker string) {
	if p.imported != nil && len(p.imported.Workers) > 0 {
		worker = ""
	}
	defined := slices.ContainsFunc(p.found.Agents, func(a detect.Agent) bool { return a.Name == worker })
	if !defined && worker != "" {
		f.Workers = append(f.Workers, p.ordinary(draft.Worker{Name: worker}))
	}
	for _, a := range p.found.Agents {
		if slices.ContainsFunc(f.Workers, func(w draft.Worker) bool { return w.Name == a.Name }) {
			continue
		}
		w := draft.Worker{Name: a.Name, Why: a.File}
		if a.Name == worker {
			w.Caches = p.caches()
		}
		f.Workers = append(f.Workers, w)
		if strings.HasPrefix(a.File, "workers/") {
			coverWorkers(f)
		}
	}
}

// ordinary is a worker that works on the project, with file tools, a shell and what was
// imported for it.
func (p *proposal) ordinary(w draft.Worker) draft.Worker {
	at, has := p.workspace(), true
	if c := w.Container; c != nil {
		at, has = cmp.Or(c.Workdir.Text, at), !c.NoMounts
	}
	w.Description, w.Tools, w.Instructions = "Works on the project", ordinaryTools, "You work on the project in "+at+"."
	switch {
	case !has:
		w.Description, w.Instructions = "Has none of the project's files", "You have none of the project's files."
	case p.found.Test != "":
		w.Instructions += " Run `" + p.found.Test + "` after each change."
	}
	w.Caches = p.caches()
	if p.imported != nil {
		w.Tools = slices.Concat(w.Tools, p.imported.Tools)
		if w.Container == nil {
			w.Secrets = p.imported.SecretNames()
		}
	}
	return w
}

// coverWorkers adds the mounts that keep definitions of workers read-only, where the
// project is mounted.
func coverWorkers(f *draft.File) {
	f.Container.Mounts = withWorkers(f.Container.Mounts)
	for i := range f.Workers {
		if c := f.Workers[i].Container; c != nil {
			c.Mounts = withWorkers(c.Mounts)
		}
	}
}

// withWorkers adds the mount that keeps definitions of workers read-only, where the
// project is mounted.
func withWorkers(mounts []draft.Line) []draft.Line {
	for _, l := range mounts {
		plain := strings.Trim(l.Text, `"`)
		rest, ok := strings.CutPrefix(plain, ".:")
		if !ok {
			continue
		}
		target, _, _ := strings.Cut(rest, ":")
		text := strings.Replace(l.Text, plain, "./workers:"+target+"/workers", 1) // in the same quotes
		if !slices.ContainsFunc(mounts, func(l draft.Line) bool { return l.Text == text }) {
			return append(slices.Clone(mounts), draft.Line{Text: text})
		}
	}
	return mounts
}
