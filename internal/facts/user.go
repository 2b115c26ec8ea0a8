package facts

import (
	"os"
	"strconv"

	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// fallbackID is the uid and gid of workers where nothing better is known. 65531
// and 65532 are others' (workshop.ReservedID).
const fallbackID = 65530

// User decides as whom workers run, and says why: the caller; for root the
// user that called sudo, else the owner of the project directory, else 65530.
// Files of workers then belong to somebody who can remove them. Never root.
func User(uid, gid int, lookup func(string) (string, bool), projectDir string) (int, int, string) {
	if uid > 0 {
		return uid, notRoot(gid, uid), "the caller"
	}
	if uid == 0 {
		if u, g, ok := sudo(lookup); ok {
			return u, g, "the caller of sudo (SUDO_UID)"
		}
	}
	if info, err := os.Stat(projectDir); err == nil {
		if u, g, ok := fileowner.Of(info); ok && u > 0 {
			return u, notRoot(g, u), "the owner of the project directory"
		}
	}
	return fallbackID, fallbackID, "the fallback: caller and project directory are root's"
}

func sudo(lookup func(string) (string, bool)) (uid, gid int, ok bool) {
	u, _ := lookup("SUDO_UID")
	g, _ := lookup("SUDO_GID")
	uid, errU := strconv.Atoi(u)
	gid, errG := strconv.Atoi(g)
	return uid, notRoot(gid, uid), errU == nil && errG == nil && uid > 0 && gid >= 0
}

// SudoUID is the user who called sudo, by its variables.
func SudoUID(lookup func(string) (string, bool)) (int, bool) {
	uid, _, ok := sudo(lookup)
	return uid, ok
}

// OwnerOf is who a file belongs to, a symbolic link itself.
func OwnerOf(path string) (uid int, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	uid, _, ok = fileowner.Of(info)
	return uid, ok
}

// notRoot replaces the root group by the user's own number.
func notRoot(gid, uid int) int {
	if gid > 0 {
		return gid
	}
	return uid
}
