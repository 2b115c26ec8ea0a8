package kept

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/room/handover"
)

// Store records the live denies by a room, for all guards of its directory.
func Store(c *handover.Client, denies []Deny) error {
	f, err := handover.NewKept()
	if err != nil {
		return err
	}
	defer f.Close()
	s := slots{store: f}
	if err := s.write(State{Boot: made.BootID(), Denies: denies}); err != nil {
		return err
	}
	return c.Store(f)
}

// Load returns the live denies that were stored in the rooms' directory. Their Ends is
// that of this boot.
func Load(dir string) ([]Deny, error) {
	f, err := os.Open(filepath.Join(dir, handover.StoredFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := slots{store: f}
	state, err := s.read()
	if err != nil {
		return nil, err
	}
	if state.Boot != made.BootID() {
		for i := range state.Denies {
			if d := &state.Denies[i]; !d.Until.IsZero() {
				d.Ends = max(1, clock.Boot()+time.Until(d.Until)) // 1: it is over
			}
		}
	}
	return state.Denies, nil
}
