package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Grant is what one worker's tools may do. The compile writes it as JSON into
// the arguments of the worker's gate, where the toolbox reads it: so it is part
// of the generated project, and nothing that a client sends can widen it (B41).
// The zero value grants nothing.
type Grant struct {
	Worker string  `json:"worker"`
	Tools  []Offer `json:"tools,omitempty"`
	// TimeoutMS bounds one call, in milliseconds (resources.timeout).
	TimeoutMS Millis `json:"timeout,omitempty"`
	// MCP are the stdio servers that the worker may use, by name.
	MCP map[string]Server `json:"mcp,omitempty"`
}

// Timeout of one call; 0: none.
func (g *Grant) Timeout() time.Duration { return time.Duration(g.TimeoutMS) * time.Millisecond }

// Offer is one entry of a worker's tools. Where a tool is listed more than once,
// each entry allows what its Limit says.
type Offer struct {
	// Name is one of ours, mcp__SERVER (all tools of a server) or
	// mcp__SERVER__TOOL.
	Name string `json:"name"`
	// Limit is the part in parentheses of Bash(git:*) or
	// WebFetch(domain:example.org); empty: no limit. [CheckOffer] says what
	// limits there are; one that it refuses allows nothing.
	Limit string `json:"limit,omitempty"`
}

// String returns the offer as a worker's file writes it.
func (o Offer) String() string {
	if o.Limit == "" {
		return o.Name
	}
	return o.Name + "(" + o.Limit + ")"
}

// Server is an MCP server inside of a worker that speaks over its standard
// input and output.
type Server struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	// Secrets gives variables the value of a secret (/run/secrets/NAME).
	Secrets map[string]string `json:"secrets,omitempty"`
}

// Check returns nil if the grant offers a call, else a [NotOfferedError].
// Arguments that are not valid are not the grant's matter, unless a limit is
// about them; it reads them as [Decode] does, and so must the execution of the
// call.
//
// A shell that is limited takes no line: the host parses a line into argv
// ([ShellArgs.Argv]) where it is one plain command. It takes no env either, for
// PATH, LD_PRELOAD, GIT_SSH and their like make another program of an allowed
// one. Its cwd is free, unless the program itself is relative to it (./gradlew).
// A limit keeps a model at its task; the container decides what a program can
// reach.
func (g *Grant) Check(name string, args json.RawMessage) error {
	return g.check(name, func(limit string) string {
		switch name {
		case Shell:
			return shellExcess(limit, args)
		case FetchURL:
			var a FetchURLArgs
			if err := Decode(args, &a); err != nil {
				return err.Error()
			}
			return urlExcess(limit, a.URL)
		}
		return name + " has an unknown limit"
	})
}

// CheckURL is Check of fetch_url for one URL: each hop of a redirect is checked.
func (g *Grant) CheckURL(url string) error {
	return g.check(FetchURL, func(limit string) string { return urlExcess(limit, url) })
}

// CheckServer reports whether the worker has any tool of an MCP server, so that
// the server may be started at all.
func (g *Grant) CheckServer(server string) error {
	for _, o := range g.Tools {
		if s, _, ok := SplitMCP(o.Name); ok && s == server && o.Limit == "" {
			return nil
		}
	}
	return g.notOffered("mcp__"+server, "")
}

// WholeServer reports whether the worker has all tools of an MCP server.
func (g *Grant) WholeServer(server string) bool {
	return slices.ContainsFunc(g.Tools, func(o Offer) bool {
		s, tool, ok := SplitMCP(o.Name)
		return ok && s == server && tool == "" && o.Limit == ""
	})
}

// check finds an offer of the tool without a limit, or with one that the call
// keeps to by excess. Of several limits, the error has the last one's reason.
func (g *Grant) check(name string, excess func(limit string) string) error {
	why := ""
	if _, tool, mcp := SplitMCP(name); mcp && tool == "" {
		return g.notOffered(name, "") // a server, no tool of one
	}
	for _, o := range g.Tools {
		if !covers(o.Name, name) {
			continue
		}
		if o.Limit == "" {
			return nil
		}
		if why = excess(o.Limit); why == "" {
			return nil
		}
	}
	return g.notOffered(name, why)
}

func (g *Grant) notOffered(name, why string) error {
	e := &NotOfferedError{Worker: g.Worker, Tool: name, Why: why}
	for _, o := range g.Tools {
		e.Offered = append(e.Offered, o.String())
	}
	return e
}

// covers reports whether an offer of one name is one of the other too.
func covers(offer, name string) bool {
	server, tool, ok := SplitMCP(offer)
	if !ok {
		return offer == name
	}
	s, t, ok := SplitMCP(name)
	return ok && s == server && (tool == "" || t == tool)
}

// SplitMCP takes mcp__SERVER or mcp__SERVER__TOOL apart; tool is empty for all
// tools of a server, which may be written mcp__SERVER__* too. A server's name
// has no "__" in it and no "_" at its end, or it would be another's.
func SplitMCP(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	server, tool, named := strings.Cut(rest, "__")
	if server == "" || named && tool == "" {
		return "", "", false
	}
	if tool == "*" {
		tool = ""
	}
	return server, tool, true
}

// NotOfferedError is a call of a tool that a worker does not have, or not with
// these arguments (B41).
type NotOfferedError struct {
	Worker, Tool string
	// Why, where the tool is offered with a limit that the call exceeds.
	Why string
	// Offered lists what the worker has.
	Offered []string
}

func (e *NotOfferedError) Error() string {
	text, has := "there is no tool "+e.Tool, "no tools are granted"
	switch {
	case e.Worker == "": // a client that has all workers, or a session that was granted none
		if e.Why != "" {
			text += ": " + e.Why
		}
		if len(e.Offered) > 0 {
			has = "the tools are " + strings.Join(e.Offered, ", ")
		}
	default:
		text = fmt.Sprintf("the worker %s has no tool %s", e.Worker, e.Tool)
		if e.Why != "" {
			text = fmt.Sprintf("the worker %s may not make this call of %s: %s", e.Worker, e.Tool, e.Why)
		}
		has = "it has no tools"
		if len(e.Offered) > 0 {
			has = "it has " + strings.Join(e.Offered, ", ")
		}
	}
	if e.Tool == "" {
		text = "the call names no tool"
	}
	return text + "; " + has
}
