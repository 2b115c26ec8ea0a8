package draft

import (
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// schemaLine tells editors where the schema is.
const schemaLine = "# yaml-language-server: $schema=https://raw.githubusercontent.com/llmdo/workshop/main/schemas/workshop.schema.json\n"

// width is where comments end, if they can.
const width = 84

// Text is the file's text.
func (f *File) Text() []byte {
	w := &writer{}
	w.b.WriteString(schemaLine + "\n")
	w.note(0, "A workshop: the sandbox of its workers, in which tools run. Whatever is not granted here, they don't have.")
	for _, line := range f.About {
		w.note(0, line)
	}
	w.line(0, "workshop:")
	w.line(1, "name: "+Scalar(f.Name))
	w.gap()
	w.note(1, "What every worker gets. A worker may narrow it, never widen it.")
	w.line(1, "container:")
	w.container(2, &f.Container)
	w.mcp(f.MCP)
	w.workers(f.Workers)
	return []byte(w.b.String())
}

// writer collects lines.
type writer struct {
	b strings.Builder
	// opened: the last line has a key whose value begins on the next.
	opened bool
}

func (w *writer) line(depth int, text string) {
	w.opened = strings.HasSuffix(text, ":")
	w.b.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

func (w *writer) gap() {
	if !w.opened {
		w.b.WriteByte('\n')
	}
}

// note writes a comment on lines of its own.
func (w *writer) note(depth int, text string) {
	for line := range strings.SplitSeq(textwrap.Lines(comment(text), width-2*depth-2, 0), "\n") {
		w.line(depth, "# "+line)
	}
}

// value writes a line with its reason after it, or above it where that is too long.
func (w *writer) value(depth int, l Line, key string) {
	text, why := key+l.Text, comment(l.Why)
	if l.Off {
		text = "# " + text
	}
	switch {
	case why == "":
	case utf8.RuneCountInString(text+why)+2*depth+6 <= width+16:
		text += "    # " + why
	default:
		w.note(depth, why)
	}
	w.line(depth, text)
}

func (w *writer) list(depth int, key string, items []Line) {
	if len(items) == 0 {
		return
	}
	on := false
	for _, l := range items {
		on = on || !l.Off
	}
	if on {
		w.line(depth, key+":")
	} else {
		w.line(depth, "# "+key+":")
	}
	for _, l := range items {
		w.value(depth+1, l, "- ")
	}
}

func (w *writer) pairs(depth int, key string, pairs []Pair) {
	if len(pairs) == 0 {
		return
	}
	w.line(depth, key+":")
	for _, p := range pairs {
		w.value(depth+1, Line{Text: Scalar(p.Value), Why: p.Why}, Scalar(p.Name)+": ")
	}
}

// section writes the comments above a key.
func (w *writer) section(depth int, c *Container, key string) {
	notes := c.Notes[key]
	if len(notes) == 0 {
		return
	}
	if depth == 2 {
		w.gap()
	}
	for _, n := range notes {
		w.note(depth, n)
	}
}

func (w *writer) key(depth int, c *Container, key string, l Line) {
	if l.Text == "" {
		return
	}
	w.section(depth, c, key)
	w.value(depth, l, key+": ")
}

func (w *writer) container(depth int, c *Container) {
	w.key(depth, c, "image", c.Image)
	if c.Build != nil {
		w.build(depth, c.Build)
	}
	w.key(depth, c, "user", c.User)
	w.network(depth, c)
	if len(c.Mounts) > 0 {
		w.section(depth, c, "mounts")
	}
	w.list(depth, "mounts", c.Mounts)
	if c.NoMounts && len(c.Mounts) == 0 {
		w.line(depth, "mounts: []")
	}
	w.key(depth, c, "workdir", c.Workdir)
	w.key(depth, c, "caches", c.Caches)
	if len(c.Env) > 0 {
		w.section(depth, c, "env")
	}
	w.pairs(depth, "env", c.Env)
	if len(c.Secrets) > 0 {
		w.section(depth, c, "secrets")
	}
	w.list(depth, "secrets", c.Secrets)
	if len(c.Ports) > 0 {
		w.section(depth, c, "ports")
	}
	w.list(depth, "ports", c.Ports)
	w.key(depth, c, "shm", c.Shm)
	w.key(depth, c, "tmp", c.Tmp)
	w.resources(depth, c)
}

func (w *writer) build(depth int, b *Build) {
	w.line(depth, "build:")
	for _, p := range []Pair{{Name: "context", Value: b.Context}, {Name: "dockerfile", Value: b.Dockerfile}, {Name: "target", Value: b.Target}} {
		if p.Value != "" {
			w.line(depth+1, p.Name+": "+Scalar(p.Value))
		}
	}
	w.pairs(depth+1, "args", b.Args)
}

func (w *writer) network(depth int, c *Container) {
	if c.Mode == "" {
		return
	}
	w.section(depth, c, "network")
	if c.Mode == "none" {
		w.line(depth, "network: none")
		return
	}
	w.line(depth, "network:")
	w.line(depth+1, "mode: "+c.Mode)
	on := false
	for _, l := range c.Allow {
		on = on || !l.Off
	}
	if !on {
		w.line(depth+1, "allow: []")
		for _, l := range c.Allow {
			w.value(depth+2, l, "- ")
		}
		return
	}
	w.list(depth+1, "allow", c.Allow)
}

func (w *writer) resources(depth int, c *Container) {
	var parts []string
	if c.Memory != "" {
		parts = append(parts, "memory: "+c.Memory)
	}
	if c.CPU != "" {
		parts = append(parts, "cpu: "+c.CPU)
	}
	if len(parts) == 0 {
		return
	}
	w.section(depth, c, "resources")
	w.line(depth, "resources: {"+strings.Join(parts, ", ")+"}")
}

func (w *writer) mcp(servers []Server) {
	if len(servers) == 0 {
		return
	}
	w.gap()
	w.note(1, "MCP servers that run in the workers which list their tools.")
	w.line(1, "mcp:")
	for _, s := range servers {
		w.line(2, Scalar(s.Name)+":")
		w.value(3, Line{Text: Scalar(s.Command), Why: s.Why}, "command: ")
		if len(s.Args) > 0 {
			w.line(3, "args: "+List(s.Args))
		}
		w.pairs(3, "env", s.Env)
		w.pairs(3, "secrets", s.Secrets)
	}
}

func (w *writer) workers(list []Worker) {
	w.gap()
	w.line(1, "workers:")
	for i := range list {
		w.worker(&list[i])
	}
}

func (w *writer) worker(k *Worker) {
	short := k.Container == nil && k.Description == "" && k.Instructions == "" && len(k.Secrets)+len(k.Caches) == 0
	switch name := Scalar(k.Name); {
	case short && len(k.Tools) == 0:
		w.value(2, Line{name, k.Why, k.Off}, "- ")
		return
	case short:
		w.value(2, Line{"{name: " + name + ", tools: " + List(k.Tools) + "}", k.Why, k.Off}, "- ")
		return
	default:
		w.value(2, Line{Text: name, Why: k.Why}, "- name: ")
	}
	if k.Description != "" {
		w.line(3, "description: "+Scalar(k.Description))
	}
	if len(k.Tools) > 0 {
		w.line(3, "tools: "+List(k.Tools))
	}
	if k.Instructions != "" {
		w.line(3, "instructions: "+Scalar(k.Instructions))
	}
	w.own(k)
}

// own is what a worker names of the workshop's, and its own container.
func (w *writer) own(k *Worker) {
	var names []string
	if len(k.Secrets) > 0 {
		names = append(names, "secrets: "+List(k.Secrets))
	}
	if len(k.Caches) > 0 {
		names = append(names, "caches: "+List(k.Caches))
	}
	inner := &writer{}
	if k.Container != nil {
		inner.container(4, k.Container)
	}
	switch {
	case inner.b.Len() > 0:
		w.line(3, "container:")
		for _, n := range names {
			w.line(4, n)
		}
		w.b.WriteString(inner.b.String())
	case len(names) > 0:
		w.line(3, "container: {"+strings.Join(names, ", ")+"}")
	}
}
