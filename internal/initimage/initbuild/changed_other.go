//go:build !linux

package initbuild

import (
	"io/fs"
	"time"
)

// changed is when a file was last changed.
func changed(info fs.FileInfo) time.Time { return info.ModTime() }
