package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop/worker"
)

// toolsTime bounds what is asked of a worker's toolbox.
const toolsTime = 10 * time.Second

// tools asks a worker's toolbox, past all that the host checks, whether it would run
// tools that the file doesn't list. Nothing is run: the arguments are not valid.
func (v *verification) tools(ctx context.Context, w *verify.Worker) {
	ctx, cancel := context.WithTimeout(ctx, toolsTime)
	defer cancel()
	t := &w.Toolbox
	conn, err := v.running.Session(ctx, v.running.Name, w.Name, v.running.Dir)
	if err != nil {
		t.Why = plainText(EngineError(err))
		return
	}
	client := wire.NewClient(conn)
	defer client.Close()
	hello := protocol.Hello{Version: wire.Version, Client: "workshop verify", Role: protocol.RoleTools}
	if err := client.Call(ctx, "hello", hello, nil); err != nil {
		t.Why = plainText(err)
		return
	}
	listed := v.view.c.Worker(w.Name).Definition.Tools
	for _, s := range tool.Specs() {
		is := slices.ContainsFunc(listed, func(x worker.Tool) bool { return x.Name == s.Name })
		if is && t.Control != "" {
			continue
		}
		word := refusal(client.Call(ctx, "check", protocol.Call{Tool: s.Name, Arguments: json.RawMessage("{}")}, nil))
		if is {
			t.Control = s.Name + " (listed): " + word
		} else {
			t.Unlisted = append(t.Unlisted, verify.Asked{What: s.Name, Answer: word})
		}
	}
	if t.Control == "" && client.Call(ctx, "ping", struct{}{}, nil) == nil {
		t.Control = "it answers"
	}
	exec := protocol.Exec{Argv: []string{"/"}} // a directory: it can't be executed
	t.Unlisted = append(t.Unlisted, verify.Asked{What: "exec", Answer: refusal(client.Call(ctx, "exec", exec, nil))})
}

// refusal is what a toolbox answers, in a word of [verify.Asked] or its own.
func refusal(err error) string {
	if err == nil {
		return "it would run"
	}
	refused, ok := errors.AsType[*wire.Error](err)
	switch {
	case !ok:
		return "no answer"
	case refused.Code == wire.CodeNotOffered, refused.Code == wire.CodeInvalidRequest:
		return verify.NotOffered
	}
	return fmt.Sprintf("it would run (%s)", clip.Runes(refused.Message, 60))
}
