// Package git reads repositories by the git program, and never checks anything out: no
// hook, filter, attribute or submodule is ever looked at. What it reads is hostile, and so
// is the configuration of a repository that somebody cloned: nothing that it names is run
// or connected to (B43, B60). The user's own configuration counts.
//
// Sources: git(1), git-config(1), gitprotocol-v2(5), git-cat-file(1) and git-ls-tree(1) of
// git 2.39.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Timeout bounds one command.
const Timeout = 60 * time.Second

// maxOutput bounds what one command prints, in bytes.
const maxOutput = 64 << 20

// ErrNoGit means that there is no git program.
var ErrNoGit = errors.New("there is no git program in PATH")

// Error is what the program said when it failed.
type Error struct{ Said string }

// Error is the line of it that says why.
func (e *Error) Error() string { return "git: " + e.Said }

// fences are settings that win over every configuration. Nothing is fetched, also not
// objects that a partial clone lacks; no program of the configuration is started.
var fences = []string{
	"-c", "protocol.allow=never",
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.fsmonitor=false",
	"-c", "core.sshCommand=false",
	"-c", "core.pager=cat",
	"-c", "core.alternateRefsCommand=",
	"-c", "credential.helper=",
	"-c", "gc.auto=0",
	"-c", "maintenance.auto=false",
}

// environ is the environment without what is git's: a variable there may name another
// repository, configuration or program.
func environ(more ...string) []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			out = append(out, v)
		}
	}
	return append(append(out,
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_PROTOCOL_FROM_USER=0", "GIT_ALLOW_PROTOCOL=none", "GIT_LITERAL_PATHSPECS=1", "GIT_CONFIG_COUNT=0",
	), more...)
}

// command is git in a directory, fenced.
func command(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	program, err := exec.LookPath("git")
	if err != nil { // also one of the working directory: exec.ErrDot
		return nil, ErrNoGit
	}
	cmd := exec.CommandContext(ctx, program, append(append([]string{"--no-pager"}, fences...), args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ(), time.Second
	return cmd, nil
}

// output runs a command to its end.
func output(ctx context.Context, dir string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("git took longer than %s", Timeout))
	defer cancel()
	cmd, err := command(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	return finish(ctx, cancel, cmd, args[0])
}

// finish runs a command, whose context cancel ends, and returns what it printed.
func finish(ctx context.Context, cancel func(), cmd *exec.Cmd, verb string) ([]byte, error) {
	out := &bounded{left: maxOutput, cancel: cancel}
	said := &bounded{left: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	err := cmd.Run()
	switch {
	case out.over:
		return nil, fmt.Errorf("git %s printed more than %d bytes", verb, maxOutput)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, &Error{whyLine(said.Bytes(), err)}
	}
	return out.Bytes(), nil
}

// whyLine is the line of what git said that says why, without its prefix: the last that
// git calls fatal, or what ssh said before git knows no more than that it failed; else the
// last one.
func whyLine(said []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	text := lines[len(lines)-1]
	for i := range lines {
		if strings.HasPrefix(lines[i], "fatal: Could not read from remote repository") && i > 0 {
			text = lines[i-1]
			break
		}
		if strings.HasPrefix(lines[i], "fatal: ") {
			text = lines[i]
		}
	}
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(text, "fatal: "), "error: "))
	if text == "" {
		text = err.Error()
	}
	return clip.Bytes(text, 300)
}

// bounded keeps what is written up to a limit.
type bounded struct {
	bytes.Buffer
	left   int
	over   bool
	cancel func()
}

// Write implements [io.Writer]. It never fails: the program must not be told.
func (b *bounded) Write(p []byte) (int, error) {
	if n := min(len(p), b.left); n > 0 {
		b.Buffer.Write(p[:n])
		b.left -= n
	}
	if b.left == 0 && !b.over {
		if b.over = true; b.cancel != nil {
			b.cancel()
		}
	}
	return len(p), nil
}
