package copytree

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
)

// PolicyFile is the policy's name in its volume.
const PolicyFile = "policy.json"

// Volume writes the initial content of a volume of the project: the policy, or a
// read-only copy.
func Volume(w *tar.Writer, c *compose.Compiled, key string) error {
	if key == compose.PolicyVolume {
		if c.Policy == nil {
			return errors.New("the project has no policy")
		}
		data := firewall.EncodePolicy(c.Policy)
		if err := w.WriteHeader(&tar.Header{Name: PolicyFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := io.Copy(w, bytes.NewReader(data))
		return err
	}
	cp, ok := c.Copies[key]
	if !ok {
		return fmt.Errorf("volume %q has no known content", key)
	}
	// Readable, because the worker's uid may be set by `user:`.
	o := Options{Exclude: cp.Exclude, Readable: true}
	source := cp.Source
	if f := c.Facts; f != nil {
		o.UID, o.GID = f.UID, f.GID
		if s, ok := f.Sources[source]; ok && s.Real != "" {
			source, o.NoLinks = s.Real, true // as it was checked
		} else if !filepath.IsAbs(source) {
			source = filepath.Join(f.ProjectDir, source)
		}
	}
	return Write(w, source, o)
}
