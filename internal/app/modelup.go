package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/model/service"
)

// modelSocket is where clients of this machine reach a model: in its room's runtime
// directory, which is the user's alone.
func modelSocket(runtime string) string { return filepath.Join(runtime, "model") }

// modelLog is what the server of a room printed.
func modelLog(runtime string) string { return modelSocket(runtime) + ".log" }

// DefaultModelWait is how long it is waited for a server that loads its model.
const DefaultModelWait = 5 * time.Minute

// UpModel brings the room of a model up, starts its server there, and returns when it is
// ready. What runs already is left alone.
func (env *Env) UpModel(ctx context.Context, m *Model, wait time.Duration, ask func(context.Context, string) (bool, error)) (err error) {
	if env.Self == nil {
		return Fail(CodeRefused, "a model needs a process of the program llmdo, which serves it").Hint("run `llmdo models up %s`", m.Service.Name)
	}
	var key string
	own := *env
	ch, err := own.Change(ctx, m.Name) // before the key: one command makes it
	if err != nil {
		return err
	}
	defer ch.Unlock()
	defer func() {
		if r, unread := env.Record(m.Name); err != nil && r == nil && unread == nil {
			_ = env.forgetModelKey(m.Name) // of a room that never was
		}
	}()
	if key, err = env.makeModelKey(m.Name); err != nil {
		return err
	}
	own.Lookup = func(name string) (string, bool) {
		if name == service.KeyVariable {
			return key, true
		}
		return env.Lookup(name)
	}
	r, err := own.Connect(ctx, m.ProjectRef, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Info(ctx)
	if err != nil {
		return EngineError(err)
	}
	if !r.Capabilities().Contained || !info.Local {
		return Fail(CodeRefused, "a model needs an engine of this machine that contains it, which %s isn't", r.Chosen.Name).Hint("choose another engine: --engine namespace, or docker")
	}
	ready, err := own.prepare(ctx, r, m.Project, false)
	if err != nil {
		return err
	}
	if n := len(modelSocket(ready.Compiled.Facts.RuntimeDir)); n > maxSocketPath {
		return Fail(CodeRefused, "the runtime directory %s is too long by %d bytes for a socket", Printable(ready.Compiled.Facts.RuntimeDir), n-maxSocketPath).
			Hint("set XDG_RUNTIME_DIR to a shorter directory of yours, or give the project a shorter name: `-p NAME`")
	}
	if err := ch.Up(ctx, r, m.Project, ready, nil, UpOptions{Ask: ask}); err != nil {
		return err
	}
	return own.startModel(ctx, m, ModelStart{
		Project: m.Name, Directory: m.Dir, Engine: r.Chosen.Name, Endpoint: info.Endpoint, Context: info.Context, Runtime: ready.Compiled.Facts.RuntimeDir,
		Key: key, Command: service.Command(m.Service), Wait: wait,
	})
}

// startModel starts the process that serves a room's model, unless there is one.
func (env *Env) startModel(ctx context.Context, m *Model, start ModelStart) error {
	if _, err := askModel(ctx, start.Runtime, start.Key, http.MethodGet, modelStatusPath); err == nil {
		return nil
	}
	if err := stopModel(start.Runtime); err != nil { // one that serves and doesn't answer, or not with this key
		return Fail(CodeFailed, "the socket of the model %s: %w", m.Service.Name, err)
	}
	env.say("%s: loading %s", m.Service.Name, m.Service.File.V)
	err := env.startOwn(ctx, ModelVerb, start, rootOf(start.Runtime), start.Wait+ownStarts)
	if err != nil && ctx.Err() == nil {
		failed := Fail(CodeFailed, "the model %s isn't served: %w", m.Service.Name, err).
			Hint("see what its server printed: `cat %s`", Printable(shellquote.Path(modelLog(start.Runtime))))
		path := filepath.Join(env.modelsDir(), m.Service.File.V)
		if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o004 == 0 {
			failed.Hint("its user may be none of this machine's, who can't read the model: `chmod a+r %s`", Printable(shellquote.Path(path)))
		}
		return failed
	}
	return err
}

// ownStarts is how long a process may take before it begins its work.
const ownStarts = 20 * time.Second

// ModelAddress is how a client of this machine reaches a model.
type ModelAddress struct {
	Name string `json:"name"`
	// URL is the base of its OpenAI API: of the socket, or of a port of 127.0.0.1.
	URL    string `json:"url"`
	Socket string `json:"socket,omitempty"`
	Key    string `json:"key"`
}

// ModelURL returns the address of a model that is up. loopback: on a port of 127.0.0.1, on
// which the key is the only lock.
func (env *Env) ModelURL(ctx context.Context, m *Model, loopback bool) (ModelAddress, error) {
	r, err := env.Record(m.Name)
	key := ""
	if err == nil {
		key, err = env.modelKey(m.Name)
	}
	if err == nil && (r == nil || r.Down || key == "") { // as after a `down` at the same time
		err = Fail(CodeFailed, "the model %s isn't up", m.Service.Name).Hint("start it: `llmdo models up %s`", m.Service.Name)
	}
	if err != nil {
		return ModelAddress{}, err
	}
	a := ModelAddress{Name: m.Service.Name, URL: "http://localhost/v1", Socket: modelSocket(r.RuntimeDir), Key: key}
	if loopback {
		s, err := askModel(ctx, r.RuntimeDir, key, http.MethodPost, modelLoopbackPath)
		if err != nil {
			return ModelAddress{}, Fail(CodeFailed, "the model's port: %w", err)
		}
		a.URL, a.Socket = "http://"+s.Loopback+"/v1", ""
	}
	return a, nil
}

// ModelState is how a model stands.
type ModelState struct {
	Name string `json:"name"`
	File string `json:"file"`
	// State is one of those below.
	State string `json:"state"`
	// Loopback is its port on this machine; empty: it has none.
	Loopback string `json:"loopback,omitempty"`
	Log      string `json:"log,omitempty"`
	Problem  string `json:"problem,omitempty"`
}

// The states of a model.
const (
	ModelReady   = "ready"
	ModelStopped = "stopped" // its room is up, and its server isn't
	ModelDown    = "down"
)

// Models says how a workshop's models stand. Their files are looked at, not read.
func (env *Env) Models(ctx context.Context, c *Project) []ModelState {
	out := []ModelState{}
	for i := range c.Workshop.Models {
		s := &c.Workshop.Models[i]
		st := ModelState{Name: s.Name, File: s.File.V, State: ModelDown}
		project := env.modelRef(c, s).Name
		if r, err := env.Record(project); err == nil && r != nil && !r.Down && r.Dir == c.Dir {
			st.State, st.Log = ModelStopped, modelLog(r.RuntimeDir)
			if key, err := env.modelKey(project); err == nil {
				if a, err := askModel(ctx, r.RuntimeDir, key, http.MethodGet, modelStatusPath); err == nil {
					st.State, st.Loopback = ModelReady, a.Loopback
				}
			}
		}
		if dir := env.modelsDir(); dir == "" || !Exists(filepath.Join(dir, s.File.V)) {
			st.Problem = "the file isn't there"
		}
		out = append(out, st)
	}
	return out
}

// askModel asks the process that serves a model.
func askModel(ctx context.Context, runtime, key, method, path string) (a modelAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", modelSocket(runtime))
	}
	got, err := service.Ask(ctx, key, dial, method, path)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, 4<<10))
	if err != nil {
		return a, err
	}
	if got.StatusCode != http.StatusOK {
		return a, fmt.Errorf("it answers %d: %s", got.StatusCode, bytes.TrimSpace(text))
	}
	return a, json.Unmarshal(text, &a)
}

// stopModel ends what serves a room's model, if something does. One that doesn't hear it
// ends with its socket, or its room.
func stopModel(runtime string) error {
	err := os.Remove(modelSocket(runtime))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
