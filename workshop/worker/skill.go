package worker

import (
	"path"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
)

// agentSkill reads SKILL.md of the agent skills specification. Our keys
// are under `metadata`, as text; at the top they are taken too.
// allowed-tools only approves in advance there; here it is the limit, which is
// less and so never a danger.
func (f *file) agentSkill() {
	f.common("name", "description")
	if dir := path.Base(path.Dir(f.path)); f.def.Name != dir && dir != "." {
		f.report(diag.Warning, "worker-name", f.def.Source.Range, "rename the directory or the skill", "the skill is called %q, its directory %q; the specification requires one name", shorten(f.def.Name), dir)
	}
	if n := utf8.RuneCountInString(f.def.Description); n > 1024 {
		f.report(diag.Warning, "worker-type", f.top(), "shorten it", "the description has %d characters, the specification allows 1024", n)
	}
	if fd := f.take("allowed-tools"); fd != nil {
		f.offer(fd)
	} else {
		f.noList("allowed-tools", "elsewhere the key only approves tools in advance, in a workshop it is the limit")
	}
	for _, key := range []string{"disallowed-tools", "disallowedTools"} {
		if fd := f.take(key); fd != nil {
			f.withdraw(fd)
		}
	}
	if fd := f.take("delegates-to"); fd != nil {
		f.delegates(fd)
	}
	f.metadata()
	f.resultType(false)
	f.rest(map[string]string{
		"license": "", "compatibility": "", "metadata": "",
		"when_to_use": "", "argument-hint": "", "arguments": "", "effort": "", "background": "", "paths": "", "context": "",
		"disable-model-invocation": "", "user-invocable": "", "agent": "", "shell": "",
		"hooks": "nothing of a worker file is executed",
	}, "name", "description", "allowed-tools", "metadata", "license", "compatibility")
}

// metadata reads our keys below `metadata`; they are texts there.
func (f *file) metadata() {
	fd := f.take("metadata")
	if fd == nil {
		return
	}
	f.keep(fd)
	v := resolve(fd.value)
	if v.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(v.Content); i += 2 {
		sub := &field{key: v.Content[i], value: v.Content[i+1], name: v.Content[i].Value}
		switch strings.ReplaceAll(sub.name, "_", "-") {
		case "delegates-to":
			f.delegates(sub)
		case "result-type", "output-schema-ref":
			if s := resolve(sub.value); s.Kind == yaml.ScalarNode {
				f.resultFile(sub, s.Value, false)
			}
		}
	}
}
