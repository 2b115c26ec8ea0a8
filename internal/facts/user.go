package facts

import (
	"os"
	"strconv"

	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// fallbackID is the uid and gid of workers if there is no better choice. 65531 and
// 65532 are reserved (workshop.ReservedID).
const fallbackID = 65530

// User returns the user of workers and the reason: the caller; for root the user that
// called sudo, else the owner of the project directory, else 65530. So files of
// workers belong to somebody who can remove them. It is never root.
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
	return fallbackID, fallbackID, "the fallback, as caller and owner of the project directory are root"
}

func sudo(lookup func(string) (string, bool)) (uid, gid int, ok bool) {
	u, _ := lookup("SUDO_UID")
	g, _ := lookup("SUDO_GID")
	uid, errU := strconv.Atoi(u)
	gid, errG := strconv.Atoi(g)
	return uid, notRoot(gid, uid), errU == nil && errG == nil && uid > 0 && gid >= 0
}

// SudoUID returns the user that called sudo, from its variables.
func SudoUID(lookup func(string) (string, bool)) (int, bool) {
	uid, _, ok := sudo(lookup)
	return uid, ok
}

// OwnerOf returns the owner of a file; it doesn't follow a symbolic link.
func OwnerOf(path string) (uid int, ok bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, false
	}
	uid, _, ok = fileowner.Of(info)
	return uid, ok
}

// notRoot replaces the root group by the user's uid.
func notRoot(gid, uid int) int {
	if gid > 0 {
		return gid
	}
	return uid
}
