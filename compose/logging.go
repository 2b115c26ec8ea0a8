package compose

import "github.com/compose-spec/compose-go/v2/types"

// What the engine keeps of the output of one container, whatever its own default
// is: a driver that it reads back (the guard's log holds the events), and files
// of a size, the oldest of which goes. A worker that writes without end fills
// three files, not the disk of the host.
const (
	logDriver     = "json-file"
	logFiles      = "3"
	workerLogSize = "10m"
	ownLogSize    = "8m" // of guard and rooms
)

func logging(size string) *types.LoggingConfig {
	return &types.LoggingConfig{Driver: logDriver, Options: types.Options{"max-file": logFiles, "max-size": size}}
}
