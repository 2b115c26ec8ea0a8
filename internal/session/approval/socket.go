package approval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Socket asks a program that listens on a unix socket of this user: each
// question is a connection with one [Message] as a line, and a [Reply] as a line
// back. Whatever goes wrong refuses the call.
type Socket struct {
	Path string
	// Timeout; 0: DefaultAnswerTime.
	Timeout time.Duration
}

// Ask connects, asks and waits.
func (s *Socket) Ask(ctx context.Context, q Question) (Answer, error) {
	answer, err := s.ask(ctx, q)
	if err != nil {
		return "", fmt.Errorf("approvals_socket: %w", err)
	}
	return answer, nil
}

func (s *Socket) ask(ctx context.Context, q Question) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within(s.Timeout), fmt.Errorf("no answer within %s", within(s.Timeout)))
	defer cancel()
	if err := ownSocket(s.Path); err != nil {
		return "", err
	}
	line, err := q.encode()
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", s.Path)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	reply, err := exchange(conn, line)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", err
	}
	return q.decodeReply(reply)
}

func exchange(conn io.ReadWriter, line []byte) ([]byte, error) {
	if _, err := conn.Write(line); err != nil {
		return nil, err
	}
	reply, err := bufio.NewReader(io.LimitReader(conn, maxReply)).ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, errors.New("the answer is too long")
	case err != nil && (!errors.Is(err, io.EOF) || len(reply) == 0):
		return nil, fmt.Errorf("the connection ended without an answer: %w", err)
	}
	return reply, nil
}
