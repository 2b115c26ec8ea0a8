package compose

import (
	"strconv"
	"strings"
)

// cutUser splits "uid" or "uid:gid".
func cutUser(user string) (uid, gid string, both bool) { return strings.Cut(user, ":") }

// ids reads a numeric "uid:gid".
func ids(user string) (uid, gid int, ok bool) {
	u, g, both := cutUser(user)
	uid, errU := strconv.Atoi(u)
	gid, errG := strconv.Atoi(g)
	return uid, gid, both && errU == nil && errG == nil && uid >= 0 && gid >= 0
}

// userOf is the "uid:gid" of a worker: the file's, else the machine's.
func userOf(written string, f *Facts) string {
	if written != "" {
		return written
	}
	return strconv.Itoa(f.UID) + ":" + strconv.Itoa(f.GID)
}
