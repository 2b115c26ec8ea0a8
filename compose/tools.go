package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/plainjson"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// toolsFlag is the gate's argument that holds a worker's [tool.Grant].
const toolsFlag = "--tools"

// maxGrant is below what Linux takes as one argument (execve(2): 128 KiB).
const maxGrant = 96 << 10

// tools writes what the worker's tools may do into the arguments of its gate,
// where the toolbox reads it (B41): they are in the project, and PID 1 can't
// be told others. It is there for a worker without tools too.
func (c *compiler) tools(service string, w *workshop.Worker) []string {
	g := grantOf(c.w, w)
	text := grantJSON(g)
	if len(text) > maxGrant {
		c.errs = append(c.errs, fmt.Errorf("%s: the tools of worker %s and their MCP servers take %d bytes as an argument of its main process, more than %d: list fewer, or shorten args and env of the servers",
			w.Source.Range, w.Name, len(text), maxGrant))
	}
	src := diag.Source{}
	if tools := w.Definition.Tools; len(tools) > 0 {
		src.Range = tools[0].Source.Range
	}
	// A variable of the timeout stays one.
	if template := w.Container.Resources.Timeout.Source.Template; template != "" {
		quoted, _ := json.Marshal(g.TimeoutMS)
		before, after, _ := strings.Cut(text, `"timeout":`+string(quoted))
		src.Template = diag.Literal(before+`"timeout":"`) + template + diag.Literal(`"`+after)
	}
	c.origin(service, "entrypoint."+toolsFlag, src)
	return []string{toolsFlag, text}
}

// grantOf is what a worker's tools may do: the tools of its file with their
// limits, the time of a call, and the MCP servers of the workshop that its tools
// name.
func grantOf(w *workshop.Workshop, k *workshop.Worker) tool.Grant {
	g := tool.Grant{Worker: k.Name, TimeoutMS: tool.Millis(k.Container.Resources.Timeout.V.Milliseconds())}
	for _, t := range k.Definition.Tools {
		if server, _, ok := tool.SplitMCP(t.Name); ok {
			i := slices.IndexFunc(w.MCP, func(s workshop.MCPServer) bool { return s.Name == server })
			if i < 0 {
				continue // a worker file is portable: elsewhere it may be there
			}
			if g.MCP == nil {
				g.MCP = map[string]tool.Server{}
			}
			s := &w.MCP[i]
			g.MCP[server] = tool.Server{Command: s.Command, Env: s.Env, Secrets: s.Secrets}
		}
		g.Tools = append(g.Tools, tool.Offer{Name: t.Name, Limit: t.Pattern})
	}
	return g
}

// grantJSON writes a grant in one way: fields in their order, maps sorted, and
// nothing escaped that JSON doesn't escape.
func grantJSON(g tool.Grant) string {
	b, err := plainjson.Marshal(g)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(b)
}
