package engine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// maxStart bounds the bytes of a start's name.
const maxStart = 512

// Keep notes that a start of a service's container was compared.
func (c Compared) Keep(project, service, start string) error {
	if c.Dir == "" {
		return fmt.Errorf("no directory to note in that %s was compared with what was asked for: neither HOME nor XDG_STATE_HOME is set", service)
	}
	file := filepath.Join(c.Dir, project, comparedDir, service)
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		// A file whose content is replaced would be written to the disk at once (ext4(5),
		// auto_da_alloc). One that a crash leaves incomplete is of nothing that was compared.
		_ = os.Remove(file)
		err = os.WriteFile(file, []byte(start), 0o600)
	}
	if err != nil {
		return fmt.Errorf("note that %s was compared with what was asked for: %w", service, err)
	}
	return nil
}

// Has reports whether a start of a service's container was compared.
func (c Compared) Has(project, service, start string) bool {
	if c.Dir == "" || start == "" {
		return false
	}
	f, err := os.OpenInRoot(filepath.Join(c.Dir, project, comparedDir), service)
	if err != nil {
		return false
	}
	defer f.Close()
	noted, err := io.ReadAll(io.LimitReader(f, maxStart))
	return err == nil && string(noted) == start
}

// RefuseNotCompared refuses a command in a worker that runs, and was not compared.
func RefuseNotCompared(worker string) error {
	return &RefusedError{
		Reason: fmt.Sprintf("worker %s was not compared with what was asked for since its start", worker),
		Do:     "compare it: `workshop up`",
	}
}
