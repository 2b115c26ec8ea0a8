//go:build !unix

package facts

import "os"

// owner is not known here.
func owner(os.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

func idOf(os.FileInfo) (fileID, bool) { return fileID{}, false }
