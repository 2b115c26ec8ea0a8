package callrule

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/tool"
)

// Any names all tools.
const Any = "*"

// MaxMatch is the length, in bytes, of the longest match.
const MaxMatch = 4096

// Rule is a tool and what its calls match. The zero value is about no call.
type Rule struct {
	name         string
	server, tool string // of mcp__SERVER and mcp__SERVER__TOOL
	match        matcher
	broken       bool // the match can't be read
}

// Call is a call of a tool.
type Call struct {
	Tool string
	Args json.RawMessage
	// Workdir is the worker's working directory, which relative paths are
	// relative to; empty: unknown.
	Workdir string
}

// Certainty reports whether a call is what a rule is about.
type Certainty int

// The certainties.
const (
	No Certainty = iota
	// Maybe: only who runs the call would know, as with a shell line that
	// computes the name of a program.
	Maybe
	Yes
)

// matcher is the part of a rule that looks at arguments.
type matcher interface {
	grants(c Call) bool
	restricts(c Call) Certainty
}

// Error says what is wrong with a rule.
type Error struct {
	// Tool: it is the tool that is wrong, else the match.
	Tool          bool
	Summary, Hint string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Summary
	}
	return e.Summary + "; " + e.Hint
}

// Parse reads a rule. The name is one of a tool, mcp__SERVER (or mcp__SERVER__*)
// for all tools of a server, mcp__SERVER__TOOL, delegate_WORKER, or *. What match
// is depends on the tool; empty: every call.
//
//	shell                              the words that the command begins with
//	read_file, write_file, edit_file,
//	list_files, search_files           a path, * and ** as in globs
//	fetch_url                          a host as in network.allow
//
// The others have no match. The error is an [*Error]; the rule that comes with
// it grants nothing and restricts every call of its tool.
func Parse(name, match string) (Rule, error) {
	r := Rule{name: name}
	fail := func(e *Error) (Rule, error) {
		r.broken = true
		return r, e
	}
	if server, one, ok := tool.SplitMCP(name); ok {
		r.server, r.tool = server, one
	} else if _, ours := tool.Find(name); !ours && name != Any && !isDelegate(name) {
		return fail(&Error{Tool: true, Summary: "there is no tool " + quote(name), Hint: "tools: " + strings.Join(Names(), ", ") + ", mcp__SERVER, mcp__SERVER__TOOL, delegate_WORKER, *"})
	}
	if match == "" {
		return r, nil
	}
	if len(match) > MaxMatch {
		return fail(&Error{Summary: "the match is too long", Hint: "write what the call begins with"})
	}
	var bad *Error
	switch name {
	case tool.Shell:
		r.match, bad = parseCommand(match)
	case tool.ReadFile, tool.WriteFile, tool.EditFile, tool.ListFiles, tool.SearchFiles:
		r.match, bad = parsePath(match)
	case tool.FetchURL:
		r.match, bad = parseHost(match)
	default:
		what := "of " + name
		if name == Any {
			what = "of all tools"
		}
		bad = &Error{Summary: "a rule " + what + " has no match: its arguments are unknown", Hint: "remove match"}
	}
	if bad != nil {
		return fail(bad)
	}
	return r, nil
}

// Names lists our tools, in the order of their documentation.
func Names() (out []string) {
	for _, s := range tool.Specs() {
		out = append(out, s.Name)
	}
	return out
}

// DelegatePrefix begins the names of the tools that delegate.
const DelegatePrefix = "delegate_"

func isDelegate(name string) bool {
	return strings.HasPrefix(name, DelegatePrefix) && len(name) > len(DelegatePrefix)
}

// about reports whether the rule is about a tool.
func (r Rule) about(name string) bool {
	switch {
	case r.name == "" || name == "":
		return false
	case r.name == Any:
		return true
	case r.server == "":
		return r.name == name
	}
	server, one, ok := tool.SplitMCP(name)
	return ok && server == r.server && one != "" && (r.tool == "" || r.tool == one)
}

// Grants reports whether the rule, as one that lets calls pass, is surely about
// this one.
func (r Rule) Grants(c Call) bool {
	return r.about(c.Tool) && !r.broken && (r.match == nil || r.match.grants(c))
}

// Restricts reports whether the rule, as one that stops calls, is about this one.
func (r Rule) Restricts(c Call) Certainty {
	switch {
	case !r.about(c.Tool):
		return No
	case r.match == nil || r.broken:
		return Yes
	}
	return r.match.restricts(c)
}

// Wide reports whether the rule is about every call of shell, or of all tools.
func (r Rule) Wide() bool { return r.name == Any || r.match == nil && r.name == tool.Shell }

func quote(s string) string { return `"` + clip.Bytes(s, 60) + `"` }

// isOneOf is for short lists.
func isOneOf(s string, list ...string) bool { return slices.Contains(list, s) }
