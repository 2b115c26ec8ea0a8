package tool

// Limits of the tools. A request beyond a maximum is an error that names the
// maximum; nothing is cut without a word.
const (
	DefaultReadBytes   = 256 << 10
	MaxReadBytes       = 4 << 20
	MaxWriteBytes      = 8 << 20
	MaxEditFile        = 8 << 20  // size of a file that is edited
	DefaultOutputBytes = 16 << 10 // of each of stdout and stderr
	MaxOutputBytes     = 4 << 20
	MaxOutputFile      = 4 << 20  // a file with the whole output of stdout or stderr
	MaxOutputFiles     = 32       // of a session
	MaxOutputFileBytes = 32 << 20 // of all those files of a session
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
	Command        string            `json:"command,omitempty" jsonschema:"line for sh -c"`
	Argv           []string          `json:"argv,omitempty" jsonschema:"program and arguments, without a shell"`
	Cwd            string            `json:"cwd,omitempty" jsonschema:"default: the working directory"`
	Env            map[string]string `json:"env,omitempty"`
	Stdin          string            `json:"stdin,omitempty"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" jsonschema:"default and maximum: the worker's timeout"`
	MaxOutputBytes int               `json:"max_output_bytes,omitempty" jsonschema:"of stdout and of stderr each"`
}

// Output is what a stream of a command printed.
type Output struct {
	Text string `json:"text" jsonschema:"what was kept; bytes that are not UTF-8 are replaced by U+FFFD"`
	// Bytes counts everything that was printed, kept or not.
	Bytes   int64 `json:"bytes" jsonschema:"how many bytes were printed"`
	Omitted int64 `json:"omitted,omitempty" jsonschema:"how many bytes were left out of the middle of text"`
	// NextLine counts from 1, in File.
	NextLine int `json:"next_line,omitempty" jsonschema:"number of the line where something was left out: first_line of read_file to go on in file"`
	// NextOffset is given in place of NextLine.
	NextOffset int64  `json:"next_offset,omitempty" jsonschema:"where the output is not text, or the line very long: offset of read_file with binary to go on in file"`
	File       string `json:"file,omitempty" jsonschema:"a file of the worker with the output, until the session ends; all of it, but for file_omitted"`
	// FileOmitted is more than 0 for a stream of more than MaxOutputFile bytes.
	FileOmitted int64 `json:"file_omitted,omitempty" jsonschema:"how many bytes of the middle file does not have"`
	Binary      bool  `json:"binary,omitempty" jsonschema:"the output holds bytes that are not text"`
}

// ShellResult is how a command ended.
type ShellResult struct {
	ExitCode   int    `json:"exit_code" jsonschema:"exit code; 128 plus the signal's number if a signal ended the command"`
	Signal     string `json:"signal,omitempty" jsonschema:"the signal that ended the command, such as SIGKILL"`
	TimedOut   bool   `json:"timed_out,omitempty" jsonschema:"the command timed out and was killed"`
	Stdout     Output `json:"stdout"`
	Stderr     Output `json:"stderr"`
	DurationMS int64  `json:"duration_ms" jsonschema:"how long it ran, in milliseconds"`
	Note       string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as processes that still run in the background"`
}

// ReadFileArgs are the arguments of read_file.
type ReadFileArgs struct {
	Path      string `json:"path" jsonschema:"absolute, or relative to the working directory"`
	FirstLine int    `json:"first_line,omitempty"`
	MaxLines  int    `json:"max_lines,omitempty" jsonschema:"default: all"`
	Offset    int64  `json:"offset,omitempty" jsonschema:"of the first byte, with binary"`
	MaxBytes  int    `json:"max_bytes,omitempty"`
	Binary    bool   `json:"binary,omitempty" jsonschema:"bytes as base64, not lines"`
}

// ReadFileResult is a part of a file.
type ReadFileResult struct {
	Path      string `json:"path"`
	Content   string `json:"content" jsonschema:"the text; base64 if binary is set"`
	Binary    bool   `json:"binary,omitempty"`
	FirstLine int    `json:"first_line,omitempty" jsonschema:"number of the first line in content"`
	Lines     int    `json:"lines,omitempty" jsonschema:"how many lines content holds"`
	Size      int64  `json:"size" jsonschema:"size of the whole file in bytes"`
	Truncated bool   `json:"truncated,omitempty" jsonschema:"the file is longer than content"`
	NextLine  int    `json:"next_line,omitempty" jsonschema:"first_line of the next part, if it is truncated"`
	Note      string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as a line that was cut"`
}

// WriteFileArgs are the arguments of write_file.
type WriteFileArgs struct {
	Path       string `json:"path" jsonschema:"absolute, or relative to the working directory"`
	Content    string `json:"content" jsonschema:"whole file; base64 with binary"`
	Binary     bool   `json:"binary,omitempty"`
	Executable bool   `json:"executable,omitempty"`
}

// WriteFileResult is what was written.
type WriteFileResult struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Created bool   `json:"created" jsonschema:"the file did not exist before"`
	Note    string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as that the file was written in place"`
}

// EditFileArgs are the arguments of edit_file.
type EditFileArgs struct {
	Path       string `json:"path" jsonschema:"absolute, or relative to the working directory"`
	OldString  string `json:"old_string" jsonschema:"exact text"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

// EditFileResult is what was replaced.
type EditFileResult struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	Lines        []int  `json:"lines" jsonschema:"numbers of the lines where a replacement begins, before the edit; at most 100"`
	Note         string `json:"note,omitempty" jsonschema:"what else is worth knowing, such as that the file was written in place"`
}

// ListFilesArgs are the arguments of list_files.
type ListFilesArgs struct {
	Path       string `json:"path,omitempty" jsonschema:"default: the working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"below path, such as **/*.go"`
	Ignored    bool   `json:"ignored,omitempty" jsonschema:"also .gitignored files, dependencies and caches"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also dotfiles"`
	MaxEntries int    `json:"max_entries,omitempty"`
}

// ListFilesResult is a list of paths, sorted.
type ListFilesResult struct {
	Path      string  `json:"path"`
	Entries   []Entry `json:"entries"`
	Truncated bool    `json:"truncated,omitempty" jsonschema:"there are more"`
	Note      string  `json:"note,omitempty" jsonschema:"what else is worth knowing, such as what was skipped"`
}

// Entry is one path.
type Entry struct {
	Path   string `json:"path" jsonschema:"relative to the working directory if it is below that, otherwise absolute"`
	Type   string `json:"type" jsonschema:"file, directory, symlink or other"`
	Size   int64  `json:"size,omitempty" jsonschema:"of a file, in bytes"`
	Target string `json:"target,omitempty" jsonschema:"of a symbolic link"`
}

// SearchFilesArgs are the arguments of search_files.
type SearchFilesArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path,omitempty" jsonschema:"file or directory; default: the working directory"`
	Glob       string `json:"glob,omitempty" jsonschema:"such as *.ts or src/**/*.go"`
	IgnoreCase bool   `json:"ignore_case,omitempty"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"pattern is plain text"`
	FilesOnly  bool   `json:"files_only,omitempty" jsonschema:"names only"`
	Context    int    `json:"context,omitempty" jsonschema:"lines around each match"`
	Ignored    bool   `json:"ignored,omitempty" jsonschema:"also .gitignored files, dependencies and caches"`
	Hidden     bool   `json:"hidden,omitempty" jsonschema:"also dotfiles"`
	MaxMatches int    `json:"max_matches,omitempty"`
}

// SearchFilesResult lists matches in order of path and line.
type SearchFilesResult struct {
	Matches       []Match `json:"matches"`
	FilesSearched int     `json:"files_searched"`
	Truncated     bool    `json:"truncated,omitempty" jsonschema:"there may be more"`
	Note          string  `json:"note,omitempty" jsonschema:"what else is worth knowing, such as what was skipped"`
}

// Match is one line that matches, or, with files_only, one file.
type Match struct {
	Path   string   `json:"path" jsonschema:"relative to the working directory if it is below that, otherwise absolute"`
	Line   int      `json:"line,omitempty"`
	Text   string   `json:"text,omitempty" jsonschema:"the line; a long one is cut to 1000 bytes"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// FetchURLArgs are the arguments of fetch_url.
type FetchURLArgs struct {
	URL      string `json:"url" jsonschema:"http or https"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"of the body"`
}

// FetchURLResult is the response of a server.
type FetchURLResult struct {
	URL         string `json:"url" jsonschema:"of the response, after redirects"`
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Body        string `json:"body" jsonschema:"the text; base64 if binary is set"`
	Binary      bool   `json:"binary,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
	Redirects   int    `json:"redirects,omitempty"`
}
