package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/callrule/shellline"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// margin is how much longer than the toolbox the host waits for the end of a
// call: the toolbox ends it, and the host only where the toolbox doesn't.
const margin = 15 * time.Second

// Call runs a tool: it is offered (else tool.NotOfferedError), its arguments
// fit (else [ArgumentsError]), it is approved (else approval.RefusedError) and
// written down, then executed in the worker, at most once. A worker that dies
// during the call is a [LostError]; the next call connects again. When ctx ends, the
// call is cancelled in the worker too.
func (h *Host) Call(ctx context.Context, name string, args json.RawMessage, o Options) (*Result, error) {
	if h.life.Err() != nil {
		return nil, ErrClosed
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	c := &call{host: h, args: args, options: o, begun: time.Now()}
	c.event = audit.Event{ID: newID(), Project: h.c.Workshop.Name.V, Tool: name, Client: h.c.Client, Arguments: args}
	t, err := h.find(ctx, name)
	if err != nil {
		if no, ok := errors.AsType[*tool.NotOfferedError](err); ok {
			c.event.Worker, c.event.Tool = no.Worker, no.Tool
		}
		return nil, c.refused(err)
	}
	c.session, c.own = t.session, t.own
	c.event.Worker, c.event.Tool, c.event.Chain = t.session.worker.Name, t.own, t.session.chain()
	return c.run(ctx)
}

func newID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// call is one call on its way.
type call struct {
	host    *Host
	session *workerSession
	own     string
	args    json.RawMessage // as they go to the toolbox
	options Options
	begun   time.Time
	event   audit.Event
	// live is the session that the call was decided on.
	live  *live
	asked bool // a person, where there is one
}

// beforeAsking refuses what can't succeed, and says that the call waits.
func (c *call) beforeAsking(ctx context.Context) error {
	err := c.possible(ctx)
	if c.asked = err == nil && c.host.c.Gate.Asker != nil; c.asked {
		c.say("waiting for the person")
	}
	return err
}

// say is progress of the host's own.
func (c *call) say(message string) {
	if c.options.Progress != nil {
		c.options.Progress(Progress{Message: message})
	}
}

// run does, in this order: offered, arguments, approval, audit, execution,
// audit.
func (c *call) run(ctx context.Context) (*Result, error) {
	if err := c.check(ctx); err != nil {
		return nil, c.refused(err)
	}
	if c.asks() {
		v, err := c.host.c.Gate.Allow(ctx, approval.Call{Worker: c.session.worker.Name, Tool: c.own, Args: c.args, Chain: c.session.chain()}, c.beforeAsking)
		c.event.Decision, c.event.Answer, c.event.Why = string(v.Decision), string(v.Answer), v.Why
		if no, ok := errors.AsType[*impossibleError](err); ok {
			_ = c.refused(err)
			if no.err == nil {
				c.watch()(ctx, no.result)
			}
			return no.result, no.err
		}
		if err != nil {
			return nil, c.refused(err)
		}
		if c.asked {
			c.say("approved")
		}
	} else {
		c.event.Decision, c.event.Why = "auto", "it only ends what this client began"
	}
	c.event.Arguments = c.args
	if err := c.write("call"); err != nil {
		return nil, fmt.Errorf("%s wasn't run, because the audit can't be written: %w", c.own, err)
	}
	c.begun = time.Now()
	seen := c.watch()
	r, err := c.execute(ctx)
	seen(ctx, r)
	c.tellRestart(r)
	c.done(r, err)
	return r, err
}

// gone is what a restart of a worker takes away.
const gone = "files in /tmp, /scratch and its home directory, and processes in the background, are gone"

// tellRestart says once that the worker isn't the one of the calls before.
func (c *call) tellRestart(r *Result) {
	if r != nil && !c.local() && c.session.restarted.Swap(false) {
		r.addNotes([]string{"The worker was restarted since the last call: " + gone + "."})
	}
}

// asks reports whether the call is a matter of approvals.
func (c *call) asks() bool { return c.own != endDelegation }

// check compares the call with what is offered and with the schema. It
// connects, because only the running worker knows all of it, and nobody should
// be asked about a call that can't be run.
func (c *call) check(ctx context.Context) error {
	if err := c.arguments(); err != nil {
		return err
	}
	if c.local() {
		return nil
	}
	if err := c.granted(); err != nil {
		return err
	}
	live, err := c.session.link.get(ctx)
	if err != nil {
		return err
	}
	c.live = live
	return c.granted() // by what the running worker was given
}

// arguments compares the arguments with the schema of the tool.
func (c *call) arguments() (err error) {
	spec, ours := tool.Find(c.own)
	switch {
	case ours:
		return checkArguments(c.own, schemaOf(spec.Args, spec.Name), c.args)
	case c.own == endDelegation:
		return checkArguments(c.own, schemaOf(EndArgs{}, ""), c.args)
	case c.isDelegate():
		return checkArguments(c.own, schemaOf(DelegateArgs{}, ""), c.args)
	}
	c.args, err = object(c.own, c.args)
	return err
}

// isDelegate reports that the tool opens a delegation.
func (c *call) isDelegate() bool { return strings.HasPrefix(c.own, delegatePrefix) }

// local calls are the host's own.
func (c *call) local() bool { return c.isDelegate() || c.own == endDelegation }

// granted checks the call, and replaces the line of a limited shell by argv.
func (c *call) granted() error {
	g := c.session.grant.Load()
	if c.own == tool.Shell && c.session.limited() {
		if err := c.plainLine(g); err != nil {
			return err
		}
	}
	return g.Check(c.own, c.args)
}

// limited reports that each offer of shell has a limit.
func (s *workerSession) limited() bool {
	for _, o := range s.offersOf(tool.Shell) {
		if o.Limit == "" {
			return false
		}
	}
	return true
}

// plainLine turns a line that is one plain command into argv. The toolbox takes
// nothing else under a limit: whoever compares must see what is run.
func (c *call) plainLine(g *tool.Grant) error {
	var a tool.ShellArgs
	if err := tool.Decode(c.args, &a); err != nil {
		return &ArgumentsError{Tool: c.own, Problems: []string{err.Error()}}
	}
	if a.Command == "" {
		return nil
	}
	argv, ok := shellline.ParseLine(a.Command)
	if !ok {
		e := &tool.NotOfferedError{Worker: g.Worker, Tool: c.own, Why: "the line is more than one plain command (operators, redirections, variables, substitutions and patterns are), and the worker's shell has a limit; give one command, or argv"}
		for _, o := range c.session.offersOf(tool.Shell) {
			e.Offered = append(e.Offered, o.String())
		}
		return e
	}
	a.Command, a.Argv = "", argv
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	c.args = args
	return nil
}

// execute runs the call, once.
func (c *call) execute(ctx context.Context) (*Result, error) {
	switch {
	case c.isDelegate():
		return c.delegate(ctx)
	case c.own == endDelegation:
		return c.endDelegation()
	}
	if t := c.session.grant.Load().Timeout(); t > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t+margin, fmt.Errorf("no end after %v, %v beyond the worker's timeout: the call was cancelled", t+margin, margin))
		defer cancel()
	}
	for again := 0; ; again++ {
		r, err := c.once(ctx)
		if err == nil || again == 2 || !notSent(err) {
			return r, err
		}
		// Not a byte has left: nothing was executed.
		live, err := c.session.link.get(ctx)
		if err != nil {
			return nil, err
		}
		c.live = live
		if err := c.granted(); err != nil {
			return nil, err
		}
	}
}

func (c *call) once(ctx context.Context) (*Result, error) {
	if server, name, ok := tool.SplitMCP(c.own); ok {
		return c.callServer(ctx, server, name)
	}
	raw, err := c.live.call(ctx, c.own, c.args, c.options.Progress)
	if err != nil {
		return c.failed(ctx, err)
	}
	return render(c.own, raw, len(c.session.offersOf(tool.ReadFile)) > 0), nil
}

// failure is the result of a tool that failed.
func failure(e *wire.Error) *Result {
	return &Result{Failed: true, Content: []json.RawMessage{textBlock(e.Message)}}
}

// failed says what an error of the wire means.
func (c *call) failed(ctx context.Context, err error) (*Result, error) {
	var lost *wire.LostError
	var answer *wire.Error
	switch worker := c.session.worker.Name; {
	case notSent(err):
		return nil, err
	case errors.As(err, &lost):
		known, unreached := c.session.whyLost(c.live)
		return nil, &LostError{Worker: worker, Tool: c.own, Known: known, Unreached: unreached, Cause: lost.Cause}
	case !errors.As(err, &answer):
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s of %s: %w", c.own, worker, err)
	case answer.Code == wire.CodeToolFailed, answer.Code == wire.CodeTimeout:
		return failure(answer), nil
	case answer.Code == wire.CodeInvalidParams:
		return nil, &ArgumentsError{Tool: c.own, Problems: []string{answer.Message}}
	case answer.Code == wire.CodeNotOffered:
		return nil, &tool.NotOfferedError{Worker: worker, Tool: c.own, Why: "the running worker says: " + answer.Message}
	case answer.Code == wire.CodeBusy:
		return nil, fmt.Errorf("%s of %s wasn't run: %s; call it again when another call has ended", c.own, worker, answer.Message)
	case answer.Code == wire.CodeCancelled:
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s of %s was cancelled: %s", c.own, worker, answer.Message)
	default:
		return nil, answer
	}
}
