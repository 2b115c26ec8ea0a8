package tooldoc

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/mcpserver"
	"github.com/llmdo/workshop/tool"
)

// Document returns the text of docs/tools.md with its generated parts made anew:
// what stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
func Document(doc string) (string, error) {
	for _, part := range []struct {
		name string
		make func() (string, error)
	}{{"overview", overview}, {"limits", limits}, {"tools", tools}} {
		begin, end := "<!-- "+part.name+": begin -->\n", "<!-- "+part.name+": end -->\n"
		before, rest, ok1 := strings.Cut(doc, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			return "", fmt.Errorf("no markers of the generated part %q", part.name)
		}
		made, err := part.make()
		if err != nil {
			return "", err
		}
		doc = before + begin + made + end + after
	}
	return doc, nil
}

// overview is a line for each tool.
func overview() (string, error) {
	var b strings.Builder
	b.WriteString("\n| tool | in a worker's file | |\n|---|---|---|\n")
	for _, t := range session.Described() {
		names, ok := written[t.Name]
		if !ok {
			return "", fmt.Errorf("no name in worker files for the tool %s", t.Name)
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", t.Name, strings.ToLower(t.Name), names, t.Title)
	}
	b.WriteString("\n")
	return b.String(), nil
}

// written is how worker files list a tool.
var written = map[string]string{
	tool.ReadFile:     "`Read`",
	tool.WriteFile:    "`Write`",
	tool.EditFile:     "`Edit`",
	tool.ListFiles:    "`Glob`, `LS`",
	tool.SearchFiles:  "`Grep`",
	tool.Shell:        "`Bash`, `Bash(git:*)`",
	tool.FetchURL:     "`WebFetch`, `WebFetch(domain:example.org)`",
	"delegate_WORKER": "`delegates-to: [WORKER]`",
	"end_delegation":  "with `delegates-to`",
}

// limits are those of the whole, from the constants that hold.
func limits() (string, error) {
	var b strings.Builder
	b.WriteString("\n| what | limit | beyond it |\n|---|---|---|\n")
	for _, l := range []struct{ what, limit, beyond string }{
		{"one message of an MCP client", size(mcpserver.MaxLine), "an error (-32600); the session goes on"},
		{"calls of a client at the same time", fmt.Sprint(mcpserver.MaxInFlight), "an error (-32001): wait for one to end"},
		{"their arguments together", size(mcpserver.MaxInFlightBytes), "an error (-32001)"},
		{"a client that reads nothing", fmt.Sprintf("%.0f minutes", mcpserver.Stall.Minutes()), "its session ends"},
		{"a question to a person", size(mcpserver.MaxQuestion), "the call is refused"},
		{"a file that is written", size(tool.MaxWriteBytes), "an error"},
		{"stdout and stderr in a result, each", size(tool.DefaultOutputBytes) + ", or `max_output_bytes`", "the middle is left out ([`shell`](#shell))"},
		{"files with output, of a session", fmt.Sprintf("%d, together %s or a quarter of `/scratch`", tool.MaxOutputFiles, size(tool.MaxOutputFileBytes)), "the oldest is removed"},
		{"the name of a tool", fmt.Sprintf("%d characters", session.MaxName), "the worker is refused by name"},
		{"time of one call", "`resources.timeout` of the worker (10m)", "the call is ended"},
	} {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", l.what, l.limit, l.beyond)
	}
	b.WriteString("\n")
	return b.String(), nil
}

// tools is a section for each tool.
func tools() (string, error) {
	var b strings.Builder
	for _, t := range session.Described() {
		about, ok := texts[t.Name]
		if !ok {
			return "", fmt.Errorf("nothing is said of the errors of the tool %s", t.Name)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", t.Name, t.Description)
		if about.notes != "" {
			fmt.Fprintf(&b, "\n%s\n", about.notes)
		}
		if err := list(&b, t.InputSchema); err != nil {
			return "", fmt.Errorf("%s: %w", t.Name, err)
		}
		b.WriteString("\n*Errors:*\n\n")
		for _, e := range about.errors {
			fmt.Fprintf(&b, "- %s\n", e)
		}
		b.WriteString("\n")
		for _, e := range about.examples {
			fmt.Fprintf(&b, "    workshop call builder %s\n", e)
		}
	}
	b.WriteString("\n")
	return b.String(), nil
}

// list shows the arguments that a schema has, an entry for each.
func list(b *strings.Builder, raw json.RawMessage) error {
	var s schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	b.WriteString("\n*Arguments:*\n\n")
	for _, r := range s.rows() {
		about := []string{r.kind()}
		switch {
		case r.required:
			about = append(about, "**required**")
		case r.standard() != "":
			about = append(about, "default "+r.standard())
		}
		if limit := r.limit(); limit != "" {
			about = append(about, limit)
		}
		fmt.Fprintf(b, "- `%s` (%s)", r.name, strings.Join(about, ", "))
		if r.Description != "" {
			fmt.Fprintf(b, ": %s", strings.ReplaceAll(r.Description, "*", `\*`))
		}
		b.WriteString("\n")
	}
	return nil
}
