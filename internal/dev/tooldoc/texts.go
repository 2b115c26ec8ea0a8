package tooldoc

import "github.com/llmdo/workshop/tool"

// text is what a schema doesn't say of a tool.
type text struct {
	// errors are the tool's own; the document has those of all tools.
	errors []string
	// examples are words of `workshop call builder`.
	examples []string
	// notes follow the description.
	notes string
}

var texts = map[string]text{
	tool.ReadFile: {
		errors: []string{
			"a path below `/proc`, or not of a regular file",
			"a binary file without `binary`",
			"`first_line` after the last line",
			"`offset` without `binary`, `first_line` or `max_lines` with it",
		},
		examples: []string{"read_file path=src/main.go first_line=40 max_lines=20"},
	},
	tool.WriteFile: {
		errors: []string{
			"a read-only place, a full tmpfs, a path below `/proc`",
			"`content` that is not valid base64, with `binary`",
		},
		examples: []string{"write_file path=/workspace/out/report.md content='# Report'"},
		notes:    "An existing file keeps its mode and, through a symbolic link, its place. A hard-linked or mounted file is written in place, not replaced in one step: `note` says so.",
	},
	tool.EditFile: {
		errors: []string{
			"`old_string` is not in the file: the error says if only white space or line endings differ",
			"`old_string` occurs more than once, without `replace_all`: the error names the lines",
			"the file was changed by another process: nothing is written",
			"a file of more than 8 MiB",
		},
		examples: []string{"edit_file path=src/main.go old_string='hello, wrold' new_string='hello, world'"},
	},
	tool.ListFiles: {
		notes:    "Skipped: what a `.gitignore` says; `node_modules`, `.venv`, `__pycache__`, `site-packages` and other well-known names; a directory with a `CACHEDIR.TAG` (cargo's `target`) or a `pyvenv.cfg`; the `vendor` of Go and Composer. Not `build` or `dist`. `note` counts what was skipped and names the first. To look into one, give it as `path` or name it in `glob`; `ignored` looks into all.",
		errors:   []string{"no such directory, a glob that is not valid"},
		examples: []string{"list_files path=src glob='**/*.go'"},
	},
	tool.SearchFiles: {
		errors:   []string{"a pattern that RE2 doesn't have (lookaround, back references), a glob that is not valid"},
		notes:    "Skips what [`list_files`](#list_files) skips.",
		examples: []string{"search_files pattern='func \\w+Handler' glob='*.go' context=2"},
	},
	tool.Shell: {
		errors: []string{
			"neither or both of `command` and `argv`",
			"`command` where the image has no `/bin/sh`, or where the worker's shell is limited and the line isn't one plain command",
			"a program or `cwd` that does not exist",
		},
		examples: []string{"shell argv=go argv=test argv=./...", "shell 'command=make test 2>&1 | tail -20' timeout_seconds=300"},
		notes: "A command that fails is not an error of the tool: see `exit_code`. When it times out, or the call is cancelled, the command and what it started are killed. What it leaves in the background ends with the session.\n\n" +
			"Of a long stream `text` has the beginning and the end. Until the session ends, `file`, below `/scratch`, has all of it, or of more than 4 MiB the first and the last 2 MiB. Read on with `read_file`: `first_line` is `next_line`, or with `binary` `offset` is `next_offset`. There is no file if `/scratch` is full (`note` says so), nor for a worker with neither `read_file` nor an unlimited shell.",
	},
	tool.FetchURL: {
		errors: []string{
			"a host that the guard refuses",
			"a URL that isn't `http` or `https`, or that a limit `WebFetch(domain:…)` doesn't cover, also after a redirect",
			"more than 5 redirects",
			"a certificate that the worker's certificates don't cover",
		},
		examples: []string{"fetch_url url=https://example.org/index.html max_bytes=100000"},
		notes:    "A response of 400 or more is not an error of the tool: see `status`.",
	},
	"delegate_WORKER": {
		errors: []string{
			"a delegation deeper than 3",
			"a delegate with a tool that its caller hasn't (B40)",
			"a delegate that doesn't run",
		},
		examples: []string{"delegate_reviewer task='look at the error handling'"},
		notes:    "There is one for each name in the worker's `delegates-to`. The list of tools changes (`notifications/tools/list_changed`). A delegation lasts until `end_delegation`, or the end of the caller's session.",
	},
	"end_delegation": {
		errors:   []string{"no such delegation"},
		examples: []string{"end_delegation worker=reviewer"},
	},
}
