package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/tokens"
)

// Options says what Load takes from outside the project's files.
type Options struct {
	// Lookup returns the environment's variables; nil: none.
	Lookup func(name string) (value string, ok bool)
	// EnvFiles are read after the `.env` next to the file, later ones win;
	// paths relative to the fs.FS. The environment wins over all of them.
	EnvFiles []string
	// Home is the caller's home directory, absolute; it is what `~` in a
	// mount source means and is refused as a source. Empty: `~` is an error.
	Home string
	// Homes are further home directories that are refused as sources, such as
	// that of the passwd file.
	Homes []string
	// Root is the absolute path of the fs.FS on the host, clean, with
	// slashes. With it paths that leave the project are judged by where they
	// lead. It never reaches the Workshop. Empty: not known.
	Root string
	// Symbols reads nothing of the machine or its user: neither Lookup nor EnvFiles
	// nor the `.env` next to the file, nor Home. A variable has its default as its
	// value, or something that its key accepts stands in for it; what depends on that,
	// or on what exists on the machine, is not a problem. Every such [Value] has a
	// Template.
	Symbols bool
	// OpenSource returns the files of a source that a file extends or imports; nil: a
	// workshop of several repositories can't be loaded. A [SourceError] says what to do.
	OpenSource func(context.Context, SourceRef) (SourceFiles, error)
	// FollowFile takes the file where symbolic links lead out of its
	// directory: the caller named it. Its text is not quoted then.
	FollowFile bool
}

// refused are the paths that no worker gets (B7); dir is the project's in the
// fs.FS.
func (o *Options) refused(dir string) hostpath.List {
	c := hostpath.Caller{Homes: append([]string{o.Home}, o.Homes...), Lookup: o.Lookup}
	if o.Root != "" {
		c.Project = path.Join(o.Root, dir)
	}
	return hostpath.For(c)
}

// Load reads a workshop.yaml and the worker files that it names. All problems
// are reported at once, in order of file and position. The workshop is nil
// when there is at least one error.
//
// file is a path of fsys; symbolic links are looked at where fsys is an
// [fs.ReadLinkFS], as os.DirFS is. A context that ends is a problem like any
// other, of the code "interrupted".
func Load(ctx context.Context, fsys fs.FS, file string, o Options) (*Workshop, diag.List) {
	w, list := loadFile(ctx, fsys, file, o)
	if ctx.Err() != nil {
		return nil, diag.List{{Severity: diag.Error, Code: "interrupted", Range: diag.Range{Filename: file}, Summary: "not read to its end: " + context.Cause(ctx).Error()}}
	}
	return w, list
}

// Mounts returns the mounts of a workshop.yaml's workers that can be read, whatever
// else is wrong with it, so that what they need of the machine is said at once.
func Mounts(fsys fs.FS, file string, o Options) []Mount {
	f := readFile(fsys, file, o, &problems{})
	if f == nil || f.form.Container == nil {
		return nil
	}
	var base, out []Mount
	if m := f.form.Container.Mounts; m != nil {
		base = *m
	}
	inherited := len(f.entries) == 0
	for _, e := range f.entries {
		if e.Container != nil && e.Container.Mounts != nil {
			out = append(out, *e.Container.Mounts...)
		} else {
			inherited = true
		}
	}
	if inherited {
		out = append(base, out...)
	}
	return out
}

func loadFile(ctx context.Context, fsys fs.FS, file string, o Options) (*Workshop, diag.List) {
	p := &problems{}
	f := readFile(fsys, file, o, p)
	if f == nil {
		return nil, p.done(file)
	}
	s := &sharing{ctx: ctx, o: o, project: f.decoder, workers: f.workers.all, opened: map[string]*openedSource{}}
	s.follow(f, []string{file})
	if s.missing {
		return nil, p.done(file) // what would be said of the rest may be wrong
	}
	if n := f.count(); n > maxWorkers {
		key := "imports"
		if f.form.Imports == nil {
			key = "extends"
		}
		f.fail(f.place(f.root, key), "too-large", fmt.Sprintf("%d workers with those of the sources, more than %d", n, maxWorkers), "import less, or split the workshop")
		return nil, p.done(file)
	}
	work := &effort{ctx: ctx, left: maxEffort, symbolic: o.Symbols}
	before := p.errors
	w := f.resolve(work)
	if f.base != nil && p.errors > before {
		return nil, p.done(file) // its workers would only repeat it
	}
	if f.base != nil {
		w.Base = f.base.id
	}
	if w.Sources = s.used(); p.errors == 0 {
		f.knownGrants()
		f.someImage(&w.Container)
	}
	f.imageOfIsolation(w.Isolation, f.form.Container)
	for _, e := range f.entries {
		f.imageOfIsolation(w.Isolation, e.Container)
	}
	if w.Container.Network.Mode.V == firewall.None && f.form.Container != nil && f.form.Container.refusedBelow("network") {
		w.Container.Ports = nil // whether they can be served isn't known
	}
	if f.form.Container != nil || f.form.Needs == nil && f.form.Extends == nil {
		f.entries = withoutFollowUps(f.entries, f.form.Container, w)
	}
	workers := resolveWorkers(ctx, w, f, work, o)
	p.add(workers...)
	if p.errors > 0 {
		return nil, p.done(file)
	}
	return w, p.done(file)
}

// readFile reads and decodes the project's own file; nil when nothing of it can be.
func readFile(fsys fs.FS, file string, o Options, p *problems) *shared {
	// A repository must not show what is elsewhere on the machine (B45).
	if to, out := (&locator{fsys: fsys, dir: path.Dir(file)}).follow(file); out && !o.FollowFile {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "file-outside", Range: diag.Range{Filename: file},
			Summary: "the file is outside of the project: symbolic links lead to " + clip(to),
			Hint:    "copy it here; if that is the file that you mean, name it: `workshop validate -f " + shellquote.Path(file) + "`"})
		return nil
	}
	data, err := boundedfile.ReadFS(fsys, file, MaxFileSize)
	if err != nil {
		p.add(unreadableWorkshop(file, err))
		return nil
	}
	d := newDecoder(fsys, newSource(file, data), o, p)
	root := parse(d.src, p)
	if root == nil {
		return nil
	}
	form, entries := d.document(root)
	if form == nil {
		return nil
	}
	return &shared{decoder: d, root: root, form: form, entries: entries,
		workers: &locator{fsys: fsys, dir: d.dir, file: file, root: o.Root, problems: p, all: &workerFiles{}}}
}

// newDecoder makes the decoder of a file's text, with the variables that it may use.
func newDecoder(fsys fs.FS, src *source, o Options, p *problems) *decoder {
	o = o.withoutMachine()
	dir := path.Dir(src.name)
	d := &decoder{
		src: src, problems: p, home: cleanHome(o.Home), root: o.Root,
		fsys: fsys, dir: dir, refused: o.refused(dir),
	}
	if o.Symbols {
		d.symbols = newSymbols()
	}
	d.vars = environment(fsys, dir, o, p)
	return d
}

// document decodes the root of the file.
func (d *decoder) document(root *node) (*workshopForm, []workerEntry) {
	if root.kind != mapNode {
		d.fail(startOf(root.rng), "wrong-type", "the file must be a mapping with the key workshop, found "+root.describe(), hintExample)
		return nil, nil
	}
	d.unsourced = d.as == importedFile || d.find(root, "needs") != nil
	var doc document
	d.mapping(root, reflect.ValueOf(&doc).Elem())
	if doc.Workshop == nil {
		return nil, nil
	}
	form := doc.Workshop
	var entries []workerEntry
	if form.Workers != nil {
		entries = *form.Workers
		at := d.place(root, "workers")
		switch {
		case len(entries) > maxWorkers:
			d.fail(at, "too-large", fmt.Sprintf("%d workers, more than %d", len(entries), maxWorkers), "")
			entries = entries[:0]
		case len(entries) == 0 && d.isEmptyList(root, "workers"):
			hint := "write workers: [NAME], and what it does in workers/NAME.md"
			if d.find(root, "extends") != nil {
				hint = "remove it: the workers of the base are there without a word"
			}
			d.fail(at, "missing-key", "the list of workers is empty", hint)
		}
	}
	if form.Needs != nil && d.as == ownFile {
		d.importedKeys(root)
	}
	if c := form.Container; c != nil && !d.means(root, "extends", "open", "needs") && !c.has("image") && !c.has("build") {
		d.fail(startOf(c.Source.Range), "missing-key", "the container has no image", "write image: NAME:TAG, build: {context: ./docker/worker}, or image: host")
	}
	d.checkTokens(form, entries)
	return form, entries
}

// find returns the value of a key of `workshop:`.
func (d *decoder) find(root *node, key string) *node {
	for _, p := range root.pairs {
		if p.key.text != "workshop" {
			continue
		}
		for _, q := range p.value.pairs {
			if q.key.text == key {
				return q.value
			}
		}
	}
	return nil
}

// means reports whether `workshop:` has one of the keys, also misspelt or with a mistake
// below it.
func (d *decoder) means(root *node, keys ...string) bool {
	names := formOf(reflect.TypeFor[workshopForm]()).keyNames()
	for _, p := range root.pairs {
		for _, q := range p.value.pairs {
			if p.key.text == "workshop" && (slices.Contains(keys, q.key.text) || slices.Contains(keys, nearest(q.key.text, names))) {
				return true
			}
		}
	}
	return false
}

func (d *decoder) place(root *node, key string) diag.Range {
	if n := d.find(root, key); n != nil {
		return n.rng
	}
	return d.src.whole()
}

func (d *decoder) isEmptyList(root *node, key string) bool {
	n := d.find(root, key)
	return n != nil && n.kind == listNode && len(n.items) == 0
}

// workshop fills the defaults in.
func (d *decoder) workshop(form *workshopForm) *Workshop {
	w := &Workshop{File: d.src.name, Symbolic: d.symbols != nil, Variables: d.vars.sorted(), Container: defaultContainer(), Needs: form.Needs != nil, Open: form.Open.lines()}
	set(&w.Name, form.Name)
	set(&w.Version, form.Version)
	set(&w.Description, form.Description)
	w.Isolation.V = IsolationAuto
	set(&w.Isolation, form.Isolation)
	w.Approvals.Default.V = ApprovalAsk
	if a := form.Approvals; a != nil {
		set(&w.Approvals.Default, a.Default)
		if a.Rules != nil {
			for _, r := range *a.Rules {
				rule := ApprovalRule{Tool: r.Tool.V, Approval: r.Approval.V, At: r.Source}
				if r.Match != nil {
					rule.Match = r.Match.V
				}
				w.Approvals.Rules = append(w.Approvals.Rules, rule)
			}
		}
	}
	c := form.Container
	if c == nil && form.Needs != nil {
		c = alone(&form.Needs.partialContainer)
	}
	if c != nil {
		w.Container = withDefaults(c)
		d.checkProxyCredential(c.Network)
		d.secrets = w.Container.Secrets
		d.checkContainer(c, w, form.Extends != nil)
	}
	w.MCP = d.mcpServers(form.MCP)
	w.Models = d.models(form.Models)
	return w
}

// checkContainer checks the workshop's container once its defaults are known.
func (d *decoder) checkContainer(c *partialContainer, w *Workshop, extends bool) {
	n := c.Network
	if n == nil {
		return
	}
	mode := w.Container.Network.Mode
	at := n.Source.Range
	if mode.Source.Range.Filename != "" {
		at = mode.Source.Range
	}
	switch {
	case !extends && n.Mode == nil && !c.Refused["network.mode"] && !c.Refused["network"] && n.Allow != nil:
		d.fail(c.Keys["network.allow"], "allow-without-mode", "allow has no effect: the network's mode is none unless it is written", "add mode: restricted")
	case mode.V == firewall.Open:
		d.add(diag.Diagnostic{
			Severity: diag.Warning, Code: "open-network", Summary: "the network is open: workers reach every public address over TCP",
			Detail: "What a worker can read, it can send anywhere.", Hint: "write mode: restricted and the hosts that are needed", Range: at,
		})
	}
}

func cleanHome(home string) string {
	if home == "" || home[0] != '/' {
		return ""
	}
	return path.Clean(home)
}

// Sources reads the files that diagnostics are about, for snippets. Files that
// can't be read are left out, and so are those that symbolic links lead to
// outside of fsys, and files of variables with an error. What looks like a token
// is masked.
func Sources(fsys fs.FS, l diag.List) map[string][]byte {
	out := map[string][]byte{}
	secret := map[string]bool{} // a line may hold the value of a secret
	for _, x := range l {
		if x.Code == codeBadEnvFile || x.Code == codeEnvAsks {
			secret[x.Range.Filename] = true
		}
	}
	links := &locator{fsys: fsys, dir: "."}
	read := func(name string) {
		if _, done := out[name]; done || name == "" || secret[name] {
			return
		}
		if _, leaves := links.follow(name); leaves {
			return // it isn't the project's to show
		}
		if data, err := boundedfile.ReadFS(fsys, name, MaxFileSize); err == nil {
			out[name] = tokens.Mask(data)
		}
	}
	for _, x := range l {
		read(x.Range.Filename)
		for _, r := range x.Related {
			read(r.Range.Filename)
		}
	}
	return out
}

func unreadableWorkshop(file string, err error) diag.Diagnostic {
	x := unreadable(file, err)
	switch {
	case x.Summary == "there is no such file":
		x.Code = "no-file"
		x.Hint = "`workshop init` writes one to start with; -f names another file"
	case errors.As(err, new(boundedfile.SizeError)):
		x.Code = "too-large"
		x.Summary = boundedfile.Reason(err)
	}
	return x
}
