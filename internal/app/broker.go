package app

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// BrokerStart is what the command that starts a broker says to it, on its stdin.
type BrokerStart struct {
	Project string `json:"project"`
	// Directory is the workshop's; Engine is the name of the one that it is on.
	Directory string `json:"directory"`
	Engine    string `json:"engine"`
	// Endpoint and Context are those of the engine ([EngineOptions]).
	Endpoint string     `json:"endpoint,omitempty"`
	Context  string     `json:"context,omitempty"`
	Runtime  string     `json:"runtime"` // where its socket is
	Use      broker.Use `json:"use"`
}

// brokerSocket is where a project's broker listens: in the runtime directory, which is its
// user's alone, and of which workers have only parts.
func brokerSocket(runtime string) string { return filepath.Join(runtime, "broker") }

// Times of a broker at its start.
const (
	brokerStarts = 10 * time.Second
	// brokerReads is how long an `up` waits for values to be read: what takes longer waits
	// for a person, as a keyring that is locked.
	brokerReads = 10 * time.Second
)

// lease has a project's credentials leased: by the broker that it has, or a new one. What
// isn't leased then is said.
func (env *Env) lease(ctx context.Context, r *Running, ready *Project, c *creds) error {
	dir := ready.Compiled.Facts.RuntimeDir
	if len(c.lines)+len(c.agents) == 0 {
		if dir != "" {
			stopBroker(ctx, dir)
		}
		return nil
	}
	use := broker.Use{Directory: r.Dir, File: env.CredentialsFile(), Lines: c.lines, Agents: c.agents, Values: c.values(env)}
	var err error
	if use.Approvals, err = env.pushApprovals(c); err != nil {
		return err
	}
	_, err = broker.Call(ctx, brokerSocket(dir), broker.Request{Op: broker.OpUse, Use: &use})
	if err != nil { // none, or one of another version
		stopBroker(ctx, dir)
		var info engine.Info
		if info, err = r.Info(ctx); err != nil {
			return EngineError(err)
		}
		err = env.startBroker(ctx, BrokerStart{Project: r.Name, Directory: r.Dir, Engine: r.Chosen.Name, Endpoint: info.Endpoint, Context: info.Context, Runtime: dir, Use: use})
	}
	if err == nil {
		err = env.sayLeased(ctx, dir, c)
	}
	if err != nil && ctx.Err() == nil {
		return Fail(CodeFailed, "the broker of credentials doesn't start: %w", err).
			Hint("the workers run, and endpoints with credentials answer 503; `workshop up` tries again")
	}
	return err
}

// maxSocketPath bounds the path of a unix socket, in bytes: sun_path has 104 on macOS, 108 on
// Linux, with a zero at its end (unix(7)).
const maxSocketPath = 103

// mayStartBroker refuses what needs a broker where nothing can start one.
func (env *Env) mayStartBroker(ctx context.Context, ready *Project) error {
	if n := len(brokerSocket(ready.Compiled.Facts.RuntimeDir)); n > maxSocketPath {
		return Fail(CodeRefused, "the runtime directory %s is too long by %d bytes for the socket of the process that leases credentials; nothing was started",
			Printable(ready.Compiled.Facts.RuntimeDir), n-maxSocketPath).Hint("set XDG_RUNTIME_DIR to a shorter directory of yours, or give the project a shorter name: `-p NAME`")
	}
	if env.Self != nil {
		return nil
	}
	if _, err := broker.Call(ctx, brokerSocket(ready.Compiled.Facts.RuntimeDir), broker.Request{Op: broker.OpStatus}); err == nil {
		return nil
	}
	return Fail(CodeRefused, "the workshop needs your credentials, which a process of the program workshop leases; nothing was started").
		Hint("run `workshop up`")
}

// startBroker starts a broker and returns when it listens.
func (env *Env) startBroker(ctx context.Context, start BrokerStart) error {
	return env.startOwn(ctx, BrokerVerb, start, rootOf(start.Runtime), brokerStarts)
}

// sayLeased waits until values are read, and says which aren't there.
func (env *Env) sayLeased(ctx context.Context, dir string, c *creds) error {
	var a broker.Answer
	for end := time.Now().Add(brokerReads); ; {
		var err error
		if a, err = broker.Call(ctx, brokerSocket(dir), broker.Request{Op: broker.OpStatus}); err != nil {
			return err
		}
		waiting := len(c.lines) > 0 && !a.Attached || slices.ContainsFunc(a.Credentials, func(s broker.Status) bool { return s.State == broker.Waiting })
		if !waiting || time.Now().After(end) {
			break
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if a.Problem != "" {
		env.warn("no credential is leased: %s", Printable(a.Problem))
	}
	env.sayAgents(c.agents, a.Agents)
	if !a.Attached && len(c.lines) > 0 {
		env.warn("no credential is leased yet: the guard doesn't answer the broker; it goes on trying")
	}
	for _, s := range a.Credentials {
		closed := "its endpoints answer 503 until it is"
		if c.byName[s.Name].As.Proxy {
			closed = "nothing is reached through the upstream proxy until it is"
		}
		switch s.State {
		case broker.Leased:
			env.detail("credential %s (%s): leased for %s", s.Name, Printable(s.Source), Count(s.Lines, "line"))
		case broker.Waiting:
			env.warn("the credential %s isn't there yet: %s is still being read; %s", s.Name, Printable(s.Source), closed)
		default:
			env.warn("the credential %s isn't there: %s; %s", s.Name, Printable(s.Problem), closed)
			env.hint("see what it reads: `workshop credential test %s`", s.Name)
		}
	}
	return nil
}

// stopBroker has the broker of a runtime directory end, if there is one. One that doesn't
// answer ends by itself when its socket is gone.
func stopBroker(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_, _ = broker.Call(ctx, brokerSocket(dir), broker.Request{Op: broker.OpStop})
	_ = os.Remove(brokerSocket(dir))
}

// brokers returns the sockets of the brokers of this user, by projects that an `up` noted.
func (env *Env) brokers() (sockets []string, err error) {
	records, err := facts.Records(env.recordsDir())
	for _, r := range records {
		if r.RuntimeDir != "" && Exists(brokerSocket(r.RuntimeDir)) {
			sockets = append(sockets, brokerSocket(r.RuntimeDir))
		}
	}
	return sockets, err
}
