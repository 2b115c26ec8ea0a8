package dialin

import (
	"crypto/rand"
	"errors"
	"os"
)

// Finish tells PID 1 of the worker whose directory it is, as the host sees it, to
// exit ([End]). Done takes that back, so that the next worker with this directory
// doesn't hear it.
func Finish(dir string) (done func(), err error) {
	d, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	name := rand.Text() + unready
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), d.Rename(name, End)); err != nil { // a name that is moved in wakes PID 1
		_ = d.Remove(name)
		return nil, err
	}
	return func() {
		if d, err := os.OpenRoot(dir); err == nil {
			_ = d.Remove(End)
			d.Close()
		}
	}, nil
}
