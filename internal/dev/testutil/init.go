package testutil

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing/fstest"

	"github.com/llmdo/workshop/internal/initimage"
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
	args := append([]string{"build", "-o", path}, initimage.BuildFlags()...)
	cmd := exec.Command("go", append(args, "github.com/llmdo/workshop/cmd/workshop-init")...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// InitSet returns a program as if it were the embedded one of these architectures;
// none: of this machine's. It is packed fast, not small.
func InitSet(program []byte, arches ...string) *initimage.Set {
	if len(arches) == 0 {
		arches = []string{runtime.GOARCH}
	}
	files := fstest.MapFS{}
	for _, arch := range arches {
		files[initimage.FileName(arch)] = &fstest.MapFile{Data: initimage.PackFast(program)}
	}
	return initimage.NewSet(files)
}
