package diff

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// values compares what can't be ordered.
func (p *pair) values(s surface) (rows []Row) {
	old, now := s.of(p.old), s.of(p.new)
	names := map[string]bool{}
	for _, m := range []map[string]value{old, now} {
		for name := range m {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, was := old[name]
		b, is := now[name]
		if was && is && a.text == b.text {
			continue
		}
		surface := s.name()
		if name != "" {
			surface += "." + name
		}
		before, after := shown(was, a.text), shown(is, b.text)
		switch s.key {
		case "container.caches[].target", "container.ports[].published":
			if !was || !is {
				continue // the cache or the port itself is compared
			}
		case "container.build.context":
			if p.old.Container.Build == nil || p.new.Container.Build == nil {
				continue // it is a row of the image
			}
		case "container.image":
			before, after = p.imageText(p.old, a.text), p.imageText(p.new, b.text)
			if before == after || pinned(p.base, a.text, b.text) {
				continue
			}
		case "workshop.workers[].instructions", "workshop.workers[].description", "workshop.workers[].result_type":
			before, after = size(a.text), size(b.text)
			if before == after && before != "" {
				after += ", other text"
			}
		}
		rows = append(rows, p.row(p.stateOf(s, a, b), surface, before, after, b.at, a.at))
	}
	if s.key == "container.build.context" {
		rows = append(rows, p.dockerfile()...)
	}
	return rows
}

// stateOf is the state of a value that differs. A variable of the host that no value had
// before brings something in; else nobody knows what it is.
func (p *pair) stateOf(s surface, a, b value) State {
	switch {
	case s.key == "container.network.proxy_credential" && a.text == "":
		return Widened // one of the user's leaves the machine
	case s.key == "container.network.proxy_credential" && b.text == "":
		return Narrowed
	case !a.open && !b.open:
		return Changed
	case s.key == "container.env" && !b.open:
		return Narrowed
	case s.key == "container.env" && slices.ContainsFunc(workshop.VariablesIn(b.text), func(name string) bool { return !p.reads(name) }):
		return Widened
	}
	return Unknown
}

// reads reports whether the environment of the worker had a variable of the host.
func (p *pair) reads(name string) bool {
	for _, v := range env(p.old) {
		if v.open && slices.Contains(workshop.VariablesIn(v.text), name) {
			return true
		}
	}
	return false
}

// shown is a value in words.
func shown(has bool, text string) string {
	if has && text == "" {
		return `""`
	}
	return text
}

// size is what a row says of a long text.
func size(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Count(text, "\n") + 1
	if lines == 1 && len(text) <= 60 {
		return text
	}
	return fmt.Sprintf("%d lines, %d bytes", lines, len(text))
}

// imageText is an image in words, and what one is built from.
func (p *pair) imageText(k *workshop.Worker, text string) string {
	if b := k.Container.Build; b != nil {
		if p.old.Container.Build != nil && p.new.Container.Build != nil {
			return "built" // its parts are compared
		}
		return grant.ImageText(&k.Container, grant.Symbols)
	}
	return text
}

// pinned reports whether an image is the same, and its digest was added, by base's lock.
func pinned(base *Side, before, after string) bool {
	name, digest, ok := strings.Cut(after, "@")
	if !ok {
		return false
	}
	tagless := name
	if i := strings.LastIndexByte(before, ':'); i > strings.LastIndexByte(before, '/') {
		tagless = before[:i]
	}
	return (name == before || name == tagless) && base.Images[before] == digest
}

// dockerfile compares the file that an image is built by.
func (p *pair) dockerfile() []Row {
	name := func(k *workshop.Worker, w *workshop.Workshop) string {
		b := k.Container.Build
		if b == nil || b.Context.Source.Template+b.Dockerfile.Source.Template != "" {
			return ""
		}
		return path.Join(path.Dir(w.File), b.Context.V, b.Dockerfile.V)
	}
	was, is := name(p.old, p.base.Workshop), name(p.new, p.head.Workshop)
	if was == "" || is == "" {
		return nil
	}
	a, b := p.base.Files[was], p.head.Files[is]
	if a == b {
		return nil
	}
	place := func(name, text, other string) diag.Range {
		line := 1 + strings.Count(common(text, other), "\n")
		return diag.Range{Filename: name, Start: diag.Pos{Line: line, Column: 1}, End: diag.Pos{Line: line, Column: 1}}
	}
	return []Row{p.row(Changed, "build.dockerfile", size(a), size(b)+", other text", place(is, b, a), place(was, a, b))}
}

// common is what two texts begin with.
func common(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// moved are mounts that are granted, but were not to be seen at their target.
func (p *pair) moved() (rows []Row) {
	old := p.old.Container.Mounts
	for i := range p.new.Container.Mounts {
		m := &p.new.Container.Mounts[i]
		source, target := sourceText(m), textOf(m.Target).text
		var at diag.Range
		before, there := (*workshop.Mount)(nil), false
		for j := range old {
			o := &old[j]
			rest, below := subpath.Below(source, sourceText(o))
			if !below || strings.Contains(source, "${") && source != sourceText(o) {
				continue
			}
			place := path.Join(textOf(o.Target).text, rest)
			if place == target {
				there = true
			} else if before == nil || source == sourceText(o) {
				before, at = o, o.At.Range
			}
		}
		if there || before == nil {
			continue
		}
		was, is := grant.MountLine(before, grant.Symbols), grant.MountLine(m, grant.Symbols)
		state := Changed
		if strings.Contains(target+sourceText(before)+textOf(before.Target).text, "${") {
			state = Unknown
		}
		rows = append(rows, p.row(state, "mounts", was, is, m.At.Range, at))
	}
	return rows
}

func sourceText(m *workshop.Mount) string {
	if m.Source.Source.Template != "" {
		return m.Source.Source.Template
	}
	return path.Clean(m.Source.V)
}

func published(k *workshop.Worker) map[string]value {
	out := map[string]value{}
	for i := range k.Container.Ports {
		p := &k.Container.Ports[i]
		text := p.Published.Source.Template
		switch {
		case text != "":
		case p.Auto():
			text = "auto"
		default:
			text = fmt.Sprint(p.Published.V)
		}
		out[fmt.Sprint(p.Target.V)] = value{text: text, open: p.Published.Source.Template != "", at: p.At.Range}
	}
	return out
}
