package session

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// possibleTime bounds the look whether a call can succeed.
const possibleTime = 5 * time.Second

// impossibleError is a call that can't succeed, with the result or the error that it
// would have.
type impossibleError struct {
	result *Result
	err    error
}

func (e *impossibleError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.result.Text()
}

// possible refuses a call that can't succeed before a person is asked about it:
// a write to a read-only mount, an edit of a text that isn't there, a program that
// isn't there. The toolbox finds out by the code of the call itself, which looks
// again when it runs. What can't be found out is possible.
func (c *call) possible(ctx context.Context) error {
	if !c.mayLook() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, possibleTime)
	defer cancel()
	err := c.live.check(ctx, c.own, c.args)
	answer, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return nil
	}
	switch answer.Code {
	case wire.CodeToolFailed, wire.CodeInvalidParams, wire.CodeNotFound, wire.CodeNotExecutable:
		r, err := c.failed(ctx, answer)
		return &impossibleError{r, err}
	}
	return nil
}

// mayLook reports whether the model may know why a call can't succeed. That says
// something about files (whether they are there, whether a text is in one), so it is
// told only where the worker could read each of them without being asked.
func (c *call) mayLook() bool {
	files := c.lookedAt()
	return len(files) > 0 && !slices.ContainsFunc(files, func(p string) bool { return !c.mayRead(p) })
}

// lookedAt are the files that a look at a call is about; none where they aren't known.
func (c *call) lookedAt() []string {
	switch c.own {
	case tool.WriteFile, tool.EditFile:
		var a struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(c.args, &a) != nil {
			return nil
		}
		return []string{a.Path}
	case tool.Shell:
		var a tool.ShellArgs
		if json.Unmarshal(c.args, &a) != nil {
			return nil
		}
		return c.programFiles(a)
	}
	return nil
}

// programFiles are those that tell whether a program can be started: its working
// directory, and the program itself, which of a mere name may be in any directory
// of PATH. A call with a PATH of its own chooses what is looked at: of that none are
// known.
func (c *call) programFiles(a tool.ShellArgs) (files []string) {
	if a.Cwd != "" {
		files = append(files, a.Cwd)
	}
	name := binSh
	if a.Command == "" && len(a.Argv) > 0 {
		name = a.Argv[0]
	}
	switch _, own := a.Env["PATH"]; {
	case path.IsAbs(name):
		return append(files, name)
	case strings.Contains(name, "/") && a.Cwd != "":
		return append(files, a.Cwd+"/"+name)
	case strings.Contains(name, "/"):
		return append(files, name)
	case own:
		return nil
	}
	list := defaultPath
	if v, ok := c.session.worker.Container.Env["PATH"]; ok {
		list = v.V
	}
	for dir := range strings.SplitSeq(list, ":") {
		if path.IsAbs(dir) {
			files = append(files, path.Join(dir, name))
		}
	}
	return files
}

const (
	// binSh runs the line of a call.
	binSh = "/bin/sh"
	// defaultPath is where engines and most images look for programs.
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// mayRead reports whether the worker may read a file without being asked.
func (c *call) mayRead(file string) bool {
	args, err := json.Marshal(tool.ReadFileArgs{Path: file})
	if err != nil || c.session.grant.Load().Check(tool.ReadFile, args) != nil {
		return false
	}
	read := approval.Call{Worker: c.session.worker.Name, Tool: tool.ReadFile, Args: args, Chain: c.session.chain()}
	return c.host.c.Gate.Policy.Decide(read).Decision == workshop.ApprovalAuto
}
