package docker

import (
	"context"
	"os"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if fakeUsed.Load() {
		tidy()
	}
	os.Exit(code)
}

// tidy removes image and tool volume of the stand-in, which down leaves as a
// cache. What is missing already is fine.
func tidy() {
	program, err := fakeInit()
	if err != nil {
		return
	}
	ctx := context.Background()
	e, err := New(ctx, Options{Lookup: os.LookupEnv, Init: testutil.InitSet(program, "amd64", "arm64")})
	if err != nil {
		return
	}
	defer e.Close()
	image, volume, err := e.InitNames(ctx)
	if err != nil {
		return
	}
	_ = e.cli.VolumeRemove(ctx, volume, false)
	_, _ = e.cli.ImageRemove(ctx, image, removeImage)
}
