package session

import (
	"context"
	"encoding/json"
	"io"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/workshop"
)

// Dialer connects to a worker's toolbox; an engine.Engine with its project is
// one.
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
	// Changed is called when the tools that Tools lists have changed; may be nil.
	Changed func()
}

// DefaultDepth of delegation.
const DefaultDepth = 3

// Host offers the tools of one worker, or of all. It is safe for use by
// several goroutines.
type Host struct{}

// Open makes a Host for one worker, or, with worker "", for all: then names
// have the worker's in front ("reviewer__read_file"). It connects to no worker
// yet.
func Open(c Config, worker string) (*Host, error) { panic("not built") }

// Tool is one tool as it is offered.
type Tool struct {
	// Name is unique in the Host: NAME, WORKER__NAME, mcp__SERVER__NAME,
	// delegate_WORKER, DELEGATE__NAME.
	Name        string
	Title       string
	Description string
	Worker      string // whose it is
	InputSchema json.RawMessage
	// OutputSchema may be nil.
	OutputSchema                                json.RawMessage
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Tools lists what is offered now, sorted by worker in the order of the file,
// then as documented.
func (h *Host) Tools(ctx context.Context) ([]Tool, error) { panic("not built") }

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
	// an MCP server inside gave none.
	Structured json.RawMessage
	// Content are content blocks of MCP as JSON; never empty.
	Content []json.RawMessage
	// Failed: the tool ran and says what is wrong; Content tells it.
	Failed bool
}

// Call runs a tool: it is offered (else tool.NotOfferedError), approved (else
// approval.RefusedError), then executed in the worker, at most once. A worker
// that dies meanwhile is a [LostError]; the next call connects anew.
func (h *Host) Call(ctx context.Context, name string, args json.RawMessage, o Options) (*Result, error) {
	panic("not built")
}

// Resources describe what the workshop grants to the Host's workers.
func (h *Host) Resources() []Resource { panic("not built") }

// Resource is one readable description.
type Resource struct {
	URI, Name, Description, MIMEType string
	Text                             string
}

// Instructions tell a model what it may do and reach.
func (h *Host) Instructions() string { panic("not built") }

// Close ends all sessions: what their tools started ends too.
func (h *Host) Close() error { panic("not built") }

// LostError is a worker that was gone in mid-call. The call may have been
// executed, whole or in part; it is never repeated.
type LostError struct {
	Worker, Tool string
	Cause        error
}

func (e *LostError) Error() string { panic("not built") }
func (e *LostError) Unwrap() error { return e.Cause }
