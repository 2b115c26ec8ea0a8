package tool

// Specs lists the tools in the order of their documentation.
func Specs() []Spec {
	return []Spec{
		{Name: ReadFile, Title: "Read a file", ReadOnly: true, Idempotent: true, Args: ReadFileArgs{}, Result: ReadFileResult{},
			Description: "Reads a text file or a range of its lines, or with binary any file."},
		{Name: WriteFile, Title: "Write a file", Destructive: true, Idempotent: true, Args: WriteFileArgs{}, Result: WriteFileResult{},
			Description: "Creates a file or replaces it as a whole. Missing directories are made."},
		{Name: EditFile, Title: "Edit a file", Destructive: true, Args: EditFileArgs{}, Result: EditFileResult{},
			Description: "Replaces old_string, which must occur exactly once, or with replace_all each time."},
		{Name: ListFiles, Title: "List files", ReadOnly: true, Idempotent: true, Args: ListFilesArgs{}, Result: ListFilesResult{},
			Description: "Lists a directory, or with glob the files below it. With glob, dependencies and caches such as node_modules are skipped; give one as path to list it."},
		{Name: SearchFiles, Title: "Search in files", ReadOnly: true, Idempotent: true, Args: SearchFilesArgs{}, Result: SearchFilesResult{},
			Description: "Finds lines by regular expression (RE2) in text files. Dependencies and caches such as node_modules are skipped; give one as path to search it."},
		{Name: Shell, Title: "Run a command", Destructive: true, OpenWorld: true, Args: ShellArgs{}, Result: ShellResult{},
			Description: "Runs a program (argv) or a shell line (command), and waits for its end. Long output is cut in the middle, and the result names a file with more of it."},
		{Name: FetchURL, Title: "Fetch a URL", ReadOnly: true, Idempotent: true, OpenWorld: true, Args: FetchURLArgs{}, Result: FetchURLResult{},
			Description: "Gets a document by HTTP or HTTPS. A host that the workshop does not allow is refused."},
	}
}

// Find returns the description of a tool.
func Find(name string) (Spec, bool) {
	for _, s := range Specs() {
		if s.Name == name {
			return s, true
		}
	}
	return Spec{}, false
}
