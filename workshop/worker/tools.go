package worker

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
)

// written is an entry of a tool list with its place.
type written struct {
	entry
	text string
	at   diag.Range
}

// list reads the value of a list key: one text with commas or blanks, or a
// YAML list of such texts, of at most so many entries. ok is false when it was
// refused.
func (f *file) list(fd *field, most int) (out []written, ok bool) {
	texts, ok := f.texts(fd)
	for _, t := range texts {
		entries, bad := splitTools(t.value)
		if bad != nil {
			if bad.bare != "" && t.whole {
				bad.hint = "write `" + fd.name + ": " + bad.bare + "`"
			}
			f.report(diag.Error, "worker-tool-list", t.part(bad.from, bad.to), bad.hint, "%s", bad.summary)
			ok = false
			continue
		}
		if len(out)+len(entries) > most {
			f.report(diag.Error, "worker-tool-list", f.keyRange(fd), "", "%s has more than %d entries", fd.name, most)
			return nil, false
		}
		for _, e := range entries {
			out = append(out, written{e, t.value[e.from:e.to], t.part(e.from, e.to)})
		}
	}
	return out, ok
}

// listText is a text of a list, which may have several entries.
type listText struct {
	value string
	whole bool // it is the value of a key, letter by letter
	part  func(from, to int) diag.Range
}

// texts are those of a list; ok is false where an item isn't one.
func (f *file) texts(fd *field) (out []listText, ok bool) {
	if fd.value == nil {
		for _, t := range fd.texts {
			out = append(out, listText{t.Value, false, t.part})
		}
		return out, true
	}
	v := resolve(fd.value)
	items := []*yaml.Node{v}
	switch {
	case v.Kind == yaml.SequenceNode:
		items = v.Content
	case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!null":
		return nil, true
	}
	ok = true
	for _, item := range items {
		n := resolve(item)
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			f.report(diag.Error, "worker-type", f.rangeOf(item), "write `"+fd.name+": Read, Grep`", "%s must be a list of names, found %s", fd.name, kindName(n))
			ok = false
			continue
		}
		out = append(out, listText{n.Value, item == v, f.inside(n)})
	}
	return out, ok
}

// offer maps the entries of a list to our tools. What isn't ours is warned
// about and kept in Extra, and not offered.
func (f *file) offer(fd *field) {
	entries, ok := f.list(fd, maxTools)
	if !ok {
		return
	}
	for _, e := range entries {
		name, known := ourTool(e.name)
		switch {
		case !known:
			f.unknownTool(fd, e)
		case e.limited && strings.HasPrefix(name, "mcp__"):
			f.report(diag.Warning, "worker-unknown-tool", e.at, "write "+e.name+" for the whole tool", "%s isn't offered: a tool of an MCP server has no limit", e.text)
			f.keep(fd)
		case e.limited && e.limit == "":
			f.report(diag.Warning, "worker-unknown-tool", e.at, "write "+e.name+" for the whole tool, or "+e.name+"(limit)", "%s has an empty limit and isn't offered", e.name)
			f.keep(fd)
		default:
			f.limited(fd, e, name)
		}
	}
	for _, t := range f.def.Tools {
		whole := slices.IndexFunc(f.def.Tools, func(o Tool) bool { return o.Name == t.Name && o.Pattern == "" })
		if t.Pattern != "" && whole >= 0 {
			name := f.def.Tools[whole].Written
			f.report(diag.Warning, "worker-tool-limit", t.Source.Range, "remove "+name+" to keep the limit, or remove "+t.Written, "%s has no effect: %s offers the whole tool", t.Written, name)
		}
	}
}

// limited offers a tool with its limit, if that can be kept: less than what is
// written isn't known, and more must not be (B41).
func (f *file) limited(fd *field, e written, name string) {
	err := tool.CheckOffer(tool.Offer{Name: name, Limit: e.limit})
	if bad, ok := errors.AsType[*tool.OfferError](err); ok {
		f.report(diag.Warning, "worker-tool-limit", e.at, bad.Hint, "%s isn't offered: it %s", e.text, bad.Message)
	}
	if err != nil {
		f.keep(fd)
		return
	}
	f.add(Tool{Name: name, Pattern: e.limit, Written: e.text, Source: diag.Source{Range: e.at}})
}

// add offers a tool once: two names of a list may be one of our tools.
func (f *file) add(t Tool) {
	if !slices.ContainsFunc(f.def.Tools, func(o Tool) bool { return o.Name == t.Name && o.Pattern == t.Pattern }) {
		f.def.Tools = append(f.def.Tools, t)
	}
}

func (f *file) unknownTool(fd *field, e written) {
	if f.def.Extra[fd.name] == "" {
		f.keep(fd)
	}
	if why := absentTool(e.name); why != "" {
		hint := "remove it from " + fd.name
		if e.name == "Agent" || e.name == "Task" {
			hint = "add `delegates-to: [" + strings.Join(strings.Fields(strings.ReplaceAll(e.limit, ",", " ")), ", ") + "]` with names of workers"
		}
		f.report(diag.Warning, "worker-unknown-tool", e.at, hint, "%s isn't offered in a workshop: %s", e.name, why)
		return
	}
	hint := "a workshop has " + strings.Join(toolNames(), ", ")
	if near := f.near(e.name, toolWords()); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	f.report(diag.Warning, "worker-unknown-tool", e.at, hint, "unknown tool %q, it isn't offered", shorten(e.name))
}

// withdraw takes the tools of a deny list away. A limited entry, Bash(git:*),
// takes the whole tool: less than that can't be kept here.
func (f *file) withdraw(fd *field) {
	entries, ok := f.list(fd, maxTools)
	if !ok {
		f.def.Tools = nil
		return
	}
	for _, e := range entries {
		name, known := ourTool(e.name)
		if !known {
			if absentTool(e.name) == "" {
				hint := "check the name: a tool that is meant here stays offered"
				if near := f.near(e.name, toolWords()); near != "" {
					hint = "did you mean " + near + "?"
				}
				f.report(diag.Warning, "worker-unknown-tool", e.at, hint, "unknown tool %q in %s", shorten(e.name), fd.name)
			}
			continue
		}
		had := len(f.def.Tools)
		part := false // one tool of a server whose tools are all listed
		f.def.Tools = slices.DeleteFunc(f.def.Tools, func(t Tool) bool {
			whole := strings.HasPrefix(name, t.Name+"__")
			part = part || whole
			return whole || t.Name == name || strings.HasPrefix(t.Name, name+"__")
		})
		if part {
			f.report(diag.Warning, "worker-tool-limit", e.at, "list the tools of the server that the worker may use, each as mcp__SERVER__TOOL", "%s takes all tools of its server away: a part of them can't be denied", e.text)
		}
		if e.limited && len(f.def.Tools) < had {
			f.report(diag.Warning, "worker-tool-limit", e.at, "list what the worker may do instead, such as "+e.name+"(git:*)", "%s takes the whole tool %s away: a part of a tool can't be denied", e.text, name)
		}
	}
}

// noList warns of a worker without any list of tools.
func (f *file) noList(key, note string) {
	hint := "add a line such as `" + key + ": Read, Grep`, or `" + key + ": []` to say that none is meant"
	if !f.hasKeys {
		hint = "begin the file with the lines `---`, `name: " + nameOf(f.path, f.dialect) + "`, `" + key + ": Read, Grep` (or `" + key + ": []` to say that none is meant) and `---`"
	}
	if note != "" {
		hint = note + "; " + hint
	}
	f.report(diag.Warning, "worker-no-tools", diag.Range{Filename: f.path, Start: f.pos(len(f.bom())), End: f.pos(len(f.bom()))}, hint, "the worker lists no tools and gets none")
}
