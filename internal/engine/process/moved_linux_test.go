package process

import (
	"errors"
	"os"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
)

// A source becomes a link after it was looked at, as by a worker that writes
// above it: the session would have what the link leads to.
func TestMovedSource(t *testing.T) {
	h := inHouse(t)
	h.down()
	if err := errors.Join(os.Rename(h.dir+"/src", h.dir+"/kept"), os.Symlink(h.home+"/.ssh", h.dir+"/src")); err != nil {
		t.Fatal(err)
	}
	err := h.e.Apply(t.Context(), h.plan(), nil)
	if refused, ok := errors.AsType[*engine.RefusedError](err); !ok || refused.Promise != "B7" {
		t.Errorf("%v", err)
	}
}
