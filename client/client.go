package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
)

// Options say which workshop is opened, and how. The zero value is the one of
// the working directory, which must be up.
type Options struct {
	// Dir is where the workshop file is looked for, there and in the directories
	// above; empty: the working directory.
	Dir string
	// File is the workshop file; empty: it is looked for.
	File string
	// Project is its name on the engine, as -p; empty: the workshop's.
	Project string
	// Engine runs it: docker, namespace or process; empty: as the file says, or
	// docker if an engine answers, and else namespace.
	Engine string
	// Up starts what isn't up yet. Without it, a workshop that isn't up is a
	// [NotUpError].
	Up bool
	// Build agrees to images that are built from the repository. Without it, one
	// that a person hasn't agreed to yet is an error.
	Build bool
	// Frozen refuses a workshop that isn't what its workshop.lock says, or that has none,
	// as --frozen. In continuous integration that is so where there is a lock, unless
	// the user's settings say `frozen: false`.
	Frozen bool
	// Approve is asked about calls that need a yes. An error refuses the call; nil
	// refuses them all. Of one worker's calls it is asked one after the other. Where
	// the user's settings name who is asked (approvals_command, approvals_socket),
	// that one is asked instead.
	Approve func(ctx context.Context, c Call) (Answer, error)
	// Name of the program, for the audit log; empty: "client".
	Name string
	// Log gets what a person would see: the progress of a start, warnings. nil:
	// nobody.
	Log io.Writer
}

// Call is a call that needs a yes.
type Call struct {
	Worker, Tool string
	Arguments    json.RawMessage
	// Chain are the workers that delegated, the first caller first, without
	// Worker.
	Chain []string
	// Why names the rule or the default that asks.
	Why string
	// Text is the call for a person, with control characters made visible.
	Text string
	// Rule is what [Session] would allow, in the words of a lock; empty where it can't be
	// answered.
	Rule string
}

// Answer to a question.
type Answer int

// The answers.
const (
	Refuse Answer = iota
	// Once runs this call.
	Once
	// Session runs this call, and until Close all that the same rule covers.
	Session
)

// Workshop is an open one. It is safe for use by several goroutines.
type Workshop struct {
	tools  *app.Tools
	asker  approval.Asker
	name   string // of the program
	mu     sync.Mutex
	hosts  map[string]*session.Host // of workers
	closed bool
}

// Open reads the workshop file and connects to its engine. The context is for
// opening alone. The errors are [InvalidError], [NotUpError], or of the engine.
func Open(ctx context.Context, o Options) (*Workshop, error) {
	env, err := environment(o)
	if err != nil {
		return nil, typed(err)
	}
	name := o.Name
	if name == "" {
		name = "client"
	}
	var asker approval.Asker
	if o.Approve != nil {
		asker = function{o.Approve}
	}
	tools, err := env.Open(ctx, app.ToolsOptions{NoUp: !o.Up, Yes: o.Build})
	if err != nil {
		return nil, typed(err)
	}
	return &Workshop{tools: tools, asker: asker, name: name, hosts: map[string]*session.Host{}}, nil
}

// environment is that of this process, with the user's settings; what the program
// says wins.
func environment(o Options) (*app.Env, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	env := &app.Env{Lookup: os.LookupEnv, Home: app.HomeDir(os.LookupEnv), Dir: dir, Engine: app.Engines}
	if o.Log != nil {
		var one sync.Mutex // steps are carried out side by side
		env.Events = func(e app.Event) {
			if e.Kind == app.Step && env.Quiet {
				return
			}
			one.Lock()
			defer one.Unlock()
			_, _ = io.WriteString(o.Log, e.Plain())
		}
	}
	if o.Dir != "" {
		env.Dir = env.Abs(o.Dir)
	}
	values, from, err := env.UserValues()
	if err != nil {
		return nil, err
	}
	if err := env.Set(values, from); err != nil {
		return nil, err
	}
	if o.Dir != "" || o.File != "" { // and not WORKSHOP_FILE
		env.Settings.File = o.File
	}
	env.Settings.Project = cmp.Or(o.Project, env.Settings.Project)
	env.Settings.Engine = cmp.Or(o.Engine, env.Settings.Engine)
	if o.Frozen {
		env.Settings.Frozen = &o.Frozen
	}
	return env, nil
}

// function is a function as an Asker.
type function struct {
	approve func(context.Context, Call) (Answer, error)
}

// Ask implements [approval.Asker].
func (a function) Ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	c := Call{
		Worker: q.Call.Worker, Tool: q.Call.Tool, Arguments: q.Call.Args, Chain: q.Call.Chain,
		Why: q.Why, Text: q.Text,
	}
	if q.Rule != nil {
		c.Rule = grant.CallsText(q.Rule.Tool, q.Rule.Match)
	}
	answer, err := a.approve(ctx, c)
	switch {
	case err != nil:
		return approval.No, err
	case answer == Once, answer == Session && q.Rule == nil:
		return approval.Once, nil
	case answer == Session:
		return approval.Session, nil
	}
	return approval.No, nil
}

// Worker is one member of the workshop.
type Worker struct {
	Name, Description string
	// Instructions are the body of the worker's file: its prompt.
	Instructions string
	// Model is what the file names; the workshop doesn't use it.
	Model string
	// ResultType is the JSON Schema of what the worker answers with; nil: none.
	ResultType json.RawMessage
	// Tools are the entries of its file in the workshop's names, with their
	// limits: "read_file", "shell(git:*)". [Workshop.Tools] describes them.
	Tools []string
	// DelegatesTo are the workers that it may call on.
	DelegatesTo []string
}

// Workers are those of the file, in its order.
func (w *Workshop) Workers() []Worker {
	var all []Worker
	for _, k := range w.tools.Workshop().Workers {
		d := &k.Definition
		worker := Worker{
			Name: k.Name, Description: d.Description, Instructions: d.Instructions, Model: d.Model, ResultType: d.ResultType,
		}
		for _, t := range d.Tools {
			entry := t.Name
			if t.Pattern != "" {
				entry += "(" + t.Pattern + ")"
			}
			worker.Tools = append(worker.Tools, entry)
		}
		for _, to := range d.DelegatesTo {
			worker.DelegatesTo = append(worker.DelegatesTo, to.Name)
		}
		all = append(all, worker)
	}
	return all
}

// Tool is a tool as a worker is offered it.
type Tool struct {
	// Name as [Workshop.Call] takes it: read_file, mcp__SERVER__TOOL,
	// delegate_WORKER.
	Name, Title, Description string
	InputSchema              json.RawMessage
	OutputSchema             json.RawMessage // nil: none
	// The annotations of MCP: hints, never a boundary.
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Tools lists what a worker is offered now. A delegate's tools come after the
// call of delegate_WORKER, as WORKER__TOOL.
func (w *Workshop) Tools(ctx context.Context, worker string) ([]Tool, error) {
	host, err := w.host(worker)
	if err != nil {
		return nil, typed(err)
	}
	tools, err := host.Tools(ctx)
	if err != nil {
		return nil, typed(err)
	}
	all := make([]Tool, len(tools))
	for i, t := range tools {
		all[i] = Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			ReadOnly: t.ReadOnly, Destructive: t.Destructive, Idempotent: t.Idempotent, OpenWorld: t.OpenWorld,
		}
	}
	return all, nil
}

// Result is what a tool answered.
type Result struct {
	// Text is the answer for a model or a person.
	Text string
	// Structured is the same as JSON, by the tool's output schema; nil where the
	// tool returns none.
	Structured json.RawMessage
	// Content are all content blocks of MCP, images too.
	Content []json.RawMessage
	// Failed: the tool ran, and Text says what is wrong.
	Failed bool
}

// Decode reads the structured result.
func (r *Result) Decode(v any) error {
	if len(r.Structured) == 0 {
		return fmt.Errorf("the tool gave no structured result; its text is %q", clip.Runes(r.Text, 200))
	}
	return json.Unmarshal(r.Structured, v)
}

// Call runs a tool in a worker, at most once. args is what makes a JSON object:
// a map, a struct, a [json.RawMessage]; nil: none. When ctx ends, the call is
// ended in the worker too. The errors are [NotOfferedError], [ArgumentsError],
// [RefusedError], [LostError], [NotUpError], or of the engine; then there is no
// result.
func (w *Workshop) Call(ctx context.Context, worker, tool string, args any) (*Result, error) {
	host, err := w.host(worker)
	if err != nil {
		return nil, typed(err)
	}
	input := json.RawMessage("{}")
	if args != nil {
		if input, err = json.Marshal(args); err != nil {
			return nil, &ArgumentsError{Tool: tool, Problems: []string{err.Error()}}
		}
	}
	r, err := host.Call(ctx, tool, input, session.Options{})
	if err != nil {
		return nil, typed(err)
	}
	return &Result{Text: r.Text(), Structured: r.Structured, Content: r.Content, Failed: r.Failed}, nil
}

// Close ends all sessions: what their tools started ends too. The workshop
// stays up.
func (w *Workshop) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	var all error
	for _, host := range w.hosts {
		all = errors.Join(all, host.Close())
	}
	w.tools.Close()
	return all
}

// host returns the tools of one worker; always the same.
func (w *Workshop) host(worker string) (*session.Host, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	if host := w.hosts[worker]; host != nil {
		return host, nil
	}
	if err := w.tools.CheckWorkers([]string{worker}); err != nil {
		return nil, err
	}
	host, err := w.tools.Host(worker, w.name, w.asker, nil)
	if err == nil {
		w.hosts[worker] = host
	}
	return host, err
}
