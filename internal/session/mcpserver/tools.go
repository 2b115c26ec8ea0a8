package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
)

// tools answers tools/list: all on one page.
func (s *server) tools(ctx context.Context, ss *mcp.ServerSession, params mcp.Params) (mcp.Result, error) {
	if p, ok := params.(*mcp.ListToolsParams); ok && p != nil && p.Cursor != "" {
		return nil, noCursor()
	}
	h, err := s.get(ctx, ss)
	if err != nil {
		return nil, err
	}
	offered, err := h.Tools(ctx)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	res := &list{Tools: []*listed{}}
	for _, t := range offered {
		if m := s.listed(t); m != nil {
			res.Tools = append(res.Tools, m)
		} else {
			s.warn("the tool " + t.Name + " is left out: its schemas are not JSON objects")
		}
	}
	return res, nil
}

// list is the response to tools/list. A model reads all of it, so it has only
// what is needed; the SDK's would have members of later versions, and hints with
// their defaults.
type list struct {
	mcp.ResultBase
	Tools []*listed `json:"tools"`
}

type listed struct {
	Name         string          `json:"name"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  *hints          `json:"annotations,omitempty"`
}

// hints are annotations that differ from the protocol's defaults: a tool
// destroys, unless it only reads, and reaches beyond its server.
type hints struct {
	ReadOnly    bool  `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  bool  `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

func hintsOf(t session.Tool) *hints {
	no := false
	h := hints{ReadOnly: t.ReadOnly, Idempotent: t.Idempotent && !t.ReadOnly}
	if !t.Destructive && !t.ReadOnly {
		h.Destructive = &no
	}
	if !t.OpenWorld {
		h.OpenWorld = &no
	}
	if h == (hints{}) {
		return nil
	}
	return &h
}

func noCursor() error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is one page only: no cursor was given out"}
}

// listed is a tool for clients; nil for one that would break the whole list.
func (s *server) listed(t session.Tool) *listed {
	if !objectSchema(t.InputSchema) || t.OutputSchema != nil && !objectSchema(t.OutputSchema) {
		return nil
	}
	m := &listed{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, Annotations: hintsOf(t)}
	if t.BriefSchema != nil && !s.structured {
		m.Title, m.InputSchema = "", t.BriefSchema // the name says it
	}
	if s.structured || !t.Rendered {
		m.OutputSchema = t.OutputSchema
	}
	return m
}

// objectSchema reports whether a schema is one of an object, as the protocol
// wants it.
func objectSchema(schema json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// result is an answer of tools/call. Unlike the SDK's, it takes content as it
// is: an MCP server inside may send kinds that the SDK doesn't know.
type result struct {
	mcp.ResultBase
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	IsError    bool              `json:"isError,omitempty"`
}

// call answers tools/call. A tool that isn't offered is an error of the
// protocol (-32602); everything else that goes wrong is told to the model as
// the tool's result, so that it can do something about it.
func (s *server) call(ctx context.Context, ss *mcp.ServerSession, p *mcp.CallToolParamsRaw) (mcp.Result, error) {
	h, err := s.get(ctx, ss)
	if err != nil {
		return nil, err
	}
	args := p.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	var o session.Options
	if token := p.GetProgressToken(); token != nil {
		report := newReport(ctx, ss, token)
		defer report.stop()
		o.Progress = report.tell
	}
	res, err := h.Call(ctx, p.Name, args, o)
	var unknown *tool.NotOfferedError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &unknown) && !offers(ctx, h, p.Name):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	case err != nil:
		s.tellPerson(err)
		return failed(forModel(err)), nil
	}
	return s.passed(res), nil
}

// offers reports whether a tool is offered, if not with these arguments.
func offers(ctx context.Context, h host, name string) bool {
	all, err := h.Tools(ctx)
	return err == nil && slices.ContainsFunc(all, func(t session.Tool) bool { return t.Name == name })
}

// passed is a tool's result for the client. What is not valid JSON would get no
// response at all.
func (s *server) passed(r *session.Result) *result {
	out := &result{Content: r.Content, IsError: r.Failed}
	if s.structured || !r.Rendered {
		out.Structured = r.Structured
	}
	for _, c := range out.Content {
		if !json.Valid(c) {
			return failed(errors.New("the tool's result is not valid JSON"))
		}
	}
	if out.Structured != nil && !json.Valid(out.Structured) {
		return failed(errors.New("the tool's structured result is not valid JSON"))
	}
	if out.Content == nil {
		out.Content = []json.RawMessage{}
	}
	return out
}

// maxHints bounds how often a person is told in a run.
const maxHints = 20

// forModel is an error as a model reads it: what to do on this machine is the
// person's matter ([server.tellPerson]).
func forModel(err error) error {
	if e, ok := errors.AsType[*session.UnreachableError](err); ok {
		return fmt.Errorf("the worker %s doesn't run, or can't be reached: tell the person, who can read why in the log of this server", e.Worker)
	}
	if e, ok := errors.AsType[*approval.RefusedError](err); ok {
		return errors.New(e.ForModel())
	}
	if e, ok := errors.AsType[*session.LostError](err); ok {
		known := *e
		known.Unreached = nil
		return &known
	}
	return err
}

// tellPerson says why there is no way to a worker, and how calls that were refused can
// pass, once for each rule that does it. The model is told only that they are refused:
// it is not its matter to loosen that.
func (s *server) tellPerson(err error) {
	if e, ok := errors.AsType[*session.UnreachableError](err); ok {
		s.unreachable(e)
		return
	}
	if e, ok := errors.AsType[*session.LostError](err); ok && e.Unreached != nil {
		s.unreachable(e.Unreached)
		return
	}
	refused, ok := errors.AsType[*approval.RefusedError](err)
	if !ok || refused.Hint == "" {
		return
	}
	text := refused.Call.Tool + " of " + refused.Call.Worker + " was refused: "
	s.hintMu.Lock()
	known := s.hinted[text+refused.Hint] || len(s.hinted) == maxHints
	if !known {
		s.hinted[text+refused.Hint] = true
	}
	s.hintMu.Unlock()
	if !known {
		s.hint(text + refused.PersonHint())
	}
}

func failed(err error) *result {
	block, _ := json.Marshal(map[string]string{"type": "text", "text": err.Error()})
	return &result{Content: []json.RawMessage{block}, IsError: true}
}
