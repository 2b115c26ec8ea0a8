package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"

	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// policyDigest returns the digest of the policy file that the project's guard starts
// with; "" if there is none or it can't be read. It reads the file directly on this
// machine if possible, else by the archive API through the guard's container,
// running or not.
func (e *Engine) policyDigest(ctx context.Context, containers []engine.Container, volumes []*volume.Volume) string {
	for _, v := range volumes {
		if v.Labels[engine.LabelVolume] != compose.PolicyVolume || v.Labels[compose.LabelDirectory] == "" {
			continue
		}
		if f := e.openHere(ctx, *v, copytree.PolicyFile); f != nil {
			defer f.Close()
			return digest(f)
		}
	}
	for _, c := range containers {
		if c.Service != compose.GuardService || c.OneOff || c.Helper || c.ByCompose {
			continue
		}
		r, _, err := e.cli.CopyFromContainer(ctx, c.ID, path.Join(compose.PolicyDir, copytree.PolicyFile))
		if err != nil {
			return ""
		}
		defer r.Close()
		tr := tar.NewReader(r)
		if h, err := tr.Next(); err != nil || h.Typeflag != tar.TypeReg {
			return ""
		}
		return digest(tr)
	}
	return ""
}

// digest returns the [firewall.Digest] of a policy, "" if it isn't valid.
func digest(r io.Reader) string {
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(r, firewall.MaxPolicyBytes+1)); err != nil || n > firewall.MaxPolicyBytes {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// openHere opens a file of a volume directly, if the engine is local and the caller
// is permitted (root): this saves a helper and the start of a process. Otherwise, and of
// anything but a regular file, it returns nil.
func (e *Engine) openHere(ctx context.Context, v volume.Volume, name string) *os.File {
	info, err := e.Info(ctx)
	if err != nil || !info.Local || v.Driver != "local" || len(v.Options) > 0 || v.Mountpoint == "" {
		return nil
	}
	root, err := os.OpenRoot(v.Mountpoint)
	if err != nil {
		return nil
	}
	defer root.Close()
	f, err := boundedfile.OpenIn(root, name)
	if err != nil {
		return nil
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil
	}
	return f
}
