package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

// fakeGuard answers on the control socket as the policies say that it is
// given: a host name in them makes it misbehave.
type fakeGuard struct {
	policy    *firewall.Policy
	forgotten bool
}

// serve answers one connection after the other.
func (g *fakeGuard) serve() error {
	l, err := net.Listen("unix", control.SocketPath)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		in, out := bufio.NewReader(c), json.NewEncoder(c)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				break
			}
			_ = out.Encode(g.answer(line))
		}
		c.Close()
	}
}

func (g *fakeGuard) answer(line []byte) control.Answer {
	var req control.Request
	if err := json.Unmarshal(line, &req); err != nil {
		return control.Answer{Error: err.Error()}
	}
	switch {
	case req.Op == control.OpState:
		return result(control.State{Digest: firewall.Digest(g.policy)})
	case req.Op != control.OpPolicy:
		return control.Answer{Error: "not an operation"}
	case bytes.Contains(req.Policy, []byte("refused.example.org")):
		return control.Answer{Error: "this one I don't take"}
	case bytes.Contains(req.Policy, []byte("silence.example.org")):
		time.Sleep(time.Hour)
	}
	p, err := firewall.ParsePolicy(req.Policy)
	switch {
	case err != nil:
		return control.Answer{Error: err.Error()}
	// as if it had been restarted and had read the file of before
	case bytes.Contains(req.Policy, []byte("once.example.org")) && !g.forgotten, bytes.Contains(req.Policy, []byte("never.example.org")):
		g.forgotten = true
	case bytes.Contains(req.Policy, []byte("half.example.org")):
		g.policy = p
		return control.Answer{Error: "the change holds, but not everywhere"}
	default:
		g.policy = p
	}
	return result(control.Applied{Cut: 3, Digest: firewall.Digest(p)})
}

func result(v any) control.Answer {
	b, err := json.Marshal(v)
	if err != nil {
		return control.Answer{Error: err.Error()}
	}
	return control.Answer{Result: b}
}

// connect joins stdin and stdout to the socket.
func connect() error {
	c, err := net.Dial("unix", control.SocketPath)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(c, os.Stdin)
		os.Exit(0)
	}()
	_, err = io.Copy(os.Stdout, c)
	return err
}
