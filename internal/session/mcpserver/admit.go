package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// admit decides on one line of the client: what the SDK is given, and what is
// answered at once. Both are nil for what is dropped.
func (c *conn) admit(line []byte, err error) (jsonrpc.Message, *jsonrpc.Response) {
	if err != nil {
		return nil, refusal(jsonrpc.ID{}, wire.CodeInvalidRequest, err.Error())
	}
	if !wellFormed(line) {
		return nil, refusal(jsonrpc.ID{}, wire.CodeParse, fmt.Sprintf("this line is not valid UTF-8, or nested deeper than %d", MaxDepth))
	}
	id, err := idOf(line)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return nil, refusal(jsonrpc.ID{}, wire.CodeParse, "this line is not valid JSON: "+err.Error())
	} else if err != nil {
		return nil, refusal(jsonrpc.ID{}, wire.CodeInvalidRequest, err.Error())
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, refusal(id, wire.CodeInvalidRequest, "this is not a message of JSON-RPC 2.0: "+err.Error())
	}
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return m, nil // an answer to a request of ours; the SDK drops what isn't
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.IsCall() {
		return c.notification(r), nil
	}
	_, twice := c.calls[r.ID]
	switch {
	case twice:
		// The SDK wouldn't answer at all, and an answer with this id would be taken
		// for the other's.
		return nil, refusal(jsonrpc.ID{}, wire.CodeInvalidRequest, fmt.Sprintf("a request with the id %v is under way already", r.ID.Raw()))
	case len(c.calls) >= MaxInFlight:
		return nil, refusal(r.ID, wire.CodeBusy, fmt.Sprintf("busy: %d requests are under way; wait until one is answered", MaxInFlight))
	case len(c.calls) > 0 && c.bytes+len(line) > c.most:
		return nil, refusal(r.ID, wire.CodeBusy, "busy: the requests that are under way are large; wait until one is answered")
	}
	c.calls[r.ID] = &underway{bytes: len(line)}
	c.bytes += len(line)
	return r, nil
}

// notification passes on what is waited for, once: the SDK queues all others
// too, without a bound.
func (c *conn) notification(r *jsonrpc.Request) jsonrpc.Message {
	switch r.Method {
	case "notifications/initialized":
		if c.greeted {
			return nil
		}
		c.greeted = true
		return r
	case "notifications/cancelled":
		var p struct {
			RequestID any `json:"requestId"`
		}
		if json.Unmarshal(r.Params, &p) != nil {
			return nil
		}
		id, err := jsonrpc.MakeID(p.RequestID)
		if err != nil {
			return nil
		}
		if u := c.calls[id]; u != nil && !u.cancelled {
			u.cancelled = true
			return r
		}
	}
	return nil
}

// answer reports whether a response goes out: not where the client has cancelled
// its request, as the protocol wants it. Errors of the SDK that have no code
// get one.
func (c *conn) answer(r *jsonrpc.Response) bool {
	var known *jsonrpc.Error
	if r.Error != nil && !(errors.As(r.Error, &known) && known.Code != 0) {
		r.Error = &jsonrpc.Error{Code: wire.CodeInvalidRequest, Message: r.Error.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.calls[r.ID]; u != nil && u.cancelled {
		c.forget(r.ID)
		return false
	}
	return true
}

// settle ends a request that was answered.
func (c *conn) settle(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(id)
}

func (c *conn) forget(id jsonrpc.ID) {
	if u := c.calls[id]; u != nil {
		c.bytes -= u.bytes
		delete(c.calls, id)
	}
}

func refusal(id jsonrpc.ID, code int64, text string) *jsonrpc.Response {
	return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: text}}
}

// idOf reads the id of a message: none, a string or a whole number that a
// float64 holds, for that is how the SDK keeps it. Anything else would be
// answered under the id of another request.
func idOf(line []byte) (jsonrpc.ID, error) {
	var m struct {
		ID any `json:"id"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
			return jsonrpc.ID{}, err
		}
		return jsonrpc.ID{}, errors.New("a message is one object of JSON-RPC 2.0; batches are not taken")
	}
	id, err := jsonrpc.MakeID(m.ID)
	if f, ok := m.ID.(float64); err != nil || ok && (f != math.Trunc(f) || math.Abs(f) >= 1<<53) {
		return jsonrpc.ID{}, errors.New("the id of a request is a string or a whole number")
	}
	return id, nil
}
