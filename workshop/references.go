package workshop

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop/worker"
)

// resolveWorkers finds and reads the worker files of the entries and gives
// each worker its effective container, checked against the workshop's and
// against those of its callers. It appends to w.Workers in the order of the
// file; all problems are reported at once.
func resolveWorkers(ctx context.Context, w *Workshop, own *shared, work *effort, o Options) diag.List {
	p := &problems{}
	l := own.workers
	l.mounts = w.Container.Mounts
	own.report(p)
	first := map[string]diag.Range{}
	granted := 0
	members := own.members(w.Container, "", work)
	for _, m := range members {
		if ctx.Err() != nil {
			return nil // Load says so
		}
		name := m.Name.V
		if !worker.ValidName(name) { // refused by the decoder, or too long
			m.file.tooLong(m, p)
			continue
		}
		if before, twice := first[name]; twice {
			p.add(diag.Diagnostic{Severity: diag.Error, Code: "duplicate-worker", Range: m.Name.Source.Range,
				Summary: fmt.Sprintf("the worker %s is listed twice", name),
				Hint:    fmt.Sprintf("remove one, or give it another name and the same file: `- {name: %s-2, file: %s}`", name, workerFileHint(name)),
				Related: []diag.Related{{Message: "first here", Range: before}}})
			continue
		}
		first[name] = m.Name.Source.Range
		wk := Worker{Name: name, Source: m.Source, From: m.file.id}
		wk.File, wk.Definition = m.read()
		wk.Container = narrow(m.within, m.workerEntry, work, p)
		m.unhidden(&wk.Container, work)
		for i, n := range m.narrowed {
			wk.Container = n.over(wk.Container, func() Container { return m.inBase(i, work) }, work)
			n.tools(&wk.Definition, work)
		}
		w.Workers = append(w.Workers, wk)
		c := &wk.Container
		granted += len(c.Mounts) + len(c.Env) + len(c.Secrets) + len(c.Caches) + len(c.Ports) + len(c.Network.Allow) + len(c.Network.Deny) + len(c.Network.Agents)
	}
	if granted > maxGranted {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: diag.Range{Filename: w.File},
			Summary: fmt.Sprintf("the workers have %d mounts, variables, rules, secrets, caches and ports together, more than %d", granted, maxGranted),
			Hint:    "each worker has those of the workshop's container: write fewer there, or split the workshop"})
	}
	mcpTools(w, p)
	approvalNames(w, p)
	delegations(w, work, p)
	if p.errors == 0 && !o.Symbols && !w.Needs { // it is about the machine's paths
		sharedMounts(w, o.Root, work, p)
		writablePolicy(w, l, o.Root, work, p)
	}
	work.done(w.File, p)
	assignPorts(w, members, p)
	unusedSecrets(w, members, p)
	unusedCaches(w, members, p)
	checkKernels(w, p)
	checkRooms(w, p)
	checkEndpoints(w, p)
	checkAgents(w, p)
	return p.done(w.File)
}

// tooLong reports a name that two dashes and an import's make too long.
func (f *shared) tooLong(m member, p *problems) {
	if m.prefix != "" && worker.ValidName(strings.TrimPrefix(m.Name.V, m.prefix)) {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "bad-name", Range: m.Name.Source.Range,
			Summary: fmt.Sprintf("the name %s is longer than 63 characters", clip(m.Name.V)), Hint: "import it under a shorter name"})
	}
}

// read returns what the worker does, with the names that it has in the workshop.
func (m member) read() (string, worker.Definition) {
	l := m.file.workers
	e := m.workerEntry
	e.Name.V = strings.TrimPrefix(e.Name.V, m.prefix)
	file, def := l.read(e)
	if m.prefix != "" {
		def.DelegatesTo, def.Toolsets = slices.Clone(def.DelegatesTo), slices.Clone(def.Toolsets)
		for i := range def.DelegatesTo {
			def.DelegatesTo[i].Name = m.prefix + def.DelegatesTo[i].Name
		}
		for i := range def.Toolsets { // never one of the importing file's
			def.Toolsets[i].Name = m.prefix + def.Toolsets[i].Name
		}
	}
	return l.origin + file, def
}

func workerFileHint(name string) string { return worker.Candidates(name)[0].Path }

// read returns a worker's definition and the path of its file; problems are
// reported.
func (l *locator) read(e workerEntry) (string, worker.Definition) {
	if e.Inline != nil {
		return l.inline(e)
	}
	c, ok := l.find(e)
	if !ok {
		return c.Path, worker.Definition{Name: e.Name.V}
	}
	data, err := boundedfile.ReadFS(l.fsys, c.Path, worker.MaxFile)
	if err != nil {
		l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-unreadable", Range: l.place(e),
			Summary: fmt.Sprintf("the file of the worker %s can't be read: %s: %s", e.Name.V, c.Path, boundedfile.Reason(err))})
		return c.Path, worker.Definition{Name: e.Name.V}
	}
	if l.all.bytes += len(data); l.all.bytes > maxWorkerFiles {
		if l.all.bytes-len(data) <= maxWorkerFiles { // told once
			l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: l.place(e),
				Summary: fmt.Sprintf("the files of the workers have more than %d bytes together", maxWorkerFiles),
				Hint:    "put long material in a mount that the workers read, or split the workshop"})
		}
		return c.Path, worker.Definition{Name: e.Name.V}
	}
	def, diags := l.all.schemas.Parse(l.origin+c.Path, data, c.Dialect)
	l.problems.add(diags...)
	if diags.HasErrors() {
		return c.Path, def
	}
	if e.File.V == "" && def.Name != e.Name.V {
		l.problems.add(diag.Diagnostic{Severity: diag.Warning, Code: "worker-name-differs", Range: def.Source.Range,
			Summary: fmt.Sprintf("the file calls its worker %q, the workshop calls it %s", def.Name, e.Name.V),
			Hint:    fmt.Sprintf("write `name: %s` here, or `- {name: %s, file: %s}` in the workshop if both are meant", e.Name.V, e.Name.V, l.shown(c.Path)),
			Related: []diag.Related{{Message: "listed here", Range: e.Name.Source.Range}}})
	}
	l.resultType(&def, c.Path)
	return c.Path, def
}

// resultType reads the JSON Schema that a worker file names.
func (l *locator) resultType(def *worker.Definition, file string) {
	ref := def.ResultFile
	if ref.Name == "" {
		return
	}
	refuse := func(summary, hint string) {
		l.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "worker-result-type", Range: ref.Source.Range, Summary: summary, Hint: hint})
	}
	at := path.Join(path.Dir(file), ref.Name)
	if path.IsAbs(ref.Name) || !l.inside(at) {
		refuse(fmt.Sprintf("the schema %s is outside of the project", ref.Name), "keep it next to "+path.Base(file))
		return
	}
	if to, out := l.follow(at); out {
		refuse(fmt.Sprintf("the schema %s is outside of the project: it leads to %s", ref.Name, to), "copy it into the project")
		return
	}
	data, err := boundedfile.ReadFS(l.fsys, at, worker.MaxSchema)
	if err != nil {
		refuse(fmt.Sprintf("the schema %s can't be read: %s", at, boundedfile.Reason(err)), "the path is relative to the folder of "+path.Base(file))
		return
	}
	if def.ResultType, err = l.all.schemas.File(at, data); err != nil {
		refuse(fmt.Sprintf("%s is not a valid JSON Schema: %v", at, err), "")
	}
}
