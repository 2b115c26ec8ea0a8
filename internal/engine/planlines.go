package engine

import (
	"slices"
	"strings"
)

// Line is what a plan does to one object, for a reader who doesn't know its steps.
type Line struct {
	Verb   string // "recreate"
	Object string // a service, or "image alpine:3"
	Cause  string // empty where the verb says it
}

// String returns the line as in "recreate gopher (configuration changed)".
func (l Line) String() string {
	if l.Cause == "" {
		return l.Verb + " " + l.Object
	}
	return l.Verb + " " + l.Object + " (" + l.Cause + ")"
}

// Lines returns what the plan changes, in order: a line per image and container, and
// per network or volume that is no longer needed. Other steps have a line where there
// is none else.
func (p *Plan) Lines() (lines []Line) {
	has := func(op Op, s Step) bool {
		return slices.ContainsFunc(p.Steps, func(o Step) bool { return o.Op == op && o.Service == s.Service })
	}
	made := func(target string) bool {
		return slices.ContainsFunc(p.Steps, func(o Step) bool {
			return o.Target == target && (o.Op == OpCreateNetwork || o.Op == OpCreateVolume)
		})
	}
	for _, s := range p.Steps {
		_, name, _ := strings.Cut(s.Target, "/")
		l := Line{Verb: s.Op.String(), Object: s.Service, Cause: s.Cause}
		switch s.Op {
		case OpPullImage, OpBuildImage:
			if l.Object = "image " + name; s.Cause == "not found" {
				l.Cause = ""
			}
		case OpCreateContainer:
			if l.Cause = ""; has(OpRemoveContainer, s) {
				l.Verb, l.Cause = "recreate", s.Cause
			}
		case OpRemoveContainer:
			if s.Service != "" && has(OpCreateContainer, s) {
				continue
			}
			if s.Service == "" {
				l.Object = name
			}
		case OpStartContainer:
			if has(OpCreateContainer, s) {
				continue
			}
		case OpReloadPolicy:
			l.Verb = "update"
		case OpRemoveNetwork, OpRemoveVolume:
			if made(s.Target) {
				continue
			}
			l.Object = strings.Replace(s.Target, "/", " ", 1)
		case OpStopContainer:
		default:
			continue
		}
		lines = append(lines, l)
	}
	if len(lines) > 0 {
		return lines
	}
	for _, s := range p.Steps {
		if !s.onlyLooks() {
			lines = append(lines, Line{s.Op.String(), strings.Replace(s.Target, "/", " ", 1), s.Cause})
		}
	}
	return lines
}
