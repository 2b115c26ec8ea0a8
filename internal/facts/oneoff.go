package facts

import (
	"errors"
	"os"
	"path/filepath"
)

// Fold keeps the record of a run that has ended, in which a worker changed watched files,
// under a name that all runs of the directory share: what was written by one is obeyed
// by none of the later ones before somebody accepted it (B8). The record itself is
// removed.
func (r *Record) Fold(state, name string) error {
	baseline, err := r.Baseline()
	if err != nil {
		return err
	}
	own := r.Project
	kept := *r
	kept.Project, kept.RuntimeDir, kept.Down, kept.at = name, "", true, filepath.Join(state, name)
	before, err := LoadRecord(state, name)
	if err != nil {
		return err
	}
	if before != nil {
		old, err := before.Baseline()
		if err != nil || !before.OneOff || before.Dir != r.Dir {
			return errors.Join(err, errors.New("the record "+name+" is not one of runs in "+r.Dir))
		}
		baseline = before.Extend(old, baseline)
		kept = *before.With(&kept)
	}
	if err := os.MkdirAll(kept.at, 0o700); err != nil {
		return err
	}
	if err := kept.Keep(baseline); err != nil {
		return err
	}
	return ForgetRecord(state, own)
}
