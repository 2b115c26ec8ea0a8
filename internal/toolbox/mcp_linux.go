package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// secretsDir is where a worker finds its secrets.
const secretsDir = "/run/secrets"

const (
	// lastWords is how much of a server's standard error goes into the error
	// that tells its end: the beginning and the end, in bytes together.
	lastWords = 4 << 10
	maxSecret = 64 << 10
)

// mcp starts an MCP server of the grant; the call's streams are its own.
func (s *session) mcp(ctx context.Context, c *wire.Incoming) (any, error) {
	var params Server
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	if err := s.grant.CheckServer(params.Server); err != nil {
		return nil, &wire.Error{Code: wire.CodeNotOffered, Message: err.Error()}
	}
	server, ok := s.grant.MCP[params.Server]
	if !ok {
		return nil, &wire.Error{Code: wire.CodeNotOffered, Message: fmt.Sprintf("the workshop has no MCP server %q (mcp in workshop.yaml)", clip.Text(params.Server, shown))}
	}
	p := program{argv: server.Command, tool: true}
	env, err := serverEnv(server, s.openSecret)
	if err != nil {
		return nil, &wire.Error{Code: wire.CodeToolFailed, Message: fmt.Sprintf("the MCP server %s: %v", params.Server, err)}
	}
	p.env = env
	said := &kept{max: lastWords}
	stdin := carryAll
	if !s.grant.WholeServer(params.Server) {
		stdin = func(to io.Writer, from io.Reader) error { return carryOffered(&s.grant, params.Server, to, from) }
	}
	status, err := s.attach(ctx, c, p, stdin, func(b []byte) error { said.add(b); return nil })
	if err != nil {
		return nil, toolError(ctx, err)
	}
	var exit Exit
	if exit.Code, exit.Signal = how(status); exit.Code == 0 {
		return exit, nil
	}
	return nil, &wire.Error{Code: wire.CodeToolFailed, Message: serverEnded(params.Server, exit, said.output().Text)}
}

func serverEnded(name string, exit Exit, said string) string {
	how := fmt.Sprintf("exit code %d", exit.Code)
	if exit.Signal != "" {
		how = exit.Signal
	}
	message := fmt.Sprintf("the MCP server %s ended (%s)", name, how)
	if said = strings.TrimSpace(said); said != "" {
		message += "; it said: " + said
	}
	return message
}

// serverEnv returns the variables of a server, its secrets among them.
func serverEnv(server tool.Server, open func(secret string) (*os.File, error)) (env []string, err error) {
	for name, value := range server.Env {
		env = append(env, name+"="+value)
	}
	for name, secret := range server.Secrets {
		value, err := readSecret(open, secret)
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, nil
}

// openSecret opens the file of a secret, which isn't waited for.
func (s *session) openSecret(name string) (*os.File, error) {
	file := filepath.Join(secretsDir, name)
	if s.view != nil {
		return s.view.Open(file, os.O_RDONLY|unix.O_NONBLOCK)
	}
	return os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
}

func readSecret(open func(secret string) (*os.File, error), name string) (string, error) {
	if name == "" || name != filepath.Base(name) || name == ".." {
		return "", fmt.Errorf("%q is not a valid name of a secret", clip.Text(name, shown))
	}
	f, err := open(name)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("the worker has no secret %q: name it in the worker's secrets in workshop.yaml", name)
	}
	if err != nil {
		return "", fmt.Errorf("the secret %q: %s", name, errorText(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the secret %q: %s", name, errorText(err))
	case len(b) > maxSecret:
		return "", fmt.Errorf("the secret %q is longer than %d bytes", name, maxSecret)
	}
	value := strings.TrimSuffix(string(b), "\n")
	if hasZero(value) {
		return "", fmt.Errorf("the secret %q contains a zero byte: it can't be a variable", name)
	}
	return value, nil
}
