package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Compared notes which start of a service's container was last compared with what was
// asked for ([CompareMade]): a container is ready, and commands run in it, only after that.
// A start is named by its engine, never the same for two. The notes are in the user's state
// directory, which no worker can reach, with the record of the project (package facts), and
// go with that. One that is missing, or of another user, is of nothing that was compared.
type Compared struct {
	// Dir has a directory for each project; empty: nothing was compared, and to note it fails.
	Dir string
}

// comparedDir is the directory in that of a project.
const comparedDir = "compared"

// maxNote bounds the bytes of a note.
const maxNote = 1 << 20

// Process is the main process of a worker's container on this machine, as a command saw it
// that asked the engine: later ones needn't while it runs.
type Process struct {
	PID       int
	Start     string // names this process among all that had or will have its number
	User      string // UID:GID
	DialIn    string // the dial-in directory on this machine
	Directory string // of the project
}

// details are what a note has besides the name of the start.
type details struct {
	Process *Process `json:",omitempty"`
	Sources []Source `json:",omitempty"`
}

// Keep notes that a start of a service's container was compared, and the sources of mounts
// that nothing in the container looks at any more.
func (c Compared) Keep(project, service, start string, sources ...Source) error {
	return c.write(project, service, start, details{Sources: sources})
}

// KeepProcess adds to the note of a start the main process of the container. What was not
// compared, as of plain Compose, gets none.
func (c Compared) KeepProcess(project, service, start string, p Process) error {
	sources, compared := c.Sources(project, service, start)
	if !compared {
		return nil
	}
	return c.write(project, service, start, details{&p, sources})
}

// Process is that of a service whose container was compared since its start; nil: none is
// noted. The caller makes sure that it still runs.
func (c Compared) Process(project, service string) *Process {
	_, more := c.read(project, service)
	if p := more.Process; p != nil && p.PID > 0 && p.Start != "" {
		return p
	}
	return nil
}

func (c Compared) write(project, service, start string, more details) error {
	if c.Dir == "" {
		return fmt.Errorf("no directory to note in that %s was compared with what was asked for: neither HOME nor XDG_STATE_HOME is set", service)
	}
	file := filepath.Join(c.Dir, project, comparedDir, service)
	b, err := json.Marshal(more)
	if err == nil {
		b = append([]byte(start+"\n"), b...)
		// A file whose content is replaced would be written to the disk at once (ext4(5),
		// auto_da_alloc). One that a crash leaves incomplete is of nothing that was compared.
		_ = os.Remove(file)
		err = os.WriteFile(file, b, 0o600)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
		if err == nil {
			err = os.WriteFile(file, b, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("note that %s was compared with what was asked for: %w", service, err)
	}
	return nil
}

// Has reports whether a start of a service's container was compared.
func (c Compared) Has(project, service, start string) bool {
	_, has := c.Sources(project, service, start)
	return has
}

// Sources are those that [Compared.Keep] noted of a start; has: it was compared.
func (c Compared) Sources(project, service, start string) (sources []Source, has bool) {
	noted, more := c.read(project, service)
	if start == "" || noted != start {
		return nil, false
	}
	return more.Sources, true
}

// read returns a note; "": there is none, or half of one.
func (c Compared) read(project, service string) (start string, more details) {
	if c.Dir == "" {
		return "", more
	}
	f, err := os.OpenInRoot(filepath.Join(c.Dir, project, comparedDir), service)
	if err != nil {
		return "", more
	}
	defer f.Close()
	note, err := io.ReadAll(io.LimitReader(f, maxNote))
	start, text, _ := strings.Cut(string(note), "\n")
	if err != nil || json.Unmarshal([]byte(text), &more) != nil {
		return "", details{}
	}
	return start, more
}

// RefuseNotCompared refuses a command in a worker that runs, and was not compared.
func RefuseNotCompared(worker string) error {
	return &RefusedError{
		Reason: fmt.Sprintf("worker %s was not compared with what was asked for since its start", worker),
		Do:     "compare it: `workshop up`",
	}
}
