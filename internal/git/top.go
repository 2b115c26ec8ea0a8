package git

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// Top returns the root of the working tree that a directory is in, and the path of the
// directory below it, with slashes; empty for the root. Symbolic links on the way to the
// directory are followed.
func Top(ctx context.Context, dir string) (root, below string, err error) {
	below, err = locate(ctx, dir)
	if err != nil {
		return "", "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", "", err
	}
	if real, err = filepath.Abs(real); err != nil || below == "" {
		return real, below, err
	}
	root, ok := strings.CutSuffix(real, string(filepath.Separator)+filepath.FromSlash(below))
	if !ok { // core.worktree may say so
		return "", "", fmt.Errorf("the working tree of %s is elsewhere", dir)
	}
	return root, below, nil
}
