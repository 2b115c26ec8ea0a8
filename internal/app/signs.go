package app

import (
	"cmp"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
)

const (
	// maxSignTail bytes of the end of an output are read: there programs say why they
	// failed, and the output of one that succeeds may have gigabytes.
	maxSignTail = 64 << 10
	// maxSignLine bytes of a line are read: what programs say of an error is shorter.
	maxSignLine = 4 << 10
	// maxSigns bounds what is kept of each kind.
	maxSigns = 20
)

// Signs are what a program's output shows of the worker's boundary. The worker
// wrote it: what it names counts only where it fits the workshop or the guard's
// events. It is safe for use by several goroutines.
type Signs struct {
	mu    sync.Mutex
	tails []*signTail
	// readOnly are the paths in lines about a read-only file system (EROFS) or a
	// mount (EBUSY).
	readOnly []string
	// unmade are the directories of which Node.js says that what they would be in isn't
	// there (ENOENT): so it does of a read-only one, too.
	unmade []string
	// noSpace: there was no space left (ENOSPC). full are the paths in such lines, filled
	// the file systems of the worker that its toolbox saw full.
	noSpace      bool
	full, filled []string
	// held says what files in the worker's memory hold, after a command that was OOM-killed.
	held []string
	// worktree: git doesn't find the repository of a linked worktree.
	worktree bool
	// absent are programs that weren't found.
	absent []string
	// asked are the names that a program couldn't resolve of which the port is known.
	asked []askedName
	// network: a name wasn't resolved, or a connection was refused.
	network bool
	// reset: a connection was reset, as the listeners of a room that ends do.
	reset bool
	// guard: the guard's own sentence is there.
	guard bool
	// pids: no process or thread could be started.
	pids bool
	// identity: git doesn't know in whose name to commit.
	identity bool
}

// Tee returns a writer that passes everything on to w, and keeps the end to be read
// when somebody asks.
func (s *Signs) Tee(w io.Writer) io.Writer {
	t := &signTail{to: w, signs: s}
	s.mu.Lock()
	s.tails = append(s.tails, t)
	s.mu.Unlock()
	return t
}

// signTail is the end of one output.
type signTail struct {
	to    io.Writer
	signs *Signs
	text  []byte // at most two maxSignTail
}

// Write implements [io.Writer].
func (t *signTail) Write(b []byte) (int, error) {
	t.signs.mu.Lock()
	end := b[max(0, len(b)-maxSignTail):]
	if len(t.text)+len(end) > 2*maxSignTail {
		t.text = append(t.text[:0], t.text[len(t.text)-min(len(t.text), maxSignTail):]...)
	}
	t.text = append(t.text, end...)
	t.signs.mu.Unlock()
	return t.to.Write(b)
}

// read reads the end of a whole output.
func (s *Signs) read(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parse(text)
}

// look reads what was kept, and holds the lock.
func (s *Signs) look() (unlock func()) {
	s.mu.Lock()
	for _, t := range s.tails {
		s.parse(string(t.text))
		t.text = t.text[:0]
	}
	return s.mu.Unlock
}

// sawNetwork reports whether the network may be why the program failed.
func (s *Signs) sawNetwork() bool {
	defer s.look()()
	return s.network
}

// askedName is a name that was looked up, to connect to a port.
type askedName struct {
	name string
	port uint16
}

// portOf returns the port for which a name was looked up in vain; 0: not known.
func (s *Signs) portOf(name string) uint16 {
	defer s.look()()
	if i := slices.IndexFunc(s.asked, func(x askedName) bool { return x.name == name }); i >= 0 {
		return s.asked[i].port
	}
	return 0
}

// sawReset reports whether a connection was reset.
func (s *Signs) sawReset() bool {
	defer s.look()()
	return s.reset
}

// sawGuard reports whether the guard's own sentence was printed.
func (s *Signs) sawGuard() bool {
	defer s.look()()
	return s.guard
}

// sawNoProcess reports whether a process or thread couldn't be started.
func (s *Signs) sawNoProcess() bool {
	defer s.look()()
	return s.pids
}

// sawNoIdentity reports whether git refused to commit for want of a name.
func (s *Signs) sawNoIdentity() bool {
	defer s.look()()
	return s.identity
}

// sawWorktree reports whether git didn't find the repository of a linked worktree.
func (s *Signs) sawWorktree() bool {
	defer s.look()()
	return s.worktree
}

// noted takes what a worker's toolbox says of a command's end.
func (s *Signs) noted(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.filled, s.held = protocol.Notes(note)
}

// notFound are the programs that weren't found.
func (s *Signs) notFound() []string {
	defer s.look()()
	return slices.Clone(s.absent)
}

// notMade are the directories that couldn't be made, perhaps for want of a parent.
func (s *Signs) notMade() []string {
	defer s.look()()
	return slices.Clone(s.unmade)
}

// paths are those that couldn't be written.
func (s *Signs) paths() []string {
	defer s.look()()
	return slices.Clone(s.readOnly)
}

// signWords are in each line that is a sign, in lower case: to look for them takes a
// hundredth of the time of the patterns.
var signWords = []string{
	"read-only", "resource busy", "resol", "not known", "no such host", "nodename nor servname", "unable to look up", "enotfound", "eai_again", "econnrefused",
	"enetunreach", "refused", "unreachable", "connect to ", "bad address", guardSays, noIdentity,
	wasReset, "fork", "thread", "temporarily unavailable", "enoent", "no space left", "/.git/worktrees/",
	"not found", "no such file",
}

// guardSays is what the guard says to a program that it refuses (403), in lower case.
const guardSays = "not allowed in this workshop"

// wasReset is ECONNRESET as strerror(3) has it, in lower case.
const wasReset = "connection reset by peer"

// noIdentity is what git says, in lower case.
const noIdentity = "please tell me who you are"

// hasSign reports whether a text may have a sign.
func hasSign(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(signWords, func(word string) bool { return strings.Contains(text, word) })
}

// parse reads the lines of an output's end.
func (s *Signs) parse(text string) {
	text = text[max(0, len(text)-maxSignTail):]
	if !hasSign(text) {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line = line[:min(len(line), maxSignLine)]; hasSign(line) {
			s.line(strings.TrimRight(line, "\r "))
		}
	}
}

// line takes a line.
func (s *Signs) line(line string) {
	lower := strings.ToLower(line)
	s.identity = s.identity || strings.Contains(lower, noIdentity)
	s.guard = s.guard || strings.Contains(lower, guardSays)
	s.reset = s.reset || strings.Contains(lower, wasReset)
	s.pids = s.pids || pidsText().MatchString(line)
	s.worktree = s.worktree || worktreeText().MatchString(line)
	keep := func(list *[]string, paths ...string) {
		for _, p := range paths {
			if len(*list) < maxSigns && !slices.Contains(*list, p) {
				*list = append(*list, p)
			}
		}
	}
	if paths, ok := pathsOf(line, readOnlyText()); ok {
		keep(&s.readOnly, paths...)
	}
	if paths, ok := pathsOf(line, noSpaceText()); ok {
		s.noSpace = true
		keep(&s.full, paths...)
	}
	if m := unmadeText().FindStringSubmatch(line); m != nil {
		keep(&s.unmade, m[1])
	}
	if m := absentText().FindStringSubmatch(line); m != nil {
		keep(&s.absent, m[slices.IndexFunc(m[1:], func(g string) bool { return g != "" })+1])
	}
	m := networkText().FindStringSubmatch(line)
	if m == nil {
		return
	}
	s.network = true
	name := m[1] + m[2]
	if port, err := strconv.ParseUint(cmp.Or(m[3], sshPort), 10, 16); err == nil && name != "" && len(s.asked) < maxSigns {
		s.asked = append(s.asked, askedName{strings.ToLower(strings.TrimSuffix(name, ".")), uint16(port)})
	}
}

var (
	// readOnlyText is EROFS as strerror(3) of glibc and musl, Go, Node.js and our own
	// file tools write it, and EBUSY: what renames or removes a mount gets that.
	readOnlyText = pattern(`(?i)read-only file ?system|file system is mounted read-only|device or resource busy|resource busy or locked`)
	// noSpaceText is ENOSPC, likewise.
	noSpaceText = pattern(`(?i)no space left`)
	// unmadeText is what Node.js says where a directory can't be made with its parents.
	unmadeText = pattern(`ENOENT: no such file or directory, mkdir '([^']+)'`)
	// absentText is what shells, env(1), make(1), Go and Node.js say of a program that isn't
	// found.
	absentText = pattern(`^\S*sh: (?:line )?(?:\d+: )?([\w.+-]+): (?:command )?not found$|command not found: ([\w.+-]+)$|^(?:\S*/)?env: ['‘"]?([\w.+-]+)['’"]?: No such file or directory$` +
		`|^g?make\S*: ([\w.+-]+): No such file or directory$|exec: "([\w.+-]+)": executable file not found|spawn ([\w.+-]+) ENOENT`)
	// worktreeText is what git says in a linked worktree without its repository.
	worktreeText = pattern(`not a git repository: \S.*/\.git/worktrees/[^/]+$`)
	// networkText is what programs say of a name that isn't resolved, or of a
	// connection that is refused; the groups are a name that ssh(1) was given, and name
	// and port that git(1) connects to by itself (git://).
	networkText = pattern(`(?i)ssh: could not resolve hostname ([^\s:]+)|unable to look up ([^\s:]+) \(port (\d{1,5})\)` +
		`|could ?n.t resolve|could not resolve|failed to resolve|name or service not known|name resolution|no such host|name does not resolve` +
		`|nodename nor servname|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|connection refused|failed to connect|could not connect|network is unreachable|bad address|not allowed in this workshop`)
	// pidsText is EAGAIN of fork(2) and clone(2) as shells, Go, Python and the JVM write it.
	pidsText = pattern(`(?i)(cannot|can.t) fork|\bfork\b.*resource temporarily unavailable|can.t start new thread|unable to create (new )?native thread`)
	// quotedText is what programs put between quotes; an apostrophe within a word
	// begins nothing.
	quotedText = pattern("(?:^|[\\s(\\[=:,])['\"`\u2018\u201c]([^'\"`\u2018\u2019\u201c\u201d]+)['\"`\u2019\u201d]")
)

// pattern is compiled when it is needed.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// pathsOf are the paths in a line with an error's text: those in quotes, or the word
// before it (cannot create src/a: Read-only file system). tar says in between what it
// tried. Not ok where the line doesn't have the error.
func pathsOf(line string, text *regexp.Regexp) (paths []string, ok bool) {
	at := text.FindStringIndex(line)
	if at == nil {
		return nil, false
	}
	quoted := quotedText().FindAllStringSubmatch(line, 4)
	for _, m := range quoted {
		if m[1] != "standard output" { // of a shell's redirection
			paths = append(paths, m[1])
		}
	}
	if len(quoted) > 0 {
		return paths, true
	}
	before := strings.TrimRight(line[:at[0]], " (")
	if !strings.HasSuffix(before, ":") {
		return nil, true
	}
	parts := strings.Split(strings.TrimSuffix(before, ":"), ": ")
	if n := len(parts) - 1; n > 0 && strings.HasPrefix(parts[n], "Cannot ") {
		parts = parts[:n]
	}
	words := strings.Fields(parts[len(parts)-1])
	if len(words) == 0 {
		return nil, true
	}
	path := words[len(words)-1]
	// A word alone, and what a shell couldn't create, is a path; one of a sentence is
	// only with a slash.
	if len(words) == 1 && len(parts) > 1 || len(words) > 1 && words[len(words)-2] == "create" || strings.Contains(path, "/") || strings.HasPrefix(path, ".") {
		return []string{path}, true
	}
	return nil, true
}
