package engine

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/made"
)

// Source is where a mount of a worker comes from on this machine, as it was when the worker
// started. The PID 1 of a worker on gVisor doesn't see that another file takes its place:
// that kernel shows no mounts of this machine.
type Source struct {
	Target string `json:"target"`
	Path   string `json:"path"`
	// File is which file it was ([made.FileID]).
	File string `json:"file"`
}

// Replaced are the targets of those sources in whose place there is another file now, or
// none: the worker goes on in what has no longer their names.
func Replaced(all []Source) (targets []string) {
	for _, s := range all {
		if made.FileID(s.Path) != s.File {
			targets = append(targets, s.Target)
		}
	}
	return targets
}

// RefuseReplaced refuses a command in a worker that runs in files which are no longer those
// that its workshop names.
func RefuseReplaced(worker string, targets []string) error {
	return &RefusedError{
		Promise: "B8", Reason: fmt.Sprintf("what worker %s has at %s was replaced, renamed or removed on the host since its start", worker, strings.Join(targets, ", ")),
		Do: "recreate it: `workshop up`",
	}
}
