package namespace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/rmtree"
)

// usedLately is for how long after its last use a program or image counts as used: a
// command may be about to start a container of it.
const usedLately = 5 * time.Second

// Leftovers lists programs and images in the cache that no container of this user has.
func (e *Engine) Leftovers(ctx context.Context) ([]engine.Leftover, error) {
	used, err := e.usedPrograms()
	if err != nil {
		return nil, err
	}
	var out []engine.Leftover
	n, _ := e.init.Names(arch)
	list, _ := os.ReadDir(filepath.Join(e.opts.CacheDir, "init")) // none: nothing was ever up
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !d.IsDir() || used[d.Name()] || time.Since(info.ModTime()) < usedLately {
			continue
		}
		size, err := rmtree.Size(ctx, filepath.Join(e.opts.CacheDir, "init", d.Name()))
		if err != nil {
			size = -1
		}
		out = append(out, engine.Leftover{
			Kind: engine.LeftoverProgram, ID: d.Name(), Name: "workshop-init " + d.Name()[:min(12, len(d.Name()))], Bytes: size, Needed: d.Name() == n.Digest,
		})
	}
	images, err := e.leftImages(used)
	return append(out, images...), err
}

// leftImages are the images that no container has. One with a name is what a workshop
// that is down uses again.
func (e *Engine) leftImages(used map[string]bool) (out []engine.Leftover, err error) {
	if !exists(filepath.Join(e.opts.CacheDir, "images")) {
		return nil, nil
	}
	store, err := e.store()
	if err != nil {
		return nil, err
	}
	list, err := store.List()
	if err != nil {
		return nil, err
	}
	for _, i := range list {
		dir := filepath.Dir(i.RootFS)
		info, err := os.Lstat(dir)
		if err != nil || used[filepath.Base(dir)] || time.Since(info.ModTime()) < usedLately {
			continue
		}
		l := engine.Leftover{Kind: engine.LeftoverImage, ID: i.ID, Name: i.ID, Bytes: i.Size}
		if i.Ref.Kind != 0 {
			l.Name, l.Needed = i.Ref.String(), true
		}
		out = append(out, l)
	}
	return out, nil
}

// RemoveLeftover removes a program or an image, after another look at what uses it.
func (e *Engine) RemoveLeftover(ctx context.Context, l engine.Leftover) error {
	switch l.Kind {
	case engine.LeftoverProgram:
		return e.removeProgram(l)
	case engine.LeftoverImage:
		if err := e.unused(strings.TrimPrefix(l.ID, "sha256:"), l.Name); err != nil {
			return err
		}
		store, err := e.store()
		if err != nil {
			return err
		}
		return store.Remove(ctx, l.ID)
	}
	return fmt.Errorf("%s %s is not one of this engine", l.Kind, l.ID)
}

// unused refuses what a container has by now.
func (e *Engine) unused(dir, name string) error {
	used, err := e.usedPrograms()
	if err == nil && used[dir] {
		err = engine.Conflict("%s is in use", name)
	}
	return err
}

func (e *Engine) removeProgram(l engine.Leftover) error {
	if !validName(l.ID) {
		return fmt.Errorf("%q is not a program", l.ID)
	}
	parent := filepath.Join(e.opts.CacheDir, "init")
	lock, err := os.Open(parent) // as in [Engine.program]
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	if err := e.unused(l.ID, l.Name); err != nil {
		return err
	}
	dir := filepath.Join(parent, l.ID)
	if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) < usedLately {
		return engine.Conflict("%s is in use", l.Name)
	}
	_ = os.Remove(dir + ".json")
	return rmtree.Remove(dir)
}
