package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// linksSeen caches the symbolic links of one image during a run: path → target.
// Workers of one image need the same ones.
type linksSeen struct {
	mu sync.Mutex
	at map[string]string
}

// linksOf returns the cached links of a container's image.
func (r *run) linksOf(t *creation) *linksSeen {
	key := t.config.Image
	if p := t.platform; p != nil {
		key += " " + path.Join(p.OS, p.Architecture, p.Variant)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.links[key] == nil {
		r.links[key] = &linksSeen{at: map[string]string{}}
	}
	return r.links[key]
}

// checkImageLinks refuses an image whose symbolic links lead a mount into another
// one, or into a place that the engine fills: the mount would cover workshop-init or
// the list of users (B7, B12), or its mount point be made in a directory of this
// machine. Links that only move a mount, such as /lib, are followed. The image is
// read by a separate container, which is never started and has no mounts.
func (e *Engine) checkImageLinks(ctx context.Context, t *creation, seen *linksSeen) error {
	config := &container.Config{Image: t.config.Image, Entrypoint: []string{"/none"}, NetworkDisabled: true,
		Labels: map[string]string{engine.LabelHelper: "true", engine.LabelService: "", engine.LabelOneOff: "True", engine.LabelProject: t.config.Labels[engine.LabelProject], compose.LabelDirectory: t.config.Labels[compose.LabelDirectory]}}
	host := &container.HostConfig{NetworkMode: "none", LogConfig: container.LogConfig{Type: "none"}, CapDrop: []string{"ALL"}, ReadonlyRootfs: true}
	var targets []string
	for _, m := range t.host.Mounts {
		targets = append(targets, m.Target)
		if m.Type == mount.TypeTmpfs { // they keep the engine from creating volumes that the image declares
			host.Mounts = append(host.Mounts, m)
		}
	}
	for target := range t.host.Tmpfs {
		targets = append(targets, target)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	helper := ""
	defer func() {
		if helper != "" {
			e.background.Go(func() { e.removeHelper(helper) })
		}
	}()
	return imageLinks(targets, seen.at, func(p string) (string, error) {
		if helper == "" {
			made, err := e.cli.ContainerCreate(ctx, config, host, nil, t.platform, "workshop-image-"+rand.Text()[:12])
			if err != nil {
				return "", conflict(err)
			}
			helper = made.ID
		}
		st, err := e.cli.ContainerStatPath(ctx, helper, p)
		switch {
		case cerrdefs.IsNotFound(err): // the engine makes it
			return "", nil
		case err != nil:
			return "", err
		case st.Mode&os.ModeSymlink == 0:
			return "", nil
		}
		return path.Clean("/" + st.LinkTarget), nil
	})
}

// filled are paths of a container that the engine fills, besides its mounts.
var filled = []string{"/proc", "/sys", "/dev", "/run", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}

// imageLinks compares which targets are inside each other, as written and with the
// links of the image resolved. look returns the full target of a symbolic link, ""
// for any other path. seen caches the results.
func imageLinks(targets []string, seen map[string]string, look func(string) (string, error)) error {
	targets = append(slices.Clone(filled), targets...)
	sortfunc.Stable(targets, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	targets = slices.Compact(targets)
	real := make([]string, len(targets))
	for i, target := range targets {
		at, rest := "/", target
		for j := i - 1; j >= 0; j-- {
			if below, ok := subpath.Below(target, targets[j]); ok { // its own content is hidden there
				at, rest = real[j], below
				break
			}
		}
		if at == "/" {
			var err error
			if at, err = follow(rest, seen, look); err != nil {
				return err
			}
			rest = ""
		}
		real[i] = path.Join(at, rest)
		for j := range i {
			_, in := subpath.Below(target, targets[j])
			_, now := subpath.Below(real[i], real[j])
			_, around := subpath.Below(real[j], real[i])
			if in != now || around {
				return &engine.RefusedError{
					Promise: "B7", Reason: "symbolic links of the image lead " + target + " to " + real[i] + ", and " + targets[j] + " to " + real[j] + ": one would be inside the other",
					Do: "choose other targets, or an image without these links",
				}
			}
		}
	}
	return nil
}

// follow resolves a path of the image.
func follow(p string, seen map[string]string, look func(string) (string, error)) (string, error) {
	if at, ok := seen[p]; ok || p == "/" {
		return cmp.Or(at, "/"), nil
	}
	dir, err := follow(path.Dir(p), seen, look)
	if err != nil {
		return "", err
	}
	at := path.Join(dir, path.Base(p))
	to, err := look(at)
	if err != nil {
		return "", err
	}
	seen[p] = cmp.Or(to, at)
	return seen[p], nil
}
