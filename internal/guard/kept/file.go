package kept

import (
	"errors"
	"os"
	"sync"

	"github.com/llmdo/workshop/internal/room/handover"
)

// File is the record of one room. The zero value has no file yet, and can record
// nothing.
type File struct {
	mu    sync.Mutex
	file  *os.File
	slots slots
	state State
}

// Open makes f the file if accept accepts its state; otherwise it closes f. A nil
// f creates a file with what was recorded before. An open file stays.
func (k *File) Open(f *os.File, accept func(State) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, state, err := slots{store: f}, k.state, error(nil)
	switch {
	case k.file != nil:
		if f != nil {
			f.Close()
		}
		return nil
	case f == nil:
		if f, err = handover.NewKept(); err != nil {
			return err
		}
		s.store = f
		err = s.write(state)
	default:
		if state, err = s.read(); err == nil {
			err = accept(state)
		}
	}
	if err != nil {
		f.Close()
		return err
	}
	k.file, k.slots, k.state = f, s, state
	return nil
}

// Opened reports whether there is a file.
func (k *File) Opened() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.file != nil
}

// Give sends the file to a room.
func (k *File) Give(c *handover.Client) error {
	k.mu.Lock()
	f := k.file
	k.mu.Unlock()
	if f == nil {
		return errNoFile
	}
	return c.Keep(f)
}

var errNoFile = errors.New("the room has no file yet")

// Budgets records what is spent.
func (k *File) Budgets(spent []Spent) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state.Budgets = spent
	if k.file == nil {
		return errNoFile
	}
	return k.slots.write(k.state)
}
