package secretsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/lib/procgroup"
)

// Environment is what a command gets of the caller's: where its own files are, and the
// keyring. The rest may be a project's, as direnv sets it.
var Environment = []string{"HOME", "USER", "LOGNAME", "LANG", "PATH", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}

var errTooMuch = errors.New("too much output")

// bounded keeps at most MaxValue bytes and a line end, and calls full at more.
type bounded struct {
	b    bytes.Buffer // not embedded: its ReadFrom has no bound
	full func()
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.b.Len()+len(p) > MaxValue+2 {
		b.full()
		return 0, errTooMuch
	}
	return b.b.Write(p)
}

// run returns what a command prints. At [CommandTime] it ends with what it has started; what goes
// on after its own end, as an agent, is left alone. Its stderr isn't shown: it may have the value.
func run(parent context.Context, argv []string, lookup func(string) (string, bool)) ([]byte, error) {
	if !filepath.IsAbs(argv[0]) {
		return nil, fmt.Errorf("the command's program %q is not an absolute path", argv[0])
	}
	ctx, cancel := context.WithTimeout(parent, CommandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	procgroup.Own(cmd)
	cmd.Dir, cmd.Env, cmd.WaitDelay = "/", []string{}, time.Second
	for _, name := range Environment {
		if v, ok := lookup(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out := bounded{full: cancel}
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, errTooMuch), ctx.Err() == context.Canceled && parent.Err() == nil:
		return nil, fmt.Errorf("%s prints more than %d KiB", argv[0], MaxValue>>10)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s didn't end in time, at most %v", argv[0], CommandTime)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &exit):
		return nil, fmt.Errorf("%s ended with %s: run it by hand to see why", argv[0], exit.ProcessState)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s ended, and something that it started still holds its output", argv[0])
	case err != nil:
		return nil, err
	}
	return out.b.Bytes(), nil
}
