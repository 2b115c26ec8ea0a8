package app

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	// maxSignLine bytes of a line are read: what programs say of an error is shorter.
	maxSignLine = 4 << 10
	// maxSigns bounds what is kept of each kind.
	maxSigns = 20
)

// Signs are what a program's output shows of the worker's boundary. The worker
// wrote it: what it names counts only where it fits the workshop or the guard's
// events. It is safe for use by several goroutines.
type Signs struct {
	mu sync.Mutex
	// readOnly are the paths in lines about a read-only file system (EROFS).
	readOnly []string
	// ssh are the names that ssh couldn't resolve; it says no port.
	ssh []string
	// network: a name wasn't resolved, or a connection was refused.
	network bool
}

// Tee returns a writer that passes everything on to w and reads it.
func (s *Signs) Tee(w io.Writer) io.Writer { return &signReader{to: w, signs: s} }

// read reads a whole output.
func (s *Signs) read(text string) {
	r := signReader{to: io.Discard, signs: s}
	_, _ = io.WriteString(&r, text)
	r.line()
}

// sawNetwork reports whether the network may be why the program failed.
func (s *Signs) sawNetwork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.network
}

// sawSSH reports whether ssh looked a name up in vain.
func (s *Signs) sawSSH(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.ssh, name)
}

// paths are those that couldn't be written.
func (s *Signs) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.readOnly)
}

// signReader splits an output into lines.
type signReader struct {
	to    io.Writer
	signs *Signs
	rest  []byte
}

// Write implements [io.Writer].
func (r *signReader) Write(b []byte) (int, error) {
	for part := b; len(part) > 0; {
		line, after, ended := bytes.Cut(part, []byte("\n"))
		r.rest = append(r.rest, line[:min(len(line), maxSignLine-len(r.rest))]...)
		if ended {
			r.line()
		}
		part = after
	}
	return r.to.Write(b)
}

// line takes the line that has ended.
func (r *signReader) line() {
	line := string(r.rest)
	r.rest = r.rest[:0]
	if readOnlyText().MatchString(line) {
		r.signs.addPaths(line)
	}
	m := networkText().FindStringSubmatch(line)
	if m == nil {
		return
	}
	r.signs.mu.Lock()
	defer r.signs.mu.Unlock()
	r.signs.network = true
	if m[1] != "" && len(r.signs.ssh) < maxSigns {
		r.signs.ssh = append(r.signs.ssh, strings.ToLower(strings.TrimSuffix(m[1], ".")))
	}
}

var (
	// readOnlyText is EROFS as strerror(3) of glibc and musl, Go, Node.js and our own
	// file tools write it.
	readOnlyText = pattern(`(?i)read-only file ?system|file system is mounted read-only`)
	// networkText is what programs say of a name that isn't resolved, or of a
	// connection that is refused; the group is a name that ssh(1) was given.
	networkText = pattern(`(?i)ssh: could not resolve hostname ([^\s:]+)` +
		`|could ?n.t resolve|could not resolve|failed to resolve|name or service not known|name resolution|no such host|name does not resolve` +
		`|nodename nor servname|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|connection refused|network is unreachable|bad address|not allowed in workshop\.yaml`)
	// quotedText is what programs put between quotes.
	quotedText = pattern("['\"`\u2018\u201c]([^'\"`\u2018\u2019\u201c\u201d]+)['\"`\u2019\u201d]")
)

// pattern is compiled when it is needed.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// addPaths keeps what may be a path in a line, quoted ones first.
func (s *Signs) addPaths(line string) {
	var found []string
	for _, m := range quotedText().FindAllStringSubmatch(line, 4) {
		found = append(found, m[1])
	}
	for _, word := range strings.FieldsFunc(quotedText().ReplaceAllString(line, " "), func(r rune) bool { return strings.ContainsRune(" \t\r:,;()[]", r) }) {
		found = append(found, word)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range found {
		if (strings.Contains(p, "/") || strings.HasPrefix(p, ".")) && len(s.readOnly) < maxSigns && !slices.Contains(s.readOnly, p) {
			s.readOnly = append(s.readOnly, p)
		}
	}
}
