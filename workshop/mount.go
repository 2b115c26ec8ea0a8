package workshop

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/pathglob"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// mountForm is the long form of a mount.
type mountForm struct {
	Source         diag.Source
	Name           *Value[string]   `key:"name" validate:"name" literal:"Names don't depend on the machine." example:"write name: input" doc:"Name of the mount in messages."`
	From           *Value[string]   `key:"source" validate:"text,oneline" example:"write source: ./data" doc:"Directory or file of the host, relative to this file."`
	Target         *Value[string]   `key:"target" required:"true" validate:"oneline" example:"write target: /data" doc:"Absolute path in the container."`
	Mode           *Value[string]   `key:"mode" validate:"oneof=ro rw" example:"write mode: rw" default:"ro" doc:"Read-only, or writable."`
	Exclude        *[]Value[string] `key:"exclude" literal:"What stays out must be visible in the file." example:"write exclude: [\".env\", \"**/*.pem\"]" doc:"Globs relative to the source; the mount becomes a read-only copy without what they match."`
	Copy           *Value[bool]     `key:"copy" literal:"The kind of a mount is part of the generated project." example:"write copy: true" default:"false" doc:"Mount a read-only copy in place of a live bind; works on engines elsewhere."`
	OutsideProject *Value[bool]     `key:"outside_project" literal:"What leaves the project must be visible in the file." example:"write outside_project: true" default:"false" doc:"The source may be outside the project directory."`
	Git            *Value[string]   `key:"git" validate:"oneof=rw" literal:"What protects the host must be visible in the file." example:"write git: rw" doc:"Makes .git below the mount writable, except its hooks."`
	Sockets        *Value[string]   `key:"sockets" validate:"oneof=allow" literal:"What protects the host must be visible in the file." example:"write sockets: allow" doc:"Accepts sockets, FIFOs and devices below the source, which are refused otherwise."`
}

func (*mountForm) title() string { return "a mount" }

var mountKeys = map[string]instead{
	"read_only":   {"", "write mode: ro or mode: rw"},
	"readonly":    {"", "write mode: ro or mode: rw"},
	"rw":          {"", "write mode: rw"},
	"type":        {"Mounts are binds, read-only without mode: rw; a mount with exclude or copy is a copy.", hintRemove},
	"bind":        {"Mounts are private and not recursive (B7).", hintRemove},
	"volume":      {"Named volumes are not supported.", "write source: ./DIRECTORY"},
	"tmpfs":       {"", "write scratch: 256M in container"},
	"consistency": {"", hintRemove},
	"path":        {"", "write source and target"},
	"src":         {"", "write source"},
	"dst":         {"", "write target"},
	"destination": {"", "write target"},
	"from":        {"", "write source"},
	"to":          {"", "write target"},
}

const mountExample = "write ./src:/workspace/src:ro"

func (m *Mount) decode(d *decoder, n *node, f *field) bool {
	m.At = diag.Source{Range: n.rng}
	switch n.kind {
	case scalarNode:
		return m.short(d, n, f)
	case mapNode:
	default:
		d.wrongType(n, f, "SOURCE:TARGET[:ro|rw] or a mapping")
		return false
	}
	if d.spacedMount(n) {
		return false
	}
	var form mountForm
	if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
		return false
	}
	if form.Name != nil {
		m.Name = form.Name.V
	}
	switch m.Target = *form.Target; {
	case form.From != nil:
		m.Source = *form.From
	case !d.unsourced:
		d.fail(startOf(n.rng), "missing-key", `the key "source" is missing in a mount`, "write source: ./data")
		return false
	}
	if form.Mode != nil {
		m.ReadWrite, m.ModeTemplate = form.Mode.V == "rw", form.Mode.Source.Template
	}
	m.Copy = form.Copy != nil && form.Copy.V
	m.OutsideProject = form.OutsideProject != nil && form.OutsideProject.V
	m.GitWritable = form.Git != nil
	m.AllowSockets = form.Sockets != nil
	if form.Exclude != nil {
		alternatives := 0
		for _, x := range *form.Exclude {
			if alternatives += pathglob.Alternatives(x.V); alternatives > maxExcluded {
				d.fail(x.Source.Range, "too-large", fmt.Sprintf("exclude has more than %d patterns, their alternatives counted", maxExcluded), "leave a directory out as a whole, or mount what is needed")
				break
			}
			if d.checkGlob(x) {
				// `keys/` means the directory; a name never ends with a slash.
				m.Exclude = append(m.Exclude, strings.TrimSuffix(x.V, "/"))
			}
		}
	}
	before := d.errors
	switch {
	case m.ReadWrite && form.Exclude != nil:
		d.failDetail(n.rng, "exclude-with-rw", "exclude and `mode: rw` exclude each other",
			"A mount with exclude is a read-only copy (B9).", "remove one of them, or mount a directory without the files to leave out")
	case m.ReadWrite && m.Copy:
		d.fail(n.rng, "copy-with-rw", "copy and `mode: rw` exclude each other: a copy is read-only", "remove one of them")
	case m.GitWritable && !m.ReadWrite:
		d.fail(form.Git.Source.Range, "bad-mount", "`git: rw` needs `mode: rw`", "write mode: rw, or remove git")
	}
	return d.mount(m) && d.errors == before
}

// spacedMount reports SOURCE: TARGET, a mapping because of its space.
func (d *decoder) spacedMount(n *node) bool {
	if len(n.pairs) != 1 || n.pairs[0].value.kind != scalarNode {
		return false
	}
	key, value := n.pairs[0].key, n.pairs[0].value
	if key.kind != scalarNode || value.isNull() || !strings.ContainsAny(key.text, "./~") || !strings.HasPrefix(value.text, "/") {
		return false
	}
	d.fail(key.rng, "unknown-key", fmt.Sprintf("unknown key %q in a mount", clip(key.text)), "write "+clip(mountMeant(key.text+":"+value.text))+", without a space after the colon")
	return true
}

// mountHint is the mount that was meant, if it is valid, or else the general hint.
// Without a mode it is read-only, unlike in Compose, so the writable one is named too.
func (d *decoder) mountHint(text, general string) string {
	f := formOf(reflect.TypeFor[partialContainer]()).byKey["mounts"]
	meant := mountMeant(text)
	if d.trial || full(d.problems) || len(meant) > maxFlow || meant == quoteFlow(text) || !d.reads("["+meant+"]", f) {
		return general
	}
	if strings.ContainsAny(meant[:1], `{"`) || modeOf(text[strings.LastIndexByte(text, ':')+1:]) != "" {
		return "write " + meant
	}
	return "write " + meant + ", or " + strings.TrimSuffix(meant, ":ro") + ":rw if workers write there"
}

// short reads SOURCE:TARGET[:MODE].
func (m *Mount) short(d *decoder, n *node, f *field) bool {
	var text string
	s, ok := d.scalar(n, f, &text)
	if !ok {
		return false
	}
	for _, p := range s.parts {
		if p.variable != "" && strings.Contains(p.text, ":") {
			d.failDetail(s.rng(), "bad-mount", fmt.Sprintf("the value of %s has a colon, which separates source and target in the short form", p.variable),
				"", "write {source: \""+p.template+"\", target: …}")
			return false
		}
	}
	parts := s.split(':')
	switch {
	case len(parts) == 1 && strings.HasPrefix(n.text, "/"):
		d.failDetail(n.rng, "bad-mount", fmt.Sprintf("the mount %q has no target", clip(n.text)), "There are no anonymous volumes.",
			"write ./DIRECTORY:"+clip(n.text)+":rw with a directory of the project, or scratch: 256M for memory at /scratch")
		return false
	case len(parts) == 1:
		d.fail(n.rng, "bad-mount", fmt.Sprintf("the mount %q has no target", clip(n.text)),
			d.mountHint(n.text, "write "+clip(relative(n.text))+":/workspace, with the path in the container after the colon"))
		return false
	case len(parts) > 1 && len(parts[0].text()) == 1 && strings.HasPrefix(parts[1].text(), `\`):
		d.failDetail(n.rng, "bad-mount", fmt.Sprintf("the source of %q is a path of Windows", clip(n.text)), "Workshops run on Linux.", mountExample)
		return false
	case len(parts) > 3:
		d.fail(n.rng, "bad-mount", fmt.Sprintf("the mount %q has too many colons", clip(n.text)), "write SOURCE:TARGET[:ro|rw], or the long form {source: …, target: …}")
		return false
	}
	m.Source = Value[string]{parts[0].text(), parts[0].source()}
	m.Target = Value[string]{parts[1].text(), parts[1].source()}
	if len(parts) == 3 {
		m.ModeTemplate = parts[2].source().Template
		switch mode := parts[2].text(); mode {
		case "ro":
		case "rw":
			m.ReadWrite = true
		default:
			d.mountMode(n, parts[2])
			return false
		}
	}
	src := m.Source.V
	switch {
	case src == "":
		d.fail(n.rng, "bad-mount", "the mount has no source", mountExample)
		return false
	case src != "." && src != ".." && src != "~" && !strings.HasPrefix(src, "./") && !strings.HasPrefix(src, "../") && !strings.HasPrefix(src, "/") && !strings.HasPrefix(src, "~"):
		d.failDetail(m.Source.Source.Range, "bad-mount", fmt.Sprintf("the source %q looks like a volume's name", clip(src)),
			"Named volumes are not supported; a relative path begins with ./ in the short form.", d.mountHint(n.text, "write ./"+clip(src)))
		return false
	}
	return d.mount(m)
}

// Entry is the mount as an item of `mounts`, with all its keys: the short form where
// that has them.
func (m *Mount) Entry() string {
	source := cmp.Or(m.Source.Source.Template, diag.Literal(m.Source.V))
	if rest, home := strings.CutPrefix(source, homeVariable); home {
		source = "~" + rest
	}
	source, target := quoteFlow(source), quoteFlow(diag.Literal(m.Target.V))
	keys := []string{"source: " + source, "target: " + target}
	key := func(has bool, text string) {
		if has {
			keys = append(keys, text)
		}
	}
	key(m.ReadWrite, "mode: rw")
	short := len(keys)
	key(m.Name != "", "name: "+m.Name)
	key(m.GitWritable, "git: rw")
	key(m.AllowSockets, "sockets: allow")
	if len(m.Exclude) > 0 {
		globs := make([]string, len(m.Exclude))
		for i, x := range m.Exclude {
			globs[i] = quoteFlow(diag.Literal(x))
		}
		key(true, "exclude: ["+strings.Join(globs, ", ")+"]")
	}
	key(m.Copy, "copy: true")
	key(m.OutsideProject, "outside_project: true")
	if len(keys) > short || strings.ContainsAny(source+target, `":`) || source != "." && !strings.HasPrefix(source, "./") && !strings.HasPrefix(source, "/") {
		return "{" + strings.Join(keys, ", ") + "}"
	}
	if m.ReadWrite {
		return source + ":" + target + ":rw"
	}
	return source + ":" + target
}

// relative is a path with the ./ that tells a directory from a volume.
func relative(p string) string {
	if p != "" && !strings.ContainsAny(p[:1], "./~") {
		return "./" + p
	}
	return p
}

func (d *decoder) mountMode(n *node, s scalar) {
	switch mode := s.text(); {
	case slices.Contains([]string{"z", "Z", "cached", "delegated", "consistent", "nocopy", "rshared", "rslave", "rprivate", "shared", "slave", "private"}, mode):
		d.fail(s.rng(), "bad-mount", fmt.Sprintf("the mount option %q is not supported", mode), d.mountHint(n.text, "write ro or rw"))
	case strings.Contains(mode, ","):
		d.fail(s.rng(), "bad-value", fmt.Sprintf("the mode of the mount %q is not a valid value", clip(mode)), d.mountHint(n.text, "write ro or rw"))
	default:
		d.notOneOf(s.rng(), mode, []string{"ro", "rw"}, "the mode of the mount")
	}
}

// mount checks one mount whose parts are known.
func (d *decoder) mount(m *Mount) bool {
	before := d.errors
	if clean := path.Clean(m.Target.V); strings.HasPrefix(m.Target.V, "/") && m.Target.V == clean+"/" {
		m.Target.V = clean
	}
	d.checkTarget(m)
	if m.Source.V != "" || !d.unsourced {
		d.checkSource(&m.Source, mountUseOf(m))
	}
	return d.errors == before
}

func (d *decoder) checkGlob(x Value[string]) bool {
	if err := pathglob.Check(x.V); err != nil {
		d.fail(x.Source.Range, "bad-glob", fmt.Sprintf("%q %v", clip(x.V), err), "write .env, *.pem or **/*.pem")
		return false
	}
	switch {
	case x.V == "":
		d.fail(x.Source.Range, "bad-glob", fmt.Sprintf("%q is not a glob", clip(x.V)), "write .env, *.pem or **/*.pem")
	case strings.HasPrefix(x.V, "/") || strings.HasPrefix(x.V, "~") || path.Clean(x.V) != strings.TrimSuffix(x.V, "/") || x.V == ".." || strings.HasPrefix(x.V, "../"):
		d.fail(x.Source.Range, "bad-glob", fmt.Sprintf("%q is not relative to the source of the mount", clip(x.V)), "write .env, *.pem or **/*.pem")
	default:
		return true
	}
	return false
}

// checkTarget refuses targets over our own paths.
func (d *decoder) checkTarget(m *Mount) {
	t := m.Target.V
	at := m.Target.Source.Range
	if strings.ContainsFunc(t, deceives) {
		d.fail(at, "bad-mount", fmt.Sprintf("the target %q has characters that no path here has", clip(t)), "")
		return
	}
	if !strings.HasPrefix(t, "/") || path.Clean(t) != t {
		hint := mountExample
		if t != "" {
			hint = "write " + path.Clean("/"+t)
		}
		d.fail(at, "bad-mount", fmt.Sprintf("the target %q is not an absolute, clean path", clip(t)), hint)
		return
	}
	if strings.Contains(t, ":") {
		d.fail(at, "bad-mount", fmt.Sprintf("the target %q has a colon", clip(t)), "choose another path")
		return
	}
	for _, own := range ourTargets {
		if subpath.Within(t, own) || subpath.Within(own, t) {
			d.fail(at, "reserved-target", fmt.Sprintf("the target %s would cover %s, which workshop provides in every worker", clip(t), own), "choose another target, such as /workspace")
			return
		}
	}
	for _, own := range slices.Sorted(maps.Keys(tmpfsTargets)) {
		if subpath.Within(own, t) {
			d.fail(at, "reserved-target", fmt.Sprintf("the target %s would cover the tmpfs at %s", t, own), fmt.Sprintf("choose another target; `%s:` sets the size of that tmpfs", tmpfsTargets[own]))
			return
		}
	}
}

// checkMounts checks the rules about several mounts of one container.
func (d *decoder) checkMounts(mounts []Mount) {
	targets, names := map[string]diag.Range{}, map[string]diag.Range{}
	for i := range mounts {
		m := &mounts[i]
		if !d.standsIn(m.Target.Source) {
			d.once("mounts", targets, m.Target.V, m.At.Range, "target")
		}
		if m.Name != "" {
			d.once("mounts", names, m.Name, m.At.Range, "mount")
		}
	}
	around := Around(mounts)
	for i := range mounts {
		if outer := around(&mounts[i]); outer != nil && outer.Source.V != "" {
			d.checkNested(&mounts[i], outer)
		}
	}
}

// Around returns a function that gives the mount of a container in which the
// target of another is, the nearest one; nil: it is in none.
func Around(mounts []Mount) func(*Mount) *Mount {
	byTarget := make(map[string]*Mount, len(mounts))
	for i := range mounts {
		if t := mounts[i].Target.V; byTarget[t] == nil {
			byTarget[t] = &mounts[i]
		}
	}
	return func(m *Mount) *Mount {
		for dir := path.Dir(m.Target.V); dir != "/" && dir != "."; dir = path.Dir(dir) {
			if outer := byTarget[dir]; outer != nil {
				return outer
			}
		}
		return nil
	}
}

// checkNested refuses a mount inside of a read-only one where its mount point
// doesn't exist: nobody could make it.
func (d *decoder) checkNested(m, outer *Mount) {
	if outer.ReadWrite || d.symbols != nil { // what exists is the machine's
		return
	}
	rel := strings.TrimPrefix(m.Target.V, outer.Target.V+"/")
	at := path.Join(outer.Source.V, rel)
	exists, known := d.exists(at)
	if exists || !known {
		return
	}
	if d.root != "" {
		at = path.Join(d.root, d.dir, at)
	}
	d.refuse("mounts", diag.Diagnostic{
		Severity: diag.Error, Code: "mount-point-missing",
		Summary: fmt.Sprintf("the target %s is inside %s, which is read-only and has no %s", m.Target.V, outer.Target.V, rel),
		Detail:  "A mount point can't be created in a read-only mount.",
		Hint:    m.CreateHint(at) + ", or choose a target outside of " + outer.Target.V,
		Range:   m.At.Range, Related: []diag.Related{{Message: "the read-only mount", Range: outer.At.Range}},
	})
}

// CreateHint says what makes the source, which is missing at a path of the machine.
func (m *Mount) CreateHint(at string) string {
	if !m.ReadWrite && strings.Trim(path.Ext(at), ".") != "" && path.Ext(at) != path.Base(at) {
		return "create that file" // a directory's name seldom has an extension
	}
	return "create it: `mkdir -p " + shellquote.Path(at) + "`"
}
