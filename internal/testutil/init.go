package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Init puts a workshop-init for this machine at path: the one that `make build`
// made, where WORKSHOP_BIN names its directory, and else one of the source as it is.
func Init(path string) error {
	if bin := os.Getenv("WORKSHOP_BIN"); bin != "" {
		b, err := os.ReadFile(filepath.Join(bin, "workshop-init-linux-"+runtime.GOARCH))
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o755)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-ldflags", "-s -w", "-o", path, "github.com/llmdo/workshop/cmd/workshop-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
