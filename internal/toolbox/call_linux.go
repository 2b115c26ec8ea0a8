package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// runner decodes the arguments of one tool and runs it.
type runner interface {
	decode(name string, args json.RawMessage, g *tool.Grant) (any, []string)
	run(context.Context, *session, any) (any, error)
	// check returns why run would fail, as far as that shows without changing
	// anything.
	check(context.Context, *session, any) error
	// ownTimeout: the tool ends at the grant's timeout by itself.
	ownTimeout() bool
}

type typed[A, R any] struct {
	f        func(context.Context, *session, A) (R, error)
	dry      func(context.Context, *session, A) error // nil: nothing shows beforehand
	problems func(A, *tool.Grant) []string
	timed    bool
}

func (t typed[A, R]) decode(name string, data json.RawMessage, g *tool.Grant) (any, []string) {
	var a A
	problems := decodeObject(data, &a)
	problems = append(problems, outOfRange(name, a)...)
	if t.problems != nil && len(problems) == 0 {
		problems = t.problems(a, g)
	}
	return a, problems
}

func (t typed[A, R]) run(ctx context.Context, s *session, a any) (any, error) {
	return t.f(ctx, s, a.(A))
}

func (t typed[A, R]) check(ctx context.Context, s *session, a any) error {
	if t.dry == nil {
		return nil
	}
	return t.dry(ctx, s, a.(A))
}

func (t typed[A, R]) ownTimeout() bool { return t.timed }

// call runs a tool, if the grant offers it.
func (s *session) call(ctx context.Context, c *wire.Incoming) (any, error) {
	return s.withTool(ctx, c, func(ctx context.Context, t runner, args any) (any, error) {
		ctx, stop := report(ctx, c)
		defer stop()
		return t.run(ctx, s, args)
	})
}

// check says why a call would fail, as far as that shows without changing
// anything. It has the parameters of call, and refuses what call refuses.
func (s *session) check(ctx context.Context, c *wire.Incoming) (any, error) {
	return s.withTool(ctx, c, func(ctx context.Context, t runner, args any) (any, error) {
		return struct{}{}, t.check(ctx, s, args)
	})
}

// withTool finds the tool of a call and reads its arguments, if the grant offers
// it, and uses it within the worker's timeout.
func (s *session) withTool(ctx context.Context, c *wire.Incoming, use func(context.Context, runner, any) (any, error)) (any, error) {
	var call Call
	if err := decode(c.Params, &call); err != nil {
		return nil, err
	}
	t, ok := tools[call.Tool]
	if !ok {
		if err := s.offered(call.Tool, call.Arguments); err != nil {
			return nil, err
		}
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("%s is a tool of an MCP server: call it through the server (method mcp)", call.Tool)}
	}
	args, problems := t.decode(call.Tool, call.Arguments, &s.grant)
	// What the grant looks at are the arguments that will be used, and no other
	// reading of the same bytes.
	checked := call.Arguments
	if len(problems) == 0 {
		var err error
		if checked, err = json.Marshal(args); err != nil {
			return nil, err
		}
	}
	if err := s.offered(call.Tool, checked); err != nil {
		return nil, err
	}
	if err := invalid(problems); err != nil {
		return nil, err
	}
	if limit := s.grant.Timeout(); limit > 0 && !t.ownTimeout() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, &wire.Error{
			Code: wire.CodeTimeout, Message: fmt.Sprintf("%s timed out after %v, the worker's timeout (resources.timeout)", call.Tool, limit.Round(time.Millisecond)),
		})
		defer cancel()
	}
	result, err := use(ctx, t, args)
	if err != nil {
		return nil, toolError(ctx, err)
	}
	return result, nil
}

// offered is B41, a second time: the host has checked the same.
func (s *session) offered(name string, args json.RawMessage) error {
	if err := s.grant.Check(name, args); err != nil {
		return &wire.Error{Code: wire.CodeNotOffered, Message: err.Error()}
	}
	return nil
}

// toolError gives the error of a tool its code.
func toolError(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if w, ok := errors.AsType[*wire.Error](context.Cause(ctx)); ok {
			return w
		}
		return &wire.Error{Code: wire.CodeCancelled, Message: "the call was cancelled"}
	}
	if w, ok := errors.AsType[*wire.Error](err); ok {
		return w
	}
	if n, ok := errors.AsType[*tool.NotOfferedError](err); ok {
		return &wire.Error{Code: wire.CodeNotOffered, Message: n.Error()}
	}
	return &wire.Error{Code: wire.CodeToolFailed, Message: err.Error()}
}
