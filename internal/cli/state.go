package cli

import (
	"os"
	"path/filepath"

	"github.com/llmdo/workshop/internal/atomicfile"
)

// writeState writes one file of the user's state directory, for this user
// alone.
func writeState(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}
