package worker

import "github.com/llmdo/workshop/diag"

// llmdoWorker reads NAME.worker of llm-do, as it was until January 2026: keys
// and a body, or keys alone with the prompt under `instructions`.
func (f *file) llmdoWorker() {
	text, at := f.str("instructions")
	switch {
	case text != "" && f.def.Instructions != "":
		f.report(diag.Error, "worker-instructions", at, "keep one of them", "the instructions are given twice: under the key, and below the keys")
	case text != "":
		f.def.Instructions = instructions([]byte(text))
	case f.def.Instructions == "":
		f.report(diag.Warning, "worker-no-instructions", f.top(), "write below the second --- what the worker is to do", "the worker has no instructions")
	}
	f.common("name")
	if fd := f.take("toolsets"); fd != nil {
		f.toolsets(fd)
	} else {
		f.noList("toolsets", "in llm-do tools are opt-in too")
	}
	if fd := f.take("delegates-to"); fd != nil {
		f.delegates(fd)
	}
	f.resultType(true)
	f.rest(map[string]string{
		"compatible_models": "", "schema_in_ref": "", "input_model_ref": "", "locked": "",
		"attachment_policy":   "attachments aren't limited here",
		"server_side_tools":   "they run at the model's provider; forbid or allow them there",
		"_approval_config":    "approvals are decided in workshop.yaml",
		"allowed-tools":       "it is a key of our own form; here the list is toolsets",
		"tools":               "it is a key of .agent files; here the list is toolsets",
		"max_context_tokens":  "",
		"mode":                "",
		"default_model":       "",
		"approval_controller": "approvals are decided in workshop.yaml",
	}, "name", "description", "instructions", "model", "toolsets", "delegates-to", "output_schema_ref", "result_type")
}
