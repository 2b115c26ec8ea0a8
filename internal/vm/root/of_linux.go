package root

import (
	"context"
	"os"

	"github.com/llmdo/workshop/internal/image"
)

// name is the name of the file in the image store. Another format gets another name.
const name = "root-1.erofs"

// Of returns the path of an image's root file system in the store, which is made if it
// isn't there.
func Of(ctx context.Context, s *image.Store, img *image.Image) (string, error) {
	return s.Beside(ctx, img, name, func(f *os.File) error { return Write(ctx, f, img.RootFS) })
}
