package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// bind is a mount of a host's path.
type bind struct {
	source    string // relative to the project, ~/…, or absolute
	target    string
	readWrite bool
}

// bind makes a mount of a source as the file has it; base is the directory that it is
// relative to. Not ok: it was named as refused.
func (i *importing) bind(source, target, base string, readOnly bool, at place) (bind, bool) {
	b := bind{source: source, target: path.Clean(target), readWrite: !readOnly}
	switch {
	case strings.ContainsAny(target, "$") || !strings.HasPrefix(target, "/"):
		i.not(at, fmt.Sprintf("the mount at %q", target), "the target is not an absolute path", "write it by hand: mounts: [./DIR:/workspace/DIR]")
		return b, false
	case strings.Contains(source, "$"):
		i.not(at, fmt.Sprintf("the mount of %q", source), "its path has a variable", "write it by hand: mounts: [\"./DIR:"+clip(b.target)+"\"]")
		return b, false
	case source == "~" || strings.HasPrefix(source, "~/") || path.IsAbs(source):
		b.source = path.Clean(source)
	default:
		b.source = path.Join(base, source)
	}
	real := b.source
	if rest, ok := strings.CutPrefix(real, "~"); ok && i.Home != "" {
		real = path.Join(i.Home, rest)
	}
	if !path.IsAbs(real) && !strings.HasPrefix(real, "~") {
		real = path.Join(i.Project, real)
	}
	if why := i.Refused.Why(real); why != "" && real != i.Project {
		hint := "leave it out; what a worker needs of it can be a secret: secrets: [{name: NAME, env: VARIABLE}]"
		if strings.HasSuffix(real, ".sock") {
			hint = "leave it out: a worker starts no containers"
		}
		i.refuse(at, "the mount of "+clip(source), real+" "+why+" (B7)", hint)
		return b, false
	}
	if below, ok := subpath.Below(real, i.Project); ok && i.Project != "" {
		b.source = "./" + below
		if below == "" || below == "." {
			b.source = "."
		}
		return b, true
	}
	if b.readWrite {
		b.readWrite = false
		i.add(diag.Warning, at, "not-imported", "the mount of "+clip(source)+" is imported read-only: it is outside of the project",
			"if workers are to change it, write mode: rw there")
	}
	return b, true
}

// addBind adds a mount to a container; a target has one mount.
func (i *importing) addBind(c *draft.Container, b bind, at place) {
	line := b.line()
	for _, l := range c.Mounts {
		if targetOf(l.Text) == b.target {
			if l.Text != line.Text {
				i.not(at, "the mount of "+clip(b.source), "another one has the target "+b.target, "choose another target")
			}
			return
		}
	}
	c.Mounts = append(c.Mounts, line)
	if b.source == "." && b.readWrite {
		c.Mounts = append(c.Mounts, draft.Line{Text: draft.Scalar("./workshop.yaml:" + path.Join(b.target, "workshop.yaml")), Why: "what it grants, no worker changes"})
	}
}

// line is the mount as an item of mounts.
func (b *bind) line() draft.Line {
	if strings.HasPrefix(b.source, ".") && b.source != ".." && !strings.HasPrefix(b.source, "../") && !strings.Contains(b.source+b.target, ":") {
		text := b.source + ":" + b.target
		if b.readWrite {
			text += ":rw"
		}
		return draft.Line{Text: draft.Scalar(text)}
	}
	text := "{source: " + draft.Scalar(b.source) + ", target: " + draft.Scalar(b.target)
	if b.readWrite {
		text += ", mode: rw"
	}
	if !strings.HasPrefix(b.source, "./") && b.source != "." {
		text += ", outside_project: true"
	}
	return draft.Line{Text: text + "}"}
}

// targetOf is the target of a line that [bind.line] wrote.
func targetOf(line string) string {
	line = strings.Trim(line, `"`)
	if _, rest, ok := strings.Cut(line, ", target: "); ok {
		end := strings.IndexAny(rest, ",}")
		return strings.Trim(rest[:max(end, 0)], `"`)
	}
	parts := strings.Split(line, ":")
	if len(parts) < 2 {
		return ""
	}
	return parts[1]
}

// port adds a published port; what the file says of an address is kept.
func (i *importing) port(c *draft.Container, host string, published, target int, at place) {
	what := fmt.Sprintf("the port %d", target)
	switch {
	case published < 0 || published > 65535 || target < 1 || target > 65535:
		i.not(at, what, "a port is 1 to 65535", "write ports: [\"8080:8080\"]")
		return
	case target < 1024:
		i.not(at, what, "ports below 1024 belong to the guard", fmt.Sprintf("let the program listen on 8080 and write ports: [\"%d:8080\"]", published))
		return
	case host != "" && host != "127.0.0.1" && host != "localhost":
		i.add(diag.Warning, at, "not-imported", what+" on "+clip(host)+" is imported for 127.0.0.1: a port that others reach is written out", fmt.Sprintf("write ports: [{published: %d, target: %d, host: %q, expose_beyond_host: true}] if that is meant", published, target, clip(host)))
	}
	text := draft.Scalar(fmt.Sprintf("%d:%d", published, target))
	if !slices.ContainsFunc(c.Ports, func(l draft.Line) bool { return l.Text == text }) {
		c.Ports = append(c.Ports, draft.Line{Text: text})
	}
}
