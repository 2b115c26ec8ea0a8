package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// attach runs a program whose streams are those of a call, until it has ended
// and what it printed is through; with a context that ends, it is ended. A
// reader that is slow holds the program up, as a pipe does. stdin carries the
// standard input, nil: there is none; with an error of it the program is ended.
// errs takes the standard error.
func (s *session) attach(ctx context.Context, c *wire.Incoming, p program, stdin func(io.Writer, io.Reader) error, errs func([]byte) error) (unix.WaitStatus, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	defer func() { closeAll(ours) }()
	noPipe := func(err error) (unix.WaitStatus, error) {
		closeAll(theirs)
		return 0, &wire.Error{Code: wire.CodeToolFailed, Message: "pipe: " + errorText(err)}
	}
	stdout := c.Stream(wire.Stdout)
	out, w, err := newStream(writeTo(stdout))
	if err != nil {
		return noPipe(err)
	}
	p.stdout, ours, theirs = w, append(ours, out.pipe), append(theirs, w)
	err2, w, err := newStream(errs)
	if err != nil {
		return noPipe(err)
	}
	p.stderr, ours, theirs = w, append(ours, err2.pipe), append(theirs, w)
	var input *os.File
	if stdin != nil {
		if p.stdin, input, err = newInput(); err != nil {
			return noPipe(err)
		}
		ours, theirs = append(ours, input), append(theirs, p.stdin)
	}
	cmd, err := s.start(p)
	closeAll(theirs)
	if err != nil {
		return 0, err
	}
	go out.carry()
	go err2.carry()
	refused := make(chan error, 1)
	if stdin != nil {
		in := c.Stream(wire.Stdin)
		go func() {
			if err := stdin(input, in); err != nil {
				refused <- err
			}
			input.Close()
		}()
	}
	stop := make(chan struct{})
	defer close(stop)
	go takeNotes(c.Notified(), stop, cmd.passSignal)

	select {
	case <-cmd.Done():
		// A client that doesn't read what is left can still cancel.
		through := make(chan struct{})
		go func() {
			out.finish()
			err2.finish()
			close(through)
		}()
		select {
		case <-through:
			return cmd.Wait(), nil
		case <-ctx.Done():
		}
	case <-ctx.Done():
	case err := <-refused:
		cmd.end()
		return 0, err
	}
	cmd.end()
	return 0, ctx.Err()
}

// carryAll carries a standard input until its end, or nobody reads it.
func carryAll(to io.Writer, from io.Reader) error {
	_, _ = io.Copy(to, from)
	return nil
}

func writeTo(w io.Writer) func([]byte) error {
	return func(b []byte) error {
		_, err := w.Write(b)
		return err
	}
}

// takeNotes passes on the client's notifications about a call, until stop.
func takeNotes(notes <-chan wire.Notification, stop <-chan struct{}, take func(wire.Notification)) {
	for {
		select {
		case n, ok := <-notes:
			if !ok {
				return
			}
			take(n)
		case <-stop:
			return
		}
	}
}

// passSignal sends the process the signal that the client names.
func (c *command) passSignal(n wire.Notification) {
	if no, err := signalOf(n); err == nil {
		_ = c.Signal(no)
	}
}

func signalOf(n wire.Notification) (unix.Signal, error) {
	var s struct {
		Signal string `json:"signal"`
	}
	if n.Method != "$/signal" {
		return 0, errors.New("no signal")
	}
	if err := json.Unmarshal(n.Params, &s); err != nil {
		return 0, err
	}
	if no := unix.SignalNum(s.Signal); no != 0 {
		return no, nil
	}
	return 0, errors.New("unknown signal")
}
