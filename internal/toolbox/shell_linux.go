package toolbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// binSh is the shell for lines; an image needs none.
const binSh = "/bin/sh"

// shell runs a command and waits for its end. The command's own timeout is a
// result, with what was printed until then.
func (s *session) shell(ctx context.Context, a tool.ShellArgs) (*tool.ShellResult, error) {
	p, err := shellProgram(a)
	if err != nil {
		return nil, err
	}
	most := a.MaxOutputBytes
	if most == 0 {
		most = tool.DefaultOutputBytes
	}
	if err := s.memory.take(ctx, 2*most); err != nil {
		return nil, err
	}
	defer s.memory.give(2 * most)
	// Time counts from here: a call that waits for others has none yet.
	limit := s.grant.Timeout()
	if own := time.Duration(a.TimeoutSeconds * float64(time.Second)); own > 0 {
		limit = own
	}
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	out, errs := &kept{max: most}, &kept{max: most}
	outFile, errsFile := &spill{s: s, stream: "stdout"}, &spill{s: s, stream: "stderr"}
	if s.keepsOutput() {
		out.rest, errs.rest = outFile.add, errsFile.add
	}
	showLine(ctx, func() string { return newer(out, errs) })
	kills, began := s.oomKills(), time.Now()
	r, err := s.launch(p, a.Stdin, out, errs)
	if err != nil {
		return nil, err
	}
	defer func() {
		r.release()
		outFile.drop()
		errsFile.drop()
	}()
	result := &tool.ShellResult{}
	select {
	case <-r.c.Done():
	case <-over:
		result.TimedOut = true
		r.c.end()
	case <-ctx.Done():
		r.c.end()
		return nil, ctx.Err()
	}
	status := r.c.Wait()
	r.out.finish()
	r.errs.finish()
	result.DurationMS = time.Since(began).Milliseconds()
	result.ExitCode, result.Signal = how(status)
	result.Stdout, result.Stderr = out.output(), errs.output()
	result.Note = joined(s.note(r.c, result, kills), outFile.close(&result.Stdout), errsFile.close(&result.Stderr))
	return result, nil
}

// shellProgram is the program of a call.
func shellProgram(a tool.ShellArgs) (program, error) {
	p := program{argv: a.Argv, cwd: a.Cwd, tool: true}
	if a.Command != "" {
		if _, err := os.Stat(binSh); err != nil {
			return p, errors.New("the image of the worker has no " + binSh + ": give the program and its arguments as argv instead of command")
		}
		p.argv = []string{binSh, "-c", a.Command}
	}
	for name, value := range a.Env {
		p.env = append(p.env, name+"="+value)
	}
	slices.Sort(p.env)
	return p, nil
}

// checkShell returns why a call can't be started: its directory or its program
// isn't there, or isn't executable. It starts nothing: nil is no promise.
func (s *session) checkShell(a tool.ShellArgs) error {
	p, err := shellProgram(a)
	if err != nil {
		return err
	}
	path, dir, err := s.locate(&p, withVariables(s.env, p.env))
	if err != nil {
		return err
	}
	defer dir.Close()
	file := p.file(path)
	if err := unix.Access(file, unix.X_OK); err != nil {
		return startError(err, p, path)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return startError(unix.EACCES, p, path)
	}
	return nil
}

// joined are the notes that are not empty.
func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// newer returns the last line of the stream that was written to last.
func newer(a, b *kept) string {
	first, at := a.lastLine()
	second, later := b.lastLine()
	if first == "" || second != "" && later.After(at) {
		return second
	}
	return first
}

// running is a command of the shell tool with its streams.
type running struct {
	c         *command
	out, errs *stream
	input     *os.File
}

func (s *session) launch(p program, stdin string, out, errs *kept) (_ *running, err error) {
	r := &running{}
	var ours []*os.File // the command's ends
	defer func() {
		for _, f := range ours {
			f.Close()
		}
		if err == nil {
			return
		}
		if w, ok := errors.AsType[*wire.Error](err); !ok {
			err = &wire.Error{Code: wire.CodeToolFailed, Message: "pipe: " + errorText(err)}
		} else {
			err = w
		}
		r.close()
	}()
	for _, to := range []struct {
		k      *kept
		stream **stream
		end    **os.File
	}{{out, &r.out, &p.stdout}, {errs, &r.errs, &p.stderr}} {
		if *to.stream, *to.end, err = newStream(func(b []byte) error { to.k.add(b); return nil }); err != nil {
			return nil, err
		}
		ours = append(ours, *to.end)
	}
	if stdin != "" {
		if p.stdin, r.input, err = newInput(); err != nil {
			return nil, err
		}
		ours = append(ours, p.stdin)
	}
	if r.c, err = s.start(p); err != nil {
		return nil, err
	}
	go r.out.carry()
	go r.errs.carry()
	if r.input != nil {
		go func() {
			_, _ = r.input.WriteString(stdin) // a program need not read it
			r.input.Close()
		}()
	}
	return r, nil
}

func (r *running) close() {
	if r.out != nil {
		r.out.pipe.Close()
	}
	if r.errs != nil {
		r.errs.pipe.Close()
	}
	if r.input != nil {
		r.input.Close()
	}
}

// release gives the pipes back; those that something in the background holds
// are drained until its end.
func (r *running) release() {
	if r.input != nil {
		r.input.Close()
	}
	for _, s := range []*stream{r.out, r.errs} {
		s.finish()
		if s.eof {
			s.pipe.Close()
			continue
		}
		go s.drain()
	}
}

// noSpace reports whether a program says ENOSPC, as strerror(3) writes it.
func noSpace(text string) bool { return strings.Contains(strings.ToLower(text), "no space left") }

// note returns what the numbers do not say; kills is [session.oomKills] from before.
func (s *session) note(c *command, r *tool.ShellResult, kills int64) string {
	if !r.TimedOut {
		if note := s.memoryNote(r.ExitCode, kills, noSpace(r.Stdout.Text) || noSpace(r.Stderr.Text)); note != "" {
			return note
		}
	}
	// Without anybody in its group there is rarely somebody elsewhere, and the
	// look at all processes takes its time.
	if r.TimedOut || unix.Kill(-c.Pid, 0) != nil {
		return ""
	}
	if n := c.leftFor(ending); n > 0 {
		return protocol.LeftNote(n)
	}
	return ""
}
