package engine

import (
	"encoding/json"
	"fmt"
	"io"
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
const maxNote = 64 << 10

// Process is the main process of a worker's container on this machine, as a command saw it
// that asked the engine: later ones needn't while it runs.
type Process struct {
	PID       int
	Start     string // names this process among all that had or will have its number
	User      string // UID:GID
	DialIn    string // the dial-in directory on this machine
	Directory string // of the project
}

// Keep notes that a start of a service's container was compared.
func (c Compared) Keep(project, service, start string) error {
	return c.write(project, service, start)
}

// KeepProcess adds to the note of a start the main process of the container. What was not
// compared, as of plain Compose, gets none.
func (c Compared) KeepProcess(project, service, start string, p Process) error {
	b, err := json.Marshal(p)
	if err != nil || !c.Has(project, service, start) {
		return err
	}
	return c.write(project, service, start+"\n"+string(b))
}

// Process is that of a service whose container was compared since its start; nil: none is
// noted. The caller makes sure that it still runs.
func (c Compared) Process(project, service string) *Process {
	_, text, _ := strings.Cut(c.read(project, service), "\n")
	var p Process
	if json.Unmarshal([]byte(text), &p) != nil || p.PID <= 0 || p.Start == "" {
		return nil
	}
	return &p
}

func (c Compared) write(project, service, note string) error {
	if c.Dir == "" {
		return fmt.Errorf("no directory to note in that %s was compared with what was asked for: neither HOME nor XDG_STATE_HOME is set", service)
	}
	file := filepath.Join(c.Dir, project, comparedDir, service)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		// A file whose content is replaced would be written to the disk at once (ext4(5),
		// auto_da_alloc). One that a crash leaves incomplete is of nothing that was compared.
		_ = os.Remove(file)
		err = os.WriteFile(file, []byte(note), 0o600)
	}
	if err != nil {
		return fmt.Errorf("note that %s was compared with what was asked for: %w", service, err)
	}
	return nil
}

// Has reports whether a start of a service's container was compared.
func (c Compared) Has(project, service, start string) bool {
	noted, _, _ := strings.Cut(c.read(project, service), "\n")
	return start != "" && noted == start
}

// read returns a note; "": there is none.
func (c Compared) read(project, service string) string {
	if c.Dir == "" {
		return ""
	}
	f, err := os.OpenInRoot(filepath.Join(c.Dir, project, comparedDir), service)
	if err != nil {
		return ""
	}
	defer f.Close()
	note, err := io.ReadAll(io.LimitReader(f, maxNote))
	if err != nil {
		return ""
	}
	return string(note)
}

// RefuseNotCompared refuses a command in a worker that runs, and was not compared.
func RefuseNotCompared(worker string) error {
	return &RefusedError{
		Reason: fmt.Sprintf("worker %s was not compared with what was asked for since its start", worker),
		Do:     "compare it: `workshop up`",
	}
}
