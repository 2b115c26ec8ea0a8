// Package client is what a person does in a worker by hand, as the host's side
// of a session with its toolbox: run a command, copy files in and out. Who makes
// the connection to the worker, an engine or internal/cli, hands it over.
//
// Each function takes a new connection for itself and closes it.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// helloTime bounds the hello, as package session does: a worker can stop the
// program that is to answer.
const helloTime = 30 * time.Second

// greet begins a session. With an error, conn is closed.
func greet(ctx context.Context, conn io.ReadWriteCloser, name string) (*wire.Conn, error) {
	client := wire.NewClient(conn)
	hello := protocol.Hello{Version: wire.Version, Client: name, Role: protocol.RoleExec}
	ctx, late := context.WithTimeoutCause(ctx, helloTime, fmt.Errorf("no answer in %v", helloTime))
	defer late()
	err := client.Call(ctx, "hello", hello, nil)
	if err == nil {
		return client, nil
	}
	client.Close()
	if lost, ok := errors.AsType[*wire.LostError](err); ok && lost.Cause != nil {
		err = lost.Cause // nothing was executed
	}
	if errors.Is(err, wire.ErrPeerClosed) {
		err = errors.New("its program there ended at once; a limit of the worker may be reached (resources.pids, resources.memory)")
	}
	return nil, fmt.Errorf("no session with the worker: %w", err)
}
