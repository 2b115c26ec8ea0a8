//go:build !unix

package facts

import "os"

// writable returns nil, as only writing tells.
func writable(string) error { return nil }

// oneName returns false: it isn't known.
func oneName(os.FileInfo) bool { return false }

func idOf(os.FileInfo) (fileID, bool) { return fileID{}, false }
