package terminal

import (
	"golang.org/x/term"
)

// Raw is a terminal that hands every key on as it is.
type Raw struct {
	// Resized signals that [Raw.Size] may have changed.
	Resized <-chan struct{}

	in, out int
	before  *term.State
	stop    func()
}

// MakeRaw makes the terminal in raw and follows the size of the terminal out.
// Both must be terminals, see [Is].
func MakeRaw(in, out any) (*Raw, error) {
	t := &Raw{in: int(in.(fileDescriptor).Fd()), out: int(out.(fileDescriptor).Fd())}
	var err error
	if t.before, err = term.MakeRaw(t.in); err != nil {
		return nil, err
	}
	t.Resized, t.stop = watchResize(t.Size)
	return t, nil
}

// Size is the terminal's in characters; ok is false where it isn't known.
func (t *Raw) Size() (rows, cols uint, ok bool) {
	w, h, err := term.GetSize(t.out)
	return uint(h), uint(w), err == nil && w > 0 && h > 0
}

// Restore makes the terminal what it was before. It may be called once.
func (t *Raw) Restore() {
	t.stop()
	term.Restore(t.in, t.before)
}
