package worker

import "github.com/llmdo/workshop/diag"

// llmdoAgent reads NAME.agent of llm-do, version 0.3: `tools` and `toolsets`
// are two lists of names that are merged.
func (f *file) llmdoAgent() {
	if fd := f.take("entry"); fd != nil {
		f.report(diag.Error, "worker-unknown-key", f.rangeOf(fd.key), "remove it: workshop.yaml lists the workers", "entry is not a key of .agent files")
	}
	if text, _ := f.str("instructions"); text != "" && f.def.Instructions == "" {
		f.def.Instructions = instructions([]byte(text))
	}
	f.common("name")
	tools, toolsets := f.take("tools"), f.take("toolsets")
	if tools == nil && toolsets == nil {
		f.noList("toolsets", "in llm-do tools are opt-in too")
	}
	if tools != nil {
		f.offer(tools)
	}
	if toolsets != nil {
		f.toolsets(toolsets)
	}
	if fd := f.take("delegates-to"); fd != nil {
		f.delegates(fd)
	}
	f.resultType(true)
	f.rest(map[string]string{
		"compatible_models": "", "input_model_ref": "",
		"server_side_tools": "they run at the model's provider; forbid or allow them there",
		"allowed-tools":     "it is a key of our own form; here the lists are tools and toolsets",
	}, "name", "description", "model", "tools", "toolsets", "delegates-to", "output_schema_ref", "result_type")
}
