//go:build !linux

package copytree

import "os"

// isAt does nothing, as this system doesn't report the path of an opened directory.
func isAt(*os.Root, string) error { return nil }
