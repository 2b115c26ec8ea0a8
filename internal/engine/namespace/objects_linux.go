package namespace

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// objectsName is the file with the networks and volumes of a project.
const objectsName = "objects.json"

// objects has the networks and volumes of a project, by name. A network is only its
// entry here: the guard uses the machine's network.
type objects struct {
	Networks []engine.Object `json:"networks,omitempty"`
	Volumes  []engine.Object `json:"volumes,omitempty"`
}

func readObjects(dir string) (objects, error) {
	var o objects
	b, err := os.ReadFile(filepath.Join(dir, objectsName))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, damaged(dir, objectsName, err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, damaged(dir, objectsName, err)
	}
	return o, nil
}

// damaged returns an error, with the remedy, about a damaged file of the state.
func damaged(dir, name string, err error) error {
	file := filepath.Join(dir, name)
	if err == io.EOF {
		err = errors.New("it is empty")
	}
	return fmt.Errorf("%s can't be read (%w): remove it and run `workshop down`, which cleans up the project", file, err)
}

// changeObjects changes the file; steps may run concurrently.
func (e *Engine) changeObjects(project string, change func(*objects)) error {
	e.objects.Lock()
	defer e.objects.Unlock()
	dir := e.dir(project)
	o, err := readObjects(dir)
	if err != nil {
		return err
	}
	change(&o)
	byName := func(a, b engine.Object) int { return strings.Compare(a.Name, b.Name) }
	sortfunc.Stable(o.Networks, byName)
	sortfunc.Stable(o.Volumes, byName)
	b, err := json.Marshal(&o)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, objectsName), append(b, '\n'), 0o600)
}

// newID returns a random ID, different for objects of the same name.
func newID() string { return strings.ToLower(rand.Text()) }

// volumeDir returns the directory of a volume after checking its name.
func (e *Engine) volumeDir(project, name string) (string, error) {
	if !validName(name) {
		return "", fmt.Errorf("volume %q: the name is not valid as a directory name", name)
	}
	return filepath.Join(e.dir(project), api.VolumeDir, name), nil
}

// makeDir makes the directory of a project, accessible to its user alone.
func (e *Engine) makeDir(project string) error {
	dir := e.dir(project)
	if err := os.MkdirAll(filepath.Join(dir, api.VolumeDir), 0o700); err != nil {
		return fmt.Errorf("the state of the project: %w: set XDG_STATE_HOME to a directory that you can write to", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}
