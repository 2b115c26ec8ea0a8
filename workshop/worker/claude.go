package worker

// claudeAgent reads a sub-agent of Claude Code, .claude/agents/NAME.md. Its
// keys grow month by month: an unknown one is never an error.
func (f *file) claudeAgent() {
	f.common("name", "description")
	if fd := f.take("tools"); fd != nil {
		f.offer(fd)
	} else {
		f.noList("tools", "in Claude Code a sub-agent without the key inherits every tool, a worker inherits none")
	}
	for _, key := range []string{"disallowedTools", "disallowed-tools"} {
		if fd := f.take(key); fd != nil {
			f.withdraw(fd)
		}
	}
	if fd := f.take("delegates-to"); fd != nil {
		f.delegates(fd)
	}
	f.resultType(false)
	f.rest(map[string]string{
		"color": "", "effort": "", "background": "", "initialPrompt": "", "maxTurns": "", "memory": "",
		"allowed-tools":  "it is not a key of a sub-agent; the list is tools",
		"permissionMode": "approvals are decided in workshop.yaml",
		"mcpServers":     "declare a server that runs in the worker under mcp: in workshop.yaml",
		"hooks":          "nothing of a worker file is executed",
		"skills":         "list the skill as a worker, or copy its text",
		"isolation":      "every worker has a container of its own",
	}, "name", "description", "tools", "disallowedTools", "model", "delegates-to", "result_type")
}
