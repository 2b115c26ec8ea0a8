package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"

	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// ContentHash is the hash of an image in files, "sha256:…": of an archive, or of the
// index of a layout, which has the digests of all that is in it. The path of the
// reference is absolute.
func ContentHash(ctx context.Context, ref reference.Ref) (string, error) {
	file := ref.Path
	if ref.Kind == reference.Layout {
		file = filepath.Join(file, "index.json")
	}
	f, err := boundedfile.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", file)
	}
	h := sha256.New()
	for {
		_, err := io.CopyN(h, f, 1<<20)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case err == io.EOF:
			return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", err
		}
	}
}
