package importer

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/hostpath"
	clips "github.com/llmdo/workshop/internal/lib/clip"
)

// Options say where a file is.
type Options struct {
	// File is its path relative to the project's directory, with slashes. It may begin
	// with "..".
	File string
	// Base is the name of the project's directory.
	Base string
	// Project is that directory, absolute; Home is the caller's home directory.
	Project, Home string
	// Refused are the paths that no worker gets.
	Refused hostpath.List
	// Worker is the name of the first worker.
	Worker string
}

// Imported is what a file has for a workshop.
type Imported struct {
	// Container has the keys that the file says; the others are empty. Its mounts include
	// the project's.
	Container draft.Container
	// Workers are those of a file that has several containers; empty: the usual one, with
	// what Tools has in addition.
	Workers []draft.Worker
	Tools   []string
	MCP     []draft.Server
	// Programs are what it starts.
	Programs []string
	// Took says in a few words what was imported.
	Took []string
	// Problems name what was not.
	Problems diag.List
}

// SecretNames are the names of the secrets, for the worker that gets them.
func (in *Imported) SecretNames() (names []string) {
	for _, l := range in.Container.Secrets {
		names = append(names, nameOfSecret(l.Text))
	}
	return names
}

// Read imports a file; by its name it is known what it is. Without what could be read
// there is an error among the problems.
func Read(data []byte, o Options) Imported {
	i := &importing{Options: o, source: newSource(o.File, data)}
	var n *node
	var problem *diag.Diagnostic
	yaml := strings.HasSuffix(o.File, ".yaml") || strings.HasSuffix(o.File, ".yml")
	if yaml {
		n, problem = parseYAML(i.source)
	} else {
		n, problem = parseJSON(i.source)
	}
	switch {
	case problem != nil:
		i.Problems = append(i.Problems, *problem)
	case n.kind != mapping:
		i.add(diag.Error, n.at, "import-invalid", "the file is not a mapping of keys", "")
	case yaml:
		i.compose(n)
	case n.get("mcpServers") != nil || n.get("servers") != nil || strings.HasSuffix(path.Base(o.File), "mcp.json"):
		i.mcp(n)
	default:
		i.devcontainer(n)
	}
	i.Problems = i.Problems.Sorted()
	if i.more > 0 {
		i.Problems = append(i.Problems, diag.Diagnostic{Severity: diag.Warning, Code: "not-imported",
			Range: i.span(place{}), Summary: fmt.Sprintf("and %d more are not imported", i.more)})
	}
	return i.Imported
}

// maxProblems that are named of one file.
const maxProblems = 100

// importing is one run.
type importing struct {
	Options
	*source
	Imported
	workdir string // where the project is in the container
	more    int    // problems beyond maxProblems
}

func (i *importing) add(severity diag.Severity, at place, code, summary, hint string) {
	if len(i.Problems) >= maxProblems {
		i.more++
		return
	}
	i.Problems = append(i.Problems, diag.Diagnostic{Severity: severity, Code: code, Range: i.span(at), Summary: summary, Hint: hint})
}

// not names what has no counterpart.
func (i *importing) not(at place, what, why, hint string) {
	summary := clip(what) + " is not imported"
	if why != "" {
		summary += ": " + why
	}
	i.add(diag.Warning, at, "not-imported", summary, hint)
}

// refuse names what would open the boundary.
func (i *importing) refuse(at place, what, why, hint string) {
	i.add(diag.Warning, at, "import-refused", clip(what)+" is refused: "+why, hint)
}

func (i *importing) took(format string, args ...any) {
	i.Took = append(i.Took, fmt.Sprintf(format, args...))
}

func (i *importing) program(name string) {
	if !slices.Contains(i.Programs, name) {
		i.Programs = append(i.Programs, name)
	}
}

// env adds a variable to a container.
func (i *importing) env(c *draft.Container, name, value string, at place) {
	switch {
	case !isVariable(name):
		i.not(at, fmt.Sprintf("the variable %q", name), "that is not a variable's name", "")
		return
	case name == "PATH" && !strings.HasPrefix(value, "/"):
		i.not(at, "PATH", "the image's own can't be extended", "write the whole of it: env: {PATH: …}")
		return
	}
	c.Env = set(c.Env, name, value)
}

// set gives a name a value; the last one counts.
func set(list []draft.Pair, name, value string) []draft.Pair {
	for k := range list {
		if list[k].Name == name {
			list[k].Value = value
			return list
		}
	}
	return append(list, draft.Pair{Name: name, Value: value})
}

func isVariable(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// clip shortens a text of the file for a message.
func clip(s string) string { return clips.Text(s, 60) }
