package app

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// runNote is what a run writes down of itself. It holds a lock on that as long as it
// lives: a note that is free is of a run that was killed.
type runNote struct {
	Dir string `json:"dir"`
	// Engine and Endpoint are where it runs.
	Engine   string `json:"engine"`
	Endpoint string `json:"endpoint,omitempty"`
}

// maxRunNote bounds a note, in bytes.
const maxRunNote = 64 << 10

// heldNote is the note of a run that nobody else may touch.
type heldNote struct {
	runNote
	project string
	path    string
	lock    *flock.Flock
}

func (env *Env) runsDir() string {
	if dir := env.StateDir(); dir != "" {
		return filepath.Join(dir, "runs")
	}
	return ""
}

// noteRun notes a run before it makes anything.
func (env *Env) noteRun(project string, note runNote) (*heldNote, error) {
	if env.runsDir() == "" {
		return nil, Fail(CodeFailed, "no directory to note the run in: neither HOME nor XDG_STATE_HOME is set")
	}
	h := &heldNote{runNote: note, project: project, path: filepath.Join(env.runsDir(), project)}
	held, _, err := lockFile(h.path)
	for tries := 0; err == nil && held == nil; tries++ { // somebody looks whether it is left
		if tries == 100 {
			err = errors.New("another command has it")
			break
		}
		time.Sleep(5 * time.Millisecond)
		held, _, err = lockFile(h.path)
	}
	if err != nil {
		return nil, Fail(CodeFailed, "the run can't be noted in %s: %w", h.path, err)
	}
	h.lock = held
	text, err := json.Marshal(note)
	if err == nil {
		err = os.WriteFile(h.path, text, 0o600)
	}
	if err != nil {
		h.forget()
		return nil, Fail(CodeFailed, "the run can't be noted in %s: %w", h.path, err)
	}
	return h, nil
}

// forget removes the note: nothing of the run is left. It does so while it is locked, see
// [Env.Change].
func (h *heldNote) forget() {
	_ = os.Remove(h.path)
	h.leave()
}

// leave leaves it for a later command.
func (h *heldNote) leave() { _ = h.lock.Unlock() }

// killedRuns are the notes of runs that were killed.
func (env *Env) killedRuns() (all []*heldNote) {
	dir := env.runsDir()
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		h := &heldNote{project: e.Name(), path: filepath.Join(dir, e.Name())}
		held, _, err := lockFile(h.path)
		if err != nil || held == nil {
			continue
		}
		h.lock = held
		text, err := boundedfile.Read(h.path, maxRunNote)
		if err != nil || json.Unmarshal(text, &h.runNote) != nil || !ValidName(h.project) {
			h.forget() // it ended before it had written that, and so before it made anything
			continue
		}
		all = append(all, h)
	}
	return all
}
