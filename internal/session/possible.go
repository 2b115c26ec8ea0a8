package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// possibleTime bounds the look whether a call can succeed.
const possibleTime = 5 * time.Second

// impossibleError is a call that can't succeed, with the result that it would have.
type impossibleError struct{ result *Result }

func (e *impossibleError) Error() string { return e.result.Text() }

// possible refuses a call that can't succeed before a person is asked about it:
// a write to a read-only mount, an edit of a text that isn't there. The toolbox
// finds out by the code of the call itself, which looks again when it runs. What
// can't be found out is possible.
func (c *call) possible(ctx context.Context) error {
	if !c.mayLook() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, possibleTime)
	defer cancel()
	err := c.live.check(ctx, c.own, c.args)
	if answer, ok := errors.AsType[*wire.Error](err); ok && answer.Code == wire.CodeToolFailed {
		return &impossibleError{failure(answer)}
	}
	return nil
}

// mayLook reports whether the model may know why a call can't succeed. That says
// something about a file (whether it is there, whether a text is in it), so it is
// told only where the worker could read that file without being asked.
func (c *call) mayLook() bool {
	if c.own != tool.WriteFile && c.own != tool.EditFile {
		return false
	}
	var a struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(c.args, &a) != nil {
		return false
	}
	args, err := json.Marshal(tool.ReadFileArgs{Path: a.Path})
	if err != nil || c.session.grant.Load().Check(tool.ReadFile, args) != nil {
		return false
	}
	read := approval.Call{Worker: c.session.worker.Name, Tool: tool.ReadFile, Args: args, Chain: c.session.chain()}
	return c.host.c.Gate.Policy.Decide(read).Decision == workshop.ApprovalAuto
}
