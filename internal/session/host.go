package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// Dialer connects to a worker's toolbox; an engine.Engine with its project is
// one. The context is for the connecting alone.
type Dialer func(ctx context.Context, worker string) (io.ReadWriteCloser, error)

// Config is what a Host works with.
type Config struct {
	Workshop *workshop.Workshop
	Dial     Dialer
	// Client names the program that calls, for the audit: "claude-code 2.1".
	Client string
	// Gate decides on approvals; required.
	Gate *approval.Gate
	// Audit may be nil.
	Audit *audit.Log
	// MaxDepth bounds delegation; 0: DefaultDepth.
	MaxDepth int
	// Watch looks at the worker's boundary during each call; may be nil.
	Watch Watch
	// ReadOnly returns what is mounted read-only inside the read-write mounts of a
	// worker (B8), as its paths; may be nil.
	ReadOnly func(worker string) []string
	// Outdated reports whether the files have changed since the workers were started,
	// which have what the files said then; may be nil.
	Outdated func() bool
	// Changed is called when the tools that Tools lists have changed; may be nil.
	Changed func()
	// Warn is told, once, what isn't offered and why, and what to do: a worker
	// whose file differs from what runs, an MCP server that doesn't start. It is
	// one text for people without an end of line; may be nil.
	Warn func(text string)
}

// DefaultDepth of delegation.
const DefaultDepth = 3

// Host offers the tools of one worker, or of all. It is safe for use by
// several goroutines.
type Host struct {
	c    Config
	all  bool
	life context.Context // until Close
	end  context.CancelFunc

	mu     sync.Mutex
	roots  []*workerSession // in the order of the file
	closed bool
	warned map[string]bool
	opened int    // delegations, for the names of their sessions
	names  *table // nil: to be made again
}

// Open makes a Host for one worker, or, with worker "", for all: then names
// have the worker's in front ("reviewer__read_file"). It connects to no worker
// yet.
func Open(c Config, worker string) (*Host, error) {
	if c.Workshop == nil || c.Dial == nil || c.Gate == nil {
		return nil, errors.New("session: Workshop, Dial and Gate are required")
	}
	if c.MaxDepth <= 0 {
		c.MaxDepth = DefaultDepth
	}
	h := &Host{c: c, all: worker == "", warned: map[string]bool{}}
	h.life, h.end = context.WithCancel(context.Background())
	var names []string
	for i := range c.Workshop.Workers {
		w := &c.Workshop.Workers[i]
		names = append(names, w.Name)
		switch {
		case h.all:
			h.roots = append(h.roots, h.newSession(w, nil, w.Name+separator))
		case w.Name == worker:
			h.roots = append(h.roots, h.newSession(w, nil, ""))
		}
	}
	if len(h.roots) == 0 {
		return nil, fmt.Errorf("there is no worker %q; the workshop has %s", worker, strings.Join(names, ", "))
	}
	if err := h.checkNames(); err != nil {
		return nil, err
	}
	return h, nil
}

// Tool is one tool as it is offered.
type Tool struct {
	// Name is unique in the Host: NAME, WORKER__NAME, mcp__SERVER__NAME,
	// delegate_WORKER, DELEGATE__NAME.
	Name        string
	Title       string
	Description string
	Worker      string // whose it is
	InputSchema json.RawMessage
	// BriefSchema is the InputSchema for a model; nil: there is none but that.
	BriefSchema json.RawMessage
	// OutputSchema may be nil.
	OutputSchema json.RawMessage
	// Rendered: results are ([Result]).
	Rendered                                     bool
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Options of one call.
type Options struct {
	// Progress is told how the call goes; may be nil.
	Progress func(Progress)
}

// Progress of a call.
type Progress struct {
	Message     string
	Done, Total float64 // Total 0: unknown
}

// Result is what a tool answered.
type Result struct {
	// Structured is the tool's result (its schema: Tool.OutputSchema); nil where
	// the tool failed, or an MCP server inside gave none.
	Structured json.RawMessage
	// Content are content blocks of MCP as JSON; never empty.
	Content []json.RawMessage
	// Rendered: Content says what Structured does, as text for a model.
	Rendered bool
	// Failed: the tool ran and says what is wrong; Content tells it.
	Failed bool

	exitCode *int              // of a command, for the audit
	shell    *tool.ShellResult // Structured as it was read; nil: of another tool
}

// Close ends all sessions: what their tools started ends too. Calls that are
// under way fail.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	roots := h.roots
	h.mu.Unlock()
	h.end()
	for _, s := range roots {
		s.close()
	}
	return nil
}

// ErrClosed is what a closed Host answers.
var ErrClosed = errors.New("the sessions of this client are closed")

// maxWarnings are told in a Host's life: what a worker does may be a new one
// each time, without an end.
const maxWarnings = 1000

// warn tells something once.
func (h *Host) warn(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	h.mu.Lock()
	told := h.warned[text] || len(h.warned) > maxWarnings
	if !told {
		h.warned[text] = true
		if len(h.warned) > maxWarnings {
			text = "these are too many warnings; more aren't told"
		}
	}
	h.mu.Unlock()
	if !told && h.c.Warn != nil {
		h.c.Warn(text)
	}
}

// changed reports that the list of tools is another.
func (h *Host) changed() {
	if h.life.Err() == nil && h.c.Changed != nil {
		h.c.Changed()
	}
}
