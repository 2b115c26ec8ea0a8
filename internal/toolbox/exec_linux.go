package toolbox

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// exec runs what a person asked for by `workshop exec`.
func (s *session) exec(ctx context.Context, c *wire.Incoming) (any, error) {
	var e Exec
	if err := decode(c.Params, &e); err != nil {
		return nil, err
	}
	if err := invalid(execProblems(e)); err != nil {
		return nil, err
	}
	if err := s.inWorkdir(e.Cwd); err != nil {
		return nil, err
	}
	p := program{argv: e.Argv, env: e.Env, cwd: e.Cwd}
	var status unix.WaitStatus
	var err error
	kills := s.oomKills()
	if e.TTY != nil {
		status, err = s.onTerminal(ctx, c, p, *e.TTY, e.Stdin)
	} else {
		var stdin func(io.Writer, io.Reader) error
		if e.Stdin {
			stdin = carryAll
		}
		status, err = s.attach(ctx, c, p, stdin, writeTo(c.Stream(wire.Stderr)))
	}
	if err != nil {
		return nil, toolError(ctx, err)
	}
	s.keep.Store(true)
	var exit Exit
	exit.Code, exit.Signal = how(status)
	exit.Note = s.memoryNote(exit.Code, kills, true) // the host reads what it said
	return exit, nil
}

func execProblems(e Exec) (problems []string) {
	if len(e.Argv) == 0 {
		problems = append(problems, "argv is empty: the program is missing")
	}
	problems = append(problems, programProblems(e.Argv, e.Cwd)...)
	for _, v := range e.Env {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			problems = append(problems, fmt.Sprintf("env: %q is not NAME=VALUE", clip.Text(v, shown)))
			continue
		}
		problems = append(problems, variableProblems(name, value)...)
	}
	return problems
}
