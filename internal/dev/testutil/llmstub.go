package testutil

import (
	"fmt"
	"os"
	"os/exec"
)

// SlowModel at the end of a model has the stub never load it.
const SlowModel = "which never loads"

// LLMStub puts a static program at path that stands for llama.cpp's llama-server
// (internal/dev/llmstub says what it does).
func LLMStub(path string) error {
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, "github.com/llmdo/workshop/internal/dev/llmstub")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
