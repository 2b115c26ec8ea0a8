package tooldoc

import "github.com/llmdo/workshop/tool"

// text is what is said of a tool beside its schema.
type text struct {
	// errors are the tool's own; what all have in common stands in the document.
	errors []string
	// examples are words of `workshop call builder`.
	examples []string
	// notes stand behind the description.
	notes string
}

var texts = map[string]text{
	tool.ReadFile: {
		errors: []string{
			"no such file, no right to read it, a directory, or no regular file (a FIFO, a socket, a device)",
			"a path below `/proc`",
			"a binary file without `binary`",
			"`first_line` behind the last line",
			"`offset` without `binary`, `first_line` or `max_lines` with it",
		},
		examples: []string{"read_file path=src/main.go first_line=40 max_lines=20"},
	},
	tool.WriteFile: {
		errors: []string{
			"a read-only place, a full tmpfs, no right to write",
			"a path below `/proc`",
			"`content` that isn't base64 although `binary` is set",
		},
		examples: []string{"write_file path=/workspace/out/report.md content='# Report'"},
		notes:    "An existing file keeps its mode and, through a symbolic link, its place. A hard-linked or mounted file can't be replaced in one step: it is written in place, and `note` says so.",
	},
	tool.EditFile: {
		errors: []string{
			"`old_string` isn't there: the error says where it stands with other white space or line ends",
			"`old_string` stands there more than once, without `replace_all`: the error names the lines",
			"the file was changed by something else meanwhile: nothing is written",
			"a file of more than 8 MiB",
		},
		examples: []string{"edit_file path=src/main.go old_string='hello, wrold' new_string='hello, world'"},
	},
	tool.ListFiles: {
		errors:   []string{"no such directory, no right to read it", "a glob that can't be read"},
		examples: []string{"list_files path=src glob='**/*.go'"},
	},
	tool.SearchFiles: {
		errors:   []string{"a pattern that is no RE2 expression (lookaround and back references aren't)", "a glob that can't be read"},
		examples: []string{"search_files pattern='func \\w+Handler' glob='*.go' context=2"},
	},
	tool.Shell: {
		errors: []string{
			"neither or both of `command` and `argv`",
			"`command` where the image has no `/bin/sh`, or where the worker's shell is limited and the line isn't one plain command",
			"a program or directory that isn't there",
		},
		examples: []string{"shell argv=go argv=test argv=./...", "shell 'command=make test 2>&1 | tail -20' timeout_seconds=300"},
		notes:    "A command that fails is no error of the tool: `exit_code` says so. When its time is over, or the call is cancelled, the command and what it started are killed. What it leaves in the background ends with the session; `note` names it.",
	},
	tool.FetchURL: {
		errors: []string{
			"a name that the guard refuses: the error says what would allow it",
			"a URL that isn't `http` or `https`, or that a limit `WebFetch(domain:…)` doesn't cover, also after a redirect",
			"more than 5 redirects",
			"a certificate that the worker's certificates don't cover",
		},
		examples: []string{"fetch_url url=https://example.org/index.html max_bytes=100000"},
		notes:    "An answer of 400 or more is no error of the tool: `status` says it.",
	},
	"delegate_WORKER": {
		errors: []string{
			"a delegation deeper than 3",
			"a delegate with a tool that its caller hasn't (B40)",
			"a delegate that doesn't run",
		},
		examples: []string{"delegate_reviewer task='look at the error handling'"},
		notes:    "There is one for each name in the worker's `delegates-to`. The delegate's tools come into the list (`notifications/tools/list_changed`), with `WORKER__` in front of their names; they run in the delegate's container, with its mounts and its network. A delegation lasts until `end_delegation`, or the end of the caller's session.",
	},
	"end_delegation": {
		errors:   []string{"no such delegation"},
		examples: []string{"end_delegation worker=reviewer"},
	},
}
