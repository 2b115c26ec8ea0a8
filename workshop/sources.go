package workshop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// SourceRef is a source as a file names it in `extends` or `imports`.
type SourceRef struct {
	// From is its address, such as git+https://HOST/PATH//DIR.
	From string
	// Version is a range of releases, a tag or a commit; empty: the newest release.
	Version string
	// Signer is the fingerprint of the key that must have signed it; empty: any.
	Signer string
	// Via says how it came to be needed: the project's file, and the IDs of the sources
	// between.
	Via []string
	// At is where From stands, VersionAt and SignerAt where the others do, or zero.
	At, VersionAt, SignerAt diag.Range
}

// SourceFiles are the files of a source, as [Options].OpenSource found them.
type SourceFiles struct {
	// ID is the same for all ways to write the address of a source.
	ID string
	// Commit tells versions of one ID apart: a workshop has one of each source.
	Commit string
	// Files has the source's workshop.yaml at its root.
	Files fs.FS
}

// SourceError is why a source can't be opened, and what to do.
type SourceError struct {
	Code          string // of the diagnostic
	Summary, Hint string
	At            diag.Range // of what is wrong; zero: the source's address
}

// Error implements [error].
func (e *SourceError) Error() string { return e.Summary }

// UsedSource is a source that a workshop was loaded from.
type UsedSource struct {
	ID string
	// Original is the version as the first file that names the source has it.
	Original string
	// Via are the files that name it, sorted: that of the project, and IDs.
	Via []string
	// As are the names of the project's imports of it, sorted.
	As []string
}

// Limits of the sources of one workshop.
const (
	maxSources = 32
	maxChain   = 4       // of sources that name each other
	maxUses    = 128     // of sources by extends and imports
	maxShared  = 4 << 20 // bytes of their workshop files, those of each use counted
)

// extendsForm is `extends:` as it is written.
type extendsForm struct {
	Source  diag.Source
	From    *Value[string] `key:"from" required:"true" validate:"source" literal:"Which files make a workshop must be visible in it." example:"write from: \"git+https://git.example.org/acme/workshops//go-review\"" doc:"Address of the base: git+https://HOST/PATH//DIRECTORY, git+ssh://USER@HOST/PATH//DIRECTORY or oci://REGISTRY/REPOSITORY."`
	Version *Value[string] `key:"version" validate:"oneline" number:"true" literal:"Which files make a workshop must be visible in it." example:"write version: ^1.4" doc:"Range of releases, tag, or whole commit; without it the newest release. workshop.lock has the commit that it means."`
	Signer  *Value[string] `key:"signer" validate:"fingerprint" literal:"Whom the workshop trusts must be visible in it." example:"write signer: \"SHA256:…\"" doc:"Fingerprint of the SSH key that must have signed the release."`
}

func (*extendsForm) title() string { return "extends" }

// importForm is an item of `imports:` as it is written.
type importForm struct {
	Source  diag.Source
	As      *Value[string] `key:"as" required:"true" validate:"name" literal:"It is part of the names of workers." example:"write as: sast" doc:"Name of the import: its workers are called NAME--WORKER."`
	From    *Value[string] `key:"from" required:"true" validate:"source" literal:"Which files make a workshop must be visible in it." example:"write from: \"git+https://git.example.org/acme/sast-workers\"" doc:"Address of the import, as in extends."`
	Version *Value[string] `key:"version" validate:"oneline" number:"true" literal:"Which files make a workshop must be visible in it." example:"write version: ^2" doc:"Range of releases, tag, or whole commit; without it the newest release. workshop.lock has the commit that it means."`
	Signer  *Value[string] `key:"signer" validate:"fingerprint" literal:"Whom the workshop trusts must be visible in it." example:"write signer: \"SHA256:…\"" doc:"Fingerprint of the SSH key that must have signed the release."`
}

func (*importForm) title() string { return "an import" }

// sharer is what a file is in the workshop that is loaded.
type sharer int

const (
	ownFile sharer = iota
	baseFile
	importedFile
)

// shared is one of the files that a workshop is made of, with those that it names.
type shared struct {
	*decoder
	root    *node
	form    *workshopForm
	entries []workerEntry
	id      string // of the source; "" for the project's own
	workers *locator
	base    *shared
	imports []imported
}

// foreign reports whether the file is one for other repositories: a base, or one to be
// imported.
func (d *decoder) foreign() bool { return d.as != ownFile || d.unsourced }

// imported is a file by the name that another one gives it.
type imported struct {
	*shared
	as Value[string]
	at diag.Range
}

// sharing opens the sources of a workshop.
type sharing struct {
	ctx     context.Context
	o       Options
	project *decoder
	workers *workerFiles
	opened  map[string]*openedSource // by IDs
	uses    int
	bytes   int  // of the workshop files that were read
	missing bool // a source is not there, or not valid
}

// openedSource is a source that was opened, and by whom at first.
type openedSource struct {
	UsedSource
	commit string
	chain  []string
	at     diag.Range
}

// follow opens what a file extends and imports, and what that does.
func (s *sharing) follow(f *shared, chain []string) {
	if x := f.form.Extends; x != nil && x.From != nil {
		f.base = s.open(f, chain, baseFile, refOf(x.From, x.Version, x.Signer))
	}
	if n := f.find(f.root, "extends"); n != nil && f.base == nil {
		s.missing = true // it has an error
	}
	f.workers.ofBases, f.workers.closed = f.basesNames(), f.workersClosed()
	if n := f.find(f.root, "imports"); n != nil && len(n.items) > len(list(f.form.Imports)) {
		s.missing = true
	}
	if f.form.Imports == nil {
		return
	}
	names := map[string]diag.Range{}
	for _, x := range *f.form.Imports {
		if x.As == nil || x.From == nil {
			s.missing = true
			continue
		}
		_, again := names[x.As.V]
		f.once("imports", names, x.As.V, x.As.Source.Range, "import")
		if again || doubleDash(f.decoder, "import", *x.As) {
			continue
		}
		if ReservedName(x.As.V + importMark) {
			f.fail(x.As.Source.Range, "reserved-name", fmt.Sprintf("the name %q is reserved", x.As.V), "choose another name: room and room-… are services of every project")
			continue
		}
		file := s.open(f, chain, importedFile, refOf(x.From, x.Version, x.Signer))
		if file == nil {
			continue
		}
		if f.imports = append(f.imports, imported{file, *x.As, x.Source.Range}); f.as == ownFile {
			used := s.opened[file.id]
			used.As = append(used.As, x.As.V)
			slices.Sort(used.As)
		}
	}
}

func refOf(from, version, signer *Value[string]) SourceRef {
	ref := SourceRef{From: from.V, At: from.Source.Range}
	if version != nil {
		ref.Version, ref.VersionAt = version.V, version.Source.Range
	}
	if signer != nil {
		ref.Signer, ref.SignerAt = signer.V, signer.Source.Range
	}
	return ref
}

// open opens a source that a file names; nil where that fails.
func (s *sharing) open(f *shared, chain []string, as sharer, ref SourceRef) *shared {
	ref.Via = chain
	refuse := func(x diag.Diagnostic) *shared {
		s.missing, x.Severity, x.Range = true, diag.Error, cmp.Or(x.Range, ref.At)
		f.add(x)
		return nil
	}
	if s.ctx.Err() != nil {
		s.missing = true
		return nil
	}
	if s.o.OpenSource == nil {
		return refuse(diag.Diagnostic{Code: "source", Summary: "files of other repositories aren't read here"})
	}
	if len(chain) > maxChain {
		return refuse(diag.Diagnostic{Code: "source-chain", Summary: fmt.Sprintf("more than %d sources name each other: %s", maxChain, strings.Join(chain, " → ")), Hint: "name what is needed more directly"})
	}
	if s.uses++; s.uses > maxUses {
		if s.missing = true; s.uses > maxUses+1 {
			return nil // told once
		}
		return refuse(diag.Diagnostic{Code: "too-large", Summary: fmt.Sprintf("sources are extended and imported more than %d times", maxUses), Hint: "import each once, and what it imports not again"})
	}
	got, err := s.o.OpenSource(s.ctx, ref)
	if err != nil {
		x := diag.Diagnostic{Code: "source", Summary: err.Error()}
		if why, ok := errors.AsType[*SourceError](err); ok {
			x.Code, x.Hint, x.Range = why.Code, why.Hint, why.At
		}
		return refuse(x)
	}
	chain = append(slices.Clone(chain), got.ID)
	if i := slices.Index(chain, got.ID); i < len(chain)-1 {
		return refuse(diag.Diagnostic{Code: "source-chain", Summary: "sources name each other in a cycle: " + strings.Join(chain[i:], " → "), Hint: "remove one of them"})
	}
	if x := s.note(got, ref, chain); x.Code != "" {
		return refuse(x)
	}
	file := s.read(got, ref, as)
	if file == nil {
		s.missing = true
		return nil
	}
	s.follow(file, chain)
	return file
}

// note keeps that a source is used. A workshop has one version of it.
func (s *sharing) note(got SourceFiles, ref SourceRef, chain []string) diag.Diagnostic {
	by := chain[len(chain)-2]
	before, again := s.opened[got.ID]
	if again && before.commit != got.Commit {
		return diag.Diagnostic{Code: "source-twice",
			Summary: fmt.Sprintf("%s is needed in two versions: %s by %s, and %s by %s", got.ID, before.commit, strings.Join(before.chain, " → "), got.Commit, strings.Join(chain, " → ")),
			Hint:    "write versions that one release fits", Related: []diag.Related{{Message: "the other one", Range: before.at}}}
	}
	if !again {
		if len(s.opened) == maxSources {
			return diag.Diagnostic{Code: "too-large", Summary: fmt.Sprintf("the workshop is made of more than %d sources", maxSources)}
		}
		before = &openedSource{UsedSource{ID: got.ID, Original: ref.Version}, got.Commit, chain, ref.At}
		s.opened[got.ID] = before
	}
	if !slices.Contains(before.Via, by) {
		before.Via = append(before.Via, by)
		slices.Sort(before.Via)
	}
	return diag.Diagnostic{}
}

// read reads the workshop file of a source; nil where it has an error.
func (s *sharing) read(got SourceFiles, ref SourceRef, as sharer) *shared {
	p := s.project
	before := p.errors
	origin := strings.TrimSuffix(ref.From, "/") + "/"
	name := "workshop.yaml"
	data, err := boundedfile.ReadFS(got.Files, name, MaxFileSize)
	if errors.Is(err, fs.ErrNotExist) {
		name = "workshop.yml"
		data, err = boundedfile.ReadFS(got.Files, name, MaxFileSize)
	}
	if errors.Is(err, fs.ErrNotExist) {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "source", Range: ref.At, Summary: got.ID + " has no workshop.yaml",
			Hint: "name the directory that has one: //DIRECTORY at the end of its address"})
		return nil
	}
	if err != nil {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "source", Range: ref.At, Summary: got.ID + ": workshop.yaml: " + boundedfile.Reason(err)})
		return nil
	}
	if s.bytes += len(data); s.bytes > maxShared {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: ref.At, Summary: fmt.Sprintf("the workshop files of the sources have more than %d bytes together", maxShared)})
		return nil
	}
	d := &decoder{
		src: newSource(origin+name, data), problems: p.problems, as: as,
		root: p.root, fsys: p.fsys, dir: p.dir, refused: p.refused, vars: &variables{used: map[string]Variable{}},
	}
	file := &shared{decoder: d, id: got.ID, workers: &locator{fsys: got.Files, dir: ".", file: name, origin: origin, problems: p.problems, all: s.workers}}
	if file.root = parse(d.src, p.problems); file.root == nil {
		return nil
	}
	if as == importedFile && d.isBase(file.root) {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "import-key", Range: ref.At, Summary: got.ID + " is a base, which says itself what workers are granted: it can't be imported",
			Hint: fmt.Sprintf("extend it, in place of the import: extends: {from: %q}", ref.From)})
		return nil
	}
	if as == importedFile {
		d.importedKeys(file.root)
	}
	if file.form, file.entries = d.document(file.root); file.form == nil || p.errors > before {
		return nil
	}
	if as == baseFile {
		file.asBase()
	}
	if p.errors > before {
		return nil
	}
	return file
}

// used returns the sources, in order of their IDs.
func (s *sharing) used() (out []UsedSource) {
	for _, x := range s.opened {
		out = append(out, x.UsedSource)
	}
	sortfunc.Stable(out, func(a, b UsedSource) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// count is the number of workers that the file and those that it is made of have.
func (f *shared) count() int {
	n := len(f.entries)
	if f.base != nil {
		n += f.base.count()
	}
	for _, x := range f.imports {
		n += x.count()
	}
	return n
}

// report sets where problems of the files are kept.
func (f *shared) report(p *problems) {
	f.problems, f.workers.problems = p, p
	if f.base != nil {
		f.base.report(p)
	}
	for _, x := range f.imports {
		x.report(p)
	}
}

// isBase reports whether a file is to be extended: it has no needs, and a container or
// what only a base has.
func (d *decoder) isBase(root *node) bool {
	return d.find(root, "needs") == nil && (d.find(root, "container") != nil || d.find(root, "open") != nil || d.find(root, "extends") != nil)
}

// importedKeys refuses keys that an imported file can't have: what they say is said by
// who imports it.
func (d *decoder) importedKeys(root *node) {
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		switch path {
		case "workshop.workers[].container", "workshop.needs":
			path = "container"
		}
		for _, item := range n.items {
			walk(item, path+"[]")
		}
		for _, p := range n.pairs {
			if path == "workshop.grant" {
				walk(p.value, "container")
				continue
			}
			key := strings.TrimPrefix(path+"."+p.key.text, ".")
			if rule, known := ruleOfKey(key); known && !rule.imported {
				d.failDetail(p.key.rng, "import-key", fmt.Sprintf("an imported file can't have the key %q%s", p.key.text, in(path)),
					"An imported worker gets what the importing workshop grants it, and no more.", rule.insteadImported())
				continue
			}
			walk(p.value, key)
		}
	}
	walk(root, "")
}

func in(path string) string {
	if path == "container" {
		return " in a container"
	}
	return ""
}
