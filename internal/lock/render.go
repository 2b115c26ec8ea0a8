package lock

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// unpinned stands for a digest that an image doesn't have.
const unpinned = "unpinned"

// end is the last line: a file that was cut off lacks it. It is YAML's mark of the end of
// a document.
const end = "..."

const title = "# Written by `workshop lock`; to be reviewed, not edited."

// Render returns the file: the same lock has the same bytes.
func (l *Lock) Render() []byte {
	var b strings.Builder
	b.WriteString(title + "\nversion: " + strconv.Itoa(Version) + "\n")
	if len(l.Files) == 0 {
		b.WriteString("files: {}\n")
	}
	section(&b, "files", l.Files, func(v string) string { return v })
	section(&b, "sources", l.Sources, Source.text)
	section(&b, "images", l.Images, Image.String)
	section(&b, "builds", l.Builds, func(v string) string { return v })
	section(&b, "presets", l.Presets, func(v string) string { return v })
	if len(l.Can) == 0 {
		b.WriteString("can: []\n")
	} else {
		b.WriteString("can:\n")
	}
	for _, line := range l.Can {
		b.WriteString("  - " + scalar(line) + "\n")
	}
	b.WriteString(end + "\n")
	return []byte(b.String())
}

// section writes a mapping; an empty one is left out.
func section[T any](b *strings.Builder, name string, m map[string]T, text func(T) string) {
	if len(m) == 0 {
		return
	}
	b.WriteString(name + ":\n")
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := text(m[key])
		if !strings.HasPrefix(value, "\n") { // lines below it
			value = " " + value
		}
		b.WriteString("  " + scalar(key) + ":" + value + "\n")
	}
}

// String is the image as the file has it.
func (i Image) String() string {
	switch {
	case i.Digest == "":
		return unpinned
	case len(i.Platforms) == 0:
		return i.Digest
	}
	out := "{digest: " + i.Digest
	for _, p := range slices.Sorted(maps.Keys(i.Platforms)) {
		out += ", " + scalar(p) + ": " + i.Platforms[p]
	}
	return out + "}"
}

// inFlow is scalar between brackets.
func inFlow(s string) string {
	if strings.ContainsAny(s, ",[]{}") {
		return quoted(s)
	}
	return scalar(s)
}

// scalar writes text plainly where every YAML reader takes it as that text, else in
// double quotes.
func scalar(s string) string {
	plain := s != "" && !strings.ContainsAny(s[:1], "!&*-?:{}[],#|>@`\"'%~ =<") && !strings.HasSuffix(s, ":") && !strings.HasSuffix(s, " ") &&
		!strings.Contains(s, ": ") && !strings.Contains(s, " #") &&
		!strings.ContainsFunc(s, unshown) && strings.Trim(s, "0123456789.:_-+eExXoO") != "" &&
		!slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "y", "n", "null"}, strings.ToLower(s))
	if plain {
		return s
	}
	return quoted(s)
}

// quoted writes text in double quotes.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case unshown(r):
			b.WriteString(yamltext.Escape(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func unshown(r rune) bool { return r == '\n' || r == '\t' || !yamltext.Shown(r) }
