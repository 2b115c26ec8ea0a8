package workshop

import (
	"context"
	"io/fs"
	"path"
	"reflect"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// OneOff returns w with one of its workers alone, narrowed once more: as for one
// command. file is a path of fsys with the keys of a `container:`, checked as those of
// a worker are against its workshop (B40), but
//
//   - a mount replaces the one at its target, the others stay,
//   - without secrets the worker keeps its own,
//   - the worker's ports and caches are left out: a run may be one of several.
//
// The worker offers no tools. The workshop is nil when there is at least one error.
func OneOff(ctx context.Context, fsys fs.FS, w *Workshop, worker, file string, o Options) (*Workshop, diag.List) {
	i := slices.IndexFunc(w.Workers, func(k Worker) bool { return k.Name == worker })
	if i < 0 {
		panic("workshop: no worker " + worker)
	}
	p := &problems{}
	k := w.Workers[i]
	e := workerEntry{Name: Value[string]{V: worker}, Container: readContainer(fsys, file, o, p)}
	if e.Container == nil {
		return nil, p.done(file)
	}
	keep(e.Container, &k.Container)
	work := &effort{ctx: ctx, left: maxEffort}
	k.Container = narrow(k.Container, e, work, p)
	k.Definition.Tools, k.Definition.DelegatesTo = nil, nil
	work.done(file, p)
	out := *w
	out.Workers, out.Container.Ports = []Worker{k}, nil
	checkKernels(&out, p)
	checkRooms(&out, p)
	if p.errors > 0 {
		return nil, p.done(file)
	}
	return &out, p.done(file)
}

// readContainer reads a file that has the keys of a worker's container; nil if it
// can't be read.
func readContainer(fsys fs.FS, file string, o Options, p *problems) *partialContainer {
	data, err := boundedfile.ReadFS(fsys, file, MaxFileSize)
	if err != nil {
		p.add(unreadableWorkshop(file, err))
		return nil
	}
	d := newDecoder(fsys, newSource(file, data), o, p)
	d.worker = true
	if root := parse(d.src, p); root != nil {
		c := &partialContainer{}
		if c.decode(d, root, &field{keyName: "container", typ: reflect.TypeFor[partialContainer]()}); p.errors == 0 {
			return c
		}
	}
	return nil
}

// keep adds to c what a run has without a word of it.
func keep(c *partialContainer, base *Container) {
	if c.Secrets == nil {
		c.Secrets = &base.Secrets
	}
	if c.Mounts == nil {
		return
	}
	all := slices.Clone(base.Mounts)
	for _, m := range *c.Mounts {
		i := slices.IndexFunc(all, func(b Mount) bool { return b.Target.V == m.Target.V })
		switch {
		case i < 0:
			all = append(all, m)
		case path.Clean(all[i].Source.V) == path.Clean(m.Source.V):
			old := all[i]
			all[i].At, all[i].ReadWrite, all[i].GitWritable = m.At, m.ReadWrite, m.ReadWrite && old.GitWritable
		default:
			all[i] = m
		}
	}
	c.Mounts = &all
}
