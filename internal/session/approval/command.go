package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/procgroup"
)

// DefaultAnswerTime is how long a program may take to answer.
const DefaultAnswerTime = 10 * time.Minute

// Command asks a program of the user: it gets a [Message] on its standard input
// and prints a [Reply]. Whatever goes wrong refuses the call: an exit code that
// isn't 0, another output, no end in time. It is only ever set by the user, never
// by a workshop.yaml (B43).
type Command struct {
	Argv []string
	Env  []string // nil: the one of this process
	Dir  string   // the directory it runs in; empty: this process's
	// Timeout; 0: DefaultAnswerTime.
	Timeout time.Duration
}

// Ask runs the program.
func (c *Command) Ask(ctx context.Context, q Question) (Answer, error) {
	if len(c.Argv) == 0 {
		return "", errors.New("approvals_command is empty")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within(c.Timeout), fmt.Errorf("no answer within %s", within(c.Timeout)))
	defer cancel()
	line, err := q.encode()
	if err != nil {
		return "", err
	}
	var out, errs limited
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(line), &out, &errs
	cmd.WaitDelay = time.Second
	procgroup.Own(cmd)
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("approvals_command %s: %w", c.Argv[0], context.Cause(ctx))
	case err != nil:
		said := shown(strings.TrimSpace(errs.kept.String()))
		if said != "" {
			said = ": " + said[:min(len(said), 500)]
		}
		return "", fmt.Errorf("approvals_command %s: %w%s", c.Argv[0], err, said)
	case out.more:
		return "", fmt.Errorf("approvals_command %s: the answer is longer than %d bytes", c.Argv[0], maxReply)
	}
	answer, err := q.decodeReply(out.kept.Bytes())
	if err != nil {
		return "", fmt.Errorf("approvals_command %s: %w", c.Argv[0], err)
	}
	return answer, nil
}

func within(d time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return DefaultAnswerTime
}

// limited keeps the first maxReply bytes. The buffer isn't embedded: its ReadFrom
// would read past the limit.
type limited struct {
	kept bytes.Buffer
	more bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := maxReply - l.kept.Len(); len(p) > room {
		l.more = true
		l.kept.Write(p[:room])
		return len(p), nil
	}
	return l.kept.Write(p)
}
