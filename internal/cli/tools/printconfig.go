package tools

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/lib/plainjson"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/mcpconfig"
)

// mcpClients are the values of --print-config.
func mcpClients() []string {
	var names []string
	for _, c := range mcpconfig.Clients() {
		names = append(names, c.Name)
	}
	return append(names, "json")
}

// printConfig prints what to paste into a client so that it starts `tools`. It
// asks no engine.
func (a verbs) printConfig(client string, s *app.Source, worker string, o options) error {
	name, server := serverName(s.Workshop.Name.V, worker), a.mcpServer(s, worker, o)
	if client == "json" {
		if !a.Quiet {
			a.Say("one entry, for the place where the client lists its stdio servers; call it %s", name)
		}
		return a.WriteJSON(server.JSON())
	}
	c := clientNamed(client)
	text, err := c.Add(nil, name, server, false)
	if err != nil {
		return app.Fail(app.CodeFailed, "%w", err)
	}
	if !a.Quiet {
		a.sayWhere(c, name, worker, server)
	}
	_, err = a.Out.Write(text)
	return err
}

func clientNamed(name string) mcpconfig.Client {
	all := mcpconfig.Clients()
	return all[slices.IndexFunc(all, func(c mcpconfig.Client) bool { return c.Name == name })]
}

// mcpServer is the command line that a client starts, from whatever directory.
func (a verbs) mcpServer(s *app.Source, worker string, o options) mcpconfig.Server {
	// A client that a desktop started hasn't the variables of this shell, and SDKs pass
	// few on.
	e := mcpconfig.Server{Command: a.executable(), Env: a.Places()}
	if a.Under != "" {
		e.Args = append(e.Args, "workshop")
	}
	e.Args = append(e.Args, "-f", s.Path)
	if a.Settings.Project != "" {
		e.Args = append(e.Args, "-p", a.Settings.Project)
	}
	if a.Settings.Engine != "" {
		e.Args = append(e.Args, "--engine", a.Settings.Engine)
	}
	for _, file := range a.Settings.EnvFiles {
		e.Args = append(e.Args, "--env-file", a.Abs(file))
	}
	e.Args = append(e.Args, "tools")
	e.Args = append(e.Args, o.words()...)
	if worker != "" {
		e.Args = append(e.Args, worker)
	}
	for i := range s.Workshop.Workers {
		if w := &s.Workshop.Workers[i]; worker == "" || worker == w.Name {
			e.Timeout = max(e.Timeout, w.Container.Resources.Timeout.V)
		}
	}
	return e
}

// words are the flags as they were given.
func (o *options) words() (words []string) {
	for _, f := range []struct {
		on   bool
		word string
	}{{o.ApproveAll, "--approve-all"}, {o.Strict, "--strict"}, {o.NoUp, "--no-up"}, {o.structured, "--structured"}, {o.Yes, "--yes"}} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return words
}

// serverName is what the server is called in the client. Claude Code keeps the
// name workspace for itself.
func serverName(workshop, worker string) string {
	name := workshop
	if worker != "" {
		name += "-" + worker
	}
	if name == "workspace" {
		return "workspace-workshop"
	}
	return name
}

// sayWhere says on the standard error where the text belongs.
func (a verbs) sayWhere(c mcpconfig.Client, name, worker string, server mcpconfig.Server) {
	if c.Name == "claude" {
		if line, err := plainjson.Marshal(server.JSON()); err == nil {
			a.Say("%s: for this project and you alone: claude mcp add-json %s %s", c.Title, shellquote.Quote(name), shellquote.Quote(string(line)))
		}
	}
	a.Say("%s: for %s at the root of the project; it names paths of this machine", c.Title, c.File)
	a.Hint("`%s` writes it, and keeps what else the file has", installLine(c.Name, worker)+" --write")
}

// executable is the absolute path by which this program was called: a link that a
// package manager keeps stays one, so that the next version is found as well.
func (a verbs) executable() string {
	if a.Executable != "" {
		return a.Executable
	}
	return strings.TrimSpace(a.Under + "workshop")
}
