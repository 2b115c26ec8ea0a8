package facts

import (
	"context"
	"os"

	"github.com/llmdo/workshop/compose"
)

// TakeSnapshot looks at what workers of a project that isn't up may write.
func TakeSnapshot(ctx context.Context, c *compose.Compiled, home string) (Snapshot, error) {
	r := NewRecord("", c, true, true)
	r.Openings = openings(c)
	r.Roots = sources(r.Openings)
	return r.Take(ctx, home, os.LookupEnv)
}
