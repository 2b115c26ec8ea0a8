package tool

// Limits of the tools. What is asked beyond a maximum is an error that names
// it, never cut in silence.
const (
	DefaultReadBytes   = 256 << 10
	MaxReadBytes       = 4 << 20
	MaxWriteBytes      = 8 << 20
	MaxEditFile        = 8 << 20  // size of a file that is edited
	DefaultOutputBytes = 64 << 10 // of each of stdout and stderr
	MaxOutputBytes     = 4 << 20
	MaxStdinBytes      = 4 << 20
	DefaultEntries     = 1000
	MaxEntries         = 10000
	DefaultMatches     = 200
	MaxMatches         = 5000
	MaxContextLines    = 20
	DefaultFetchBytes  = 512 << 10
	MaxFetchBytes      = 4 << 20
	MaxRedirects       = 5
	MaxArgv            = 1024
)

// ShellArgs are the arguments of shell. Exactly one of Command and Argv is
// given.
type ShellArgs struct {
	Command        string            `json:"command,omitempty" jsonschema:"a line for the shell of the image (sh -c); either this or argv"`
	Argv           []string          `json:"argv,omitempty" jsonschema:"a program and its arguments, run without a shell"`
	Cwd            string            `json:"cwd,omitempty" jsonschema:"directory to run in; default: the worker's working directory"`
	Env            map[string]string `json:"env,omitempty" jsonschema:"variables added to the worker's environment"`
	Stdin          string            `json:"stdin,omitempty" jsonschema:"text for the standard input; default: empty"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" jsonschema:"end the command after that time; default and maximum: the worker's timeout"`
	MaxOutputBytes int               `json:"max_output_bytes,omitempty" jsonschema:"how much of stdout and of stderr is kept each, half of it from the beginning and half from the end; default 65536, maximum 4194304"`
}

// Output is what a stream of a command printed.
type Output struct {
	Text string `json:"text" jsonschema:"what was kept; of bytes that are no UTF-8, the replacement character stands in their place"`
	// Bytes counts everything that was printed, kept or not.
	Bytes   int64 `json:"bytes" jsonschema:"how many bytes were printed"`
	Omitted int64 `json:"omitted,omitempty" jsonschema:"how many bytes were left out between the beginning and the end"`
	Binary  bool  `json:"binary,omitempty" jsonschema:"the output holds bytes that are no UTF-8 text"`
}

// ShellResult is how a command ended.
type ShellResult struct {
	ExitCode   int    `json:"exit_code" jsonschema:"exit code; 128 and the number of the signal where a signal ended the command"`
	Signal     string `json:"signal,omitempty" jsonschema:"the signal that ended the command, such as SIGKILL"`
	TimedOut   bool   `json:"timed_out,omitempty" jsonschema:"the command was ended because its time was over"`
	Stdout     Output `json:"stdout"`
	Stderr     Output `json:"stderr"`
	DurationMS int64  `json:"duration_ms" jsonschema:"how long it ran, in milliseconds"`
	Note       string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as processes that still run in the background"`
}

// ReadFileArgs are the arguments of read_file.
type ReadFileArgs struct {
	Path      string `json:"path" jsonschema:"the file; relative to the worker's working directory or absolute"`
	FirstLine int    `json:"first_line,omitempty" jsonschema:"first line to read, from 1; default 1"`
	MaxLines  int    `json:"max_lines,omitempty" jsonschema:"how many lines; default: all"`
	Offset    int64  `json:"offset,omitempty" jsonschema:"first byte to read, from 0; only with binary"`
	MaxBytes  int    `json:"max_bytes,omitempty" jsonschema:"how many bytes at most; default 262144, maximum 4194304"`
	Binary    bool   `json:"binary,omitempty" jsonschema:"read bytes, as base64, instead of lines"`
}

// ReadFileResult is a part of a file.
type ReadFileResult struct {
	Path      string `json:"path"`
	Content   string `json:"content" jsonschema:"the text; base64 where binary is set"`
	Binary    bool   `json:"binary,omitempty"`
	FirstLine int    `json:"first_line,omitempty" jsonschema:"number of the first line in content"`
	Lines     int    `json:"lines,omitempty" jsonschema:"how many lines content holds"`
	Size      int64  `json:"size" jsonschema:"size of the whole file in bytes"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"the file goes on behind content"`
	NextLine  int    `json:"next_line,omitempty" jsonschema:"first_line to go on with, where it is truncated"`
	Note      string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as a line that was cut"`
}

// WriteFileArgs are the arguments of write_file.
type WriteFileArgs struct {
	Path       string `json:"path" jsonschema:"the file; relative to the worker's working directory or absolute"`
	Content    string `json:"content" jsonschema:"the whole new content; base64 where binary is set"`
	Binary     bool   `json:"binary,omitempty" jsonschema:"content is base64"`
	Executable bool   `json:"executable,omitempty" jsonschema:"make it executable; an existing file keeps its mode otherwise"`
}

// WriteFileResult is what was written.
type WriteFileResult struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Created bool   `json:"created" jsonschema:"the file wasn't there before"`
	Note    string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as that the file couldn't be replaced in one step"`
}

// EditFileArgs are the arguments of edit_file.
type EditFileArgs struct {
	Path       string `json:"path" jsonschema:"the file; relative to the worker's working directory or absolute"`
	OldString  string `json:"old_string" jsonschema:"the text to replace, exactly as it stands in the file, with enough around it to be unique"`
	NewString  string `json:"new_string" jsonschema:"what to write in its place"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace it wherever it stands"`
}

// EditFileResult is what was replaced.
type EditFileResult struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	Lines        []int  `json:"lines" jsonschema:"numbers of the lines where a replacement begins, as they were before; at most 100"`
	Note         string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as that the file couldn't be replaced in one step"`
}

// ListFilesArgs are the arguments of list_files.
type ListFilesArgs struct {
	Path       string `json:"path,omitempty" jsonschema:"the directory; default: the worker's working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files below the directory that this matches, such as **/*.go; default: the entries of the directory itself"`
	Ignored    bool   `json:"ignored,omitempty" jsonschema:"also what .gitignore leaves out"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also names that begin with a dot; .git is never listed with a glob"`
	MaxEntries int    `json:"max_entries,omitempty" jsonschema:"default 1000, maximum 10000"`
}

// ListFilesResult is a list of paths, sorted.
type ListFilesResult struct {
	Path      string  `json:"path"`
	Entries   []Entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty" jsonschema:"there are more"`
	Note      string  `json:"note,omitempty" jsonschema:"what else is worth knowing, such as directories that can't be read"`
}

// Entry is one path.
type Entry struct {
	Path   string `json:"path" jsonschema:"relative to the directory"`
	Type   string `json:"type" jsonschema:"file, directory, symlink or other"`
	Size   int64  `json:"size,omitempty" jsonschema:"of a file, in bytes"`
	Target string `json:"target,omitempty" jsonschema:"of a symbolic link"`
}

// SearchFilesArgs are the arguments of search_files.
type SearchFilesArgs struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression in RE2 syntax"`
	Path       string `json:"path,omitempty" jsonschema:"directory or file to search; default: the worker's working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that this matches, such as src/**/*.ts; without a slash it is compared with names at any depth, such as *.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"pattern is a text, not an expression"`
	FilesOnly  bool   `json:"files_only,omitempty" jsonschema:"only which files match"`
	Context    int    `json:"context,omitempty" jsonschema:"lines before and after each match; maximum 20"`
	Ignored    bool   `json:"ignored,omitempty" jsonschema:"also what .gitignore leaves out"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also names that begin with a dot, apart from .git"`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"default 200, maximum 5000"`
}

// SearchFilesResult lists matches in order of path and line.
type SearchFilesResult struct {
	Matches       []Match `json:"matches"`
	FilesSearched int     `json:"files_searched"`
	Truncated     bool    `json:"truncated,omitempty" jsonschema:"there may be more"`
	Note          string  `json:"note,omitempty" jsonschema:"what else is worth knowing, such as files that can't be read"`
}

// Match is one line that matches, or, with files_only, one file.
type Match struct {
	Path   string   `json:"path" jsonschema:"relative to the directory that was searched"`
	Line   int      `json:"line,omitempty"`
	Text   string   `json:"text,omitempty" jsonschema:"the line; a long one is cut to 1000 bytes"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// FetchURLArgs are the arguments of fetch_url.
type FetchURLArgs struct {
	URL      string `json:"url" jsonschema:"http or https"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"how much of the body is kept; default 524288, maximum 4194304"`
}

// FetchURLResult is an answer of a server.
type FetchURLResult struct {
	URL         string `json:"url" jsonschema:"where the answer came from, after redirects"`
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Body        string `json:"body" jsonschema:"the text; base64 where binary is set"`
	Binary      bool   `json:"binary,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
	Redirects   int    `json:"redirects,omitempty"`
}
