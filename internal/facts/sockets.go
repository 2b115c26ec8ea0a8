package facts

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// Sockets finds the unix sockets at and below a path, at most maxSpecials, in their order.
// missed is about what was not searched; nil: nothing.
func Sockets(ctx context.Context, root string) (found []string, missed error) {
	info, err := os.Stat(root)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket != 0:
		return []string{root}, nil
	case !info.IsDir():
		return nil, nil
	}
	mounted, err := mountPoints()
	if err != nil {
		return nil, err
	}
	t := tree{ctx: ctx, root: root, skip: below(mounted, root)}
	t.visit = func(d *dir, e fs.DirEntry) {
		if e.Type()&fs.ModeSocket != 0 && len(found) < maxSpecials {
			found = append(found, filepath.Join(root, filepath.FromSlash(d.rel), e.Name()))
		}
	}
	t.missed = func(rel string, err error) {
		if missed == nil {
			missed = fmt.Errorf("%s: %s", ClipPath(filepath.Join(root, rel)), boundedfile.Reason(err))
		}
	}
	if err := t.walk(); err != nil {
		missed = err
	}
	slices.Sort(found)
	return found, missed
}
