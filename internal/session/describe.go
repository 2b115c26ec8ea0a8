package session

import "github.com/llmdo/workshop/tool"

// Described lists every tool with its schemas, as a client gets them: those of
// a worker (package tool) in the order of their documentation, then those of
// delegation, where WORKER is a placeholder for a delegate. What documents and programs
// say of the tools is made of it.
func Described() []Tool {
	var out []Tool
	for _, s := range tool.Specs() {
		out = append(out, Tool{Name: s.Name, Title: s.Title, Description: s.Description,
			InputSchema: schemaOf(s.Args, s.Name).json, OutputSchema: schemaOf(s.Result, "").json,
			ReadOnly: s.ReadOnly, Destructive: s.Destructive, Idempotent: s.Idempotent, OpenWorld: s.OpenWorld})
	}
	delegate, end := delegateTool("WORKER", "", ""), endTool()
	delegate.Name, end.Name = delegatePrefix+"WORKER", endDelegation
	return append(out, delegate, end)
}
