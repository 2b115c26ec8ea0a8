package worker

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
)

// Limits of a worker file (B60).
const (
	MaxFile        = 256 << 10 // bytes of the whole file
	maxFrontMatter = 64 << 10  // bytes of the keys
	maxTools       = 500       // entries of a list of tools
	maxDelegates   = 100       // names in delegates-to
	maxReports     = 50        // errors, and warnings, that are told of one file
)

const marker = "---"

// frontMatter is a file cut in two: YAML keys between two lines of three
// dashes, then the body.
type frontMatter struct {
	present    bool
	start, end int // bytes of the keys, without the marker lines
	body       int // byte where the body begins
}

// splitFrontMatter finds the keys of a file. What cannot be told apart for
// certain is a problem, never a guess: keys that are read as prose would
// vanish without a word.
func splitFrontMatter(t *text) (frontMatter, *diag.Diagnostic) {
	problem := func(from, to int, summary, hint string) *diag.Diagnostic {
		return &diag.Diagnostic{Severity: diag.Error, Code: "worker-front-matter",
			Summary: summary, Hint: hint, Range: t.span(from, to)}
	}
	if len(t.data) > MaxFile {
		return frontMatter{}, problem(0, 0, "the worker file is larger than 256 KiB",
			"a worker file holds a few keys and a prompt; put long material in a mount that the worker reads")
	}
	if at := invalidUTF8(t.data); at >= 0 {
		return frontMatter{}, problem(at, at+1, "the worker file isn't UTF-8 text", "save it as UTF-8")
	}
	begin := len(t.bom())
	line, next := lineAt(t.data, begin)
	if line != marker {
		if from, ok := lateMarker(t.data, begin); ok {
			return frontMatter{}, problem(from, from+len(marker), "front matter must begin on the first line",
				"remove what is above the first ---")
		}
		return frontMatter{body: begin}, nil
	}
	for at := next; at < len(t.data); {
		line, after := lineAt(t.data, at)
		if line == marker {
			if at-next > maxFrontMatter {
				return frontMatter{}, problem(begin, begin+len(marker), "the front matter is longer than 64 KiB",
					"move the prose below the second ---")
			}
			return frontMatter{present: true, start: next, end: at, body: after}, nil
		}
		at = after
	}
	return frontMatter{}, problem(begin, begin+len(marker), "the front matter that begins here doesn't end",
		"add a line --- below the last key and above the instructions")
}

// lineAt returns the line at a byte, without trailing blanks, and where the next
// one begins.
func lineAt(data []byte, at int) (string, int) {
	rest := data[at:]
	next := len(data)
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest, next = rest[:i], at+i+1
	}
	return string(bytes.TrimRight(rest, " \t\r")), next
}

// lateMarker finds a marker that only blank lines precede.
func lateMarker(data []byte, at int) (int, bool) {
	for at < len(data) {
		line, next := lineAt(data, at)
		if line != "" {
			return at, line == marker
		}
		at = next
	}
	return 0, false
}

func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// instructions is the body as every platform gives it: lines end with \n,
// without blank lines around.
func instructions(data []byte) string {
	return strings.Trim(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
}
