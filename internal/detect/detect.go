package detect

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Found is what a repository has, and what a workshop for it needs.
type Found struct {
	// Findings are in the order in which they are shown.
	Findings []Finding
	// Presets are lists of hosts that package managers need.
	Presets []Reason
	// Caches are of downloads and builds, which outlive a worker.
	Caches []Reason
	// Env are variables of the workers.
	Env []Variable
	// Programs are what its tools are called on the machine.
	Programs []string
	// Agents are definitions of workers that are there.
	Agents []Agent
	// Suggestions are lines that a person may want; they are written as comments.
	Suggestions []Suggestion
	// Setup and Test are command lines: what installs its dependencies and what runs
	// its tests. Empty where they aren't known.
	Setup, Test string
	// Image is one of a registry that has what it needs; empty: none is known.
	Image string
	// Builds reports whether a compiler runs, which needs more memory. Tmp is the size of
	// /tmp, in memory too, for one that writes much there; empty: the default.
	Builds bool
	Tmp    string
}

// Finding is one thing that was found.
type Finding struct {
	// Path is of the repository. It may have any characters.
	Path string
	// What it is, and what the file has for it; Gives may be empty.
	What, Gives string
}

// Reason is a name of our own list, with the file that asks for it.
type Reason struct{ Name, Why string }

// Variable is a variable of the workers' environment.
type Variable struct{ Name, Value, Why string }

// Agent is a worker's definition.
type Agent struct{ Name, File string }

// Suggestion is a line below a key of the container.
type Suggestion struct{ Key, Line, Why string }

// detector finds one kind of project in a directory.
type detector func(p *project, f *Found)

// ecosystems are looked for in the root, and where that has none, in its directories.
var ecosystems = []detector{node, golang, python, rust, ruby, jvm, php}

// others are looked for in the root alone. Make comes after those whose tests it may run.
var others = []detector{makefile, git, agents, imports}

// Look looks at a repository. A file that can't be read counts as one that isn't there.
func Look(fsys fs.FS) Found {
	var f Found
	p := &project{fsys: fsys, dir: ".", left: maxReads}
	for _, d := range ecosystems {
		d(p, &f)
	}
	if len(f.Findings) == 0 {
		below(p, &f)
	} else {
		mention(p, &f)
	}
	for _, d := range others {
		d(p, &f)
	}
	return f
}

// below looks for projects in the directories of a repository whose root is none.
func below(p *project, f *Found) {
	for _, dir := range p.directories() {
		sub := p.in(dir)
		for _, d := range ecosystems {
			d(sub, f)
		}
		p.left = sub.left
	}
	if len(f.Findings) > 1 {
		f.Setup, f.Test = "", ""
	}
}

// mention names what the directories have and the root doesn't: nothing is granted for
// a folder of documentation or of examples.
func mention(p *project, f *Found) {
	for _, dir := range p.directories() {
		sub := p.in(dir)
		for _, d := range ecosystems {
			var more Found
			d(sub, &more)
			for _, r := range more.Presets {
				if !f.hasPreset(r.Name) && !slices.ContainsFunc(f.Suggestions, func(s Suggestion) bool { return s.Line == presetLine(r.Name) }) {
					f.suggest("allow", presetLine(r.Name), more.Findings[0].Path)
				}
			}
		}
		p.left = sub.left
	}
}

func presetLine(name string) string { return "preset: " + name }

func (f *Found) hasPreset(name string) bool {
	return slices.ContainsFunc(f.Presets, func(r Reason) bool { return r.Name == name })
}

func (f *Found) find(p *project, name, what, gives string) {
	f.Findings = append(f.Findings, Finding{Path: path.Join(p.dir, name), What: what, Gives: gives})
}

func (f *Found) preset(name, why string) { f.Presets = addReason(f.Presets, name, why) }

// cache adds caches, for what was found last.
func (f *Found) cache(why string, names ...string) {
	for _, name := range names {
		f.Caches = addReason(f.Caches, name, why)
	}
	noun := ", cache "
	if len(names) > 1 {
		noun = ", caches "
	}
	f.Findings[len(f.Findings)-1].Gives += noun + strings.Join(names, ", ")
}

func addReason(list []Reason, name, why string) []Reason {
	if slices.ContainsFunc(list, func(r Reason) bool { return r.Name == name }) {
		return list
	}
	return append(list, Reason{name, why})
}

func (f *Found) program(names ...string) {
	for _, name := range names {
		if !slices.Contains(f.Programs, name) {
			f.Programs = append(f.Programs, name)
		}
	}
}

func (f *Found) env(name, value, why string) {
	if !slices.ContainsFunc(f.Env, func(v Variable) bool { return v.Name == name }) {
		f.Env = append(f.Env, Variable{name, value, why})
	}
}

func (f *Found) suggest(key, line, why string) {
	f.Suggestions = append(f.Suggestions, Suggestion{key, line, why})
}

// image sets the image that has what it needs. The first ecosystem that is found says it.
func (f *Found) image(name string) { f.Image = cmp.Or(f.Image, name) }

// runs sets what installs dependencies and runs tests, in the directory of the project.
// The first ecosystem that is found says it.
func (f *Found) runs(p *project, setup, test string) {
	if f.Setup != "" || f.Test != "" || p.dir != "." {
		return
	}
	f.Setup, f.Test = setup, test
}
