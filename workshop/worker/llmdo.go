package worker

import (
	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/tool"
)

// The toolsets of llm-do, from its llm_do/toolsets/builtins.py (8d2109a) and,
// for the map form, from its workers of 2025. A toolset with a list of
// commands becomes a shell for these commands alone: less would be a guess,
// more a widening.
func llmdoToolset(name string) (tools []Tool, known bool) {
	switch name {
	case "filesystem", "filesystem_cwd", "filesystem_project":
		return plain(tool.ReadFile, tool.WriteFile, tool.ListFiles), true
	case "filesystem_cwd_ro", "filesystem_project_ro":
		return plain(tool.ReadFile, tool.ListFiles), true
	case "shell_readonly":
		// find is left out: it asks there for -exec and -delete, which a
		// limit by the beginning of a command cannot tell apart.
		return commands("wc", "grep", "head", "tail", "sort", "uniq", "cat", "ls", "git log", "git diff", "git show", "git status"), true
	case "shell_file_ops":
		return commands("ls", "mv"), true
	}
	return nil, false
}

func plain(names ...string) []Tool {
	out := make([]Tool, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// commands are shells limited to commands that begin so.
func commands(patterns ...string) []Tool {
	out := make([]Tool, len(patterns))
	for i, p := range patterns {
		out[i] = Tool{Name: tool.Shell, Pattern: p + ":*"}
	}
	return out
}

// toolsets reads llm-do's key: a list of names (2026) or a mapping of names to
// their settings (2025).
func (f *file) toolsets(fd *field) {
	v := resolve(fd.value)
	if v.Kind != yaml.MappingNode {
		entries, ok := f.list(fd, maxTools)
		for _, e := range entries {
			if ok {
				f.toolset(fd, e.name, nil, e.at)
			}
		}
		return
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		f.toolset(fd, v.Content[i].Value, resolve(v.Content[i+1]), f.rangeOf(v.Content[i]))
	}
}

// toolset maps one entry; settings is nil in the list form.
func (f *file) toolset(fd *field, name string, settings *yaml.Node, at diag.Range) {
	if settings != nil && len(settings.Content) > 0 {
		f.keep(fd)
	}
	switch name {
	case "delegation":
		f.delegation(settings, at)
		return
	case "shell":
		f.shellRules(settings, at)
		return
	case "custom":
		f.keep(fd)
		f.report(diag.Warning, "worker-unknown-tool", at, "offer `shell` and call a program that is in the image", "custom isn't offered in a workshop: its tools are written in Python")
		return
	}
	tools, known := llmdoToolset(name)
	if !known {
		if ours, ok := ourTool(name); ok {
			tools, known = plain(ours), true
		}
	}
	if !known {
		f.keep(fd)
		if why := absentTool(name); why != "" {
			f.report(diag.Warning, "worker-unknown-tool", at, "remove it", "%s isn't offered in a workshop: %s", name, why)
			return
		}
		// The name of a worker, maybe; Parse doesn't know them.
		f.def.Toolsets = append(f.def.Toolsets, Reference{Name: name, Source: diag.Source{Range: at}})
		return
	}
	if name == "shell_readonly" {
		f.report(diag.Warning, "worker-tool-limit", at, "offer it as `Bash(find:*)` in a worker of our own form", "find isn't offered: that it must not delete or execute can't be kept here")
	}
	if settings != nil && len(settings.Content) > 0 {
		f.report(diag.Warning, "worker-unused-key", at, "write mounts in workshop.yaml (ro is the default), and approvals under `approvals:`", "the settings of the toolset %s have no effect in a workshop", name)
	}
	for _, t := range tools {
		t.Written, t.Source = name, diag.Source{Range: at}
		f.add(t)
	}
}

// delegation reads the toolset of 2025 whose settings name workers.
func (f *file) delegation(settings *yaml.Node, at diag.Range) {
	if settings == nil || settings.Kind != yaml.MappingNode || len(settings.Content) == 0 {
		f.report(diag.Warning, "worker-unknown-tool", at, "add `delegates-to: [name]`", "delegation without names of workers reaches none")
		return
	}
	for i := 0; i+1 < len(settings.Content); i += 2 {
		k := settings.Content[i]
		if !ValidName(k.Value) {
			f.report(diag.Error, "worker-name", f.rangeOf(k), "a worker's name: "+nameRule, "%q can't be the name of a worker", shorten(k.Value))
			continue
		}
		f.delegateTo(k.Value, f.rangeOf(k))
	}
}

// shellRules reads the shell toolset: its rules list the beginnings of the
// commands that may run; `default` opens it to all others; neither means no
// command at all.
func (f *file) shellRules(settings *yaml.Node, at diag.Range) {
	src := diag.Source{Range: at}
	rules, open := child(settings, "rules"), child(settings, "default") != nil
	if open {
		f.add(Tool{Name: tool.Shell, Written: "shell", Source: src})
	} else if rules == nil {
		f.report(diag.Warning, "worker-no-tools", at, "list commands under `rules:`", "the shell has neither rules nor a default and runs no command")
		return
	}
	approvals := false
	for _, rule := range contentOf(rules) {
		rule = resolve(rule)
		pattern := child(rule, "pattern")
		if pattern == nil || pattern.Kind != yaml.ScalarNode || pattern.Value == "" {
			f.report(diag.Error, "worker-type", f.rangeOf(rule), "write `- pattern: git status`", "a rule of the shell needs a pattern")
			continue
		}
		if child(rule, "approval_required_if_args") != nil {
			f.report(diag.Warning, "worker-tool-limit", f.rangeOf(rule), "offer it as `Bash("+pattern.Value+":*)` in a worker of our own form", "%s isn't offered: approval by argument can't be kept here", shorten(pattern.Value))
			continue
		}
		approvals = approvals || child(rule, "approval_required") != nil
		if !open {
			f.add(Tool{Name: tool.Shell, Pattern: pattern.Value + ":*", Written: "shell", Source: diag.Source{Range: f.rangeOf(pattern)}})
		}
	}
	if approvals {
		f.report(diag.Warning, "worker-unused-key", at, "write rules under `approvals:` in workshop.yaml; a call that no rule names is asked for", "approval_required has no effect here: approvals are decided in workshop.yaml")
	}
}

func contentOf(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// child returns the value of a key of a mapping, or nil.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}
