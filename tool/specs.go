package tool

// Specs lists the tools in the order of their documentation.
func Specs() []Spec {
	return []Spec{
		{Name: ReadFile, Title: "Read a file", ReadOnly: true, Idempotent: true, Args: ReadFileArgs{}, Result: ReadFileResult{},
			Description: "Reads a text file of the worker, whole or a range of lines. A binary file is an error unless binary is set; then its bytes come as base64."},
		{Name: WriteFile, Title: "Write a file", Destructive: true, Idempotent: true, Args: WriteFileArgs{}, Result: WriteFileResult{},
			Description: "Writes a file in one step: what was there is replaced, or nothing has changed. Directories that miss are made."},
		{Name: EditFile, Title: "Edit a file", Destructive: true, Args: EditFileArgs{}, Result: EditFileResult{},
			Description: "Replaces a text that stands in a file exactly once (or, with replace_all, wherever it stands). A text that isn't there or isn't unique is an error that says so, and nothing is changed."},
		{Name: ListFiles, Title: "List files", ReadOnly: true, Idempotent: true, Args: ListFilesArgs{}, Result: ListFilesResult{},
			Description: "Lists a directory, or all files below it that a glob matches. What .gitignore leaves out is left out unless ignored is set."},
		{Name: SearchFiles, Title: "Search in files", ReadOnly: true, Idempotent: true, Args: SearchFilesArgs{}, Result: SearchFilesResult{},
			Description: "Finds lines that a regular expression (RE2) matches in the files below a directory. Binary files, .git and what .gitignore leaves out are passed over."},
		{Name: Shell, Title: "Run a command", Destructive: true, OpenWorld: true, Args: ShellArgs{}, Result: ShellResult{},
			Description: "Runs a program (argv) or a line of the worker's shell (command), and waits for its end. Of a long output the beginning and the end are kept."},
		{Name: FetchURL, Title: "Fetch a URL", ReadOnly: true, Idempotent: true, OpenWorld: true, Args: FetchURLArgs{}, Result: FetchURLResult{},
			Description: "Gets a document by HTTP or HTTPS, through the guard of the workshop: a name that it doesn't allow is refused."},
	}
}

// Find gives the description of a tool.
func Find(name string) (Spec, bool) {
	for _, s := range Specs() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
