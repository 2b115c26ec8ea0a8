package compose

import (
	"slices"
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"
)

// Files that give the worker's uid a name, below the runtime directory and in
// run/. Where workers have several users, each further one has files of its
// own.
const (
	passwdFile = "passwd"
	groupFile  = "group"
)

// IdentityFiles returns the passwd and group files of a project's workers, by
// path below the runtime directory. Programs such as git and ssh refuse to
// work for a uid without a name. Among them are the files that tell git where a
// linked worktree is in its worker.
func IdentityFiles(c *Compiled, f Facts) []File {
	var files []File
	for _, user := range users(c, &f) {
		uid, gid, ok := ids(user)
		if !ok {
			continue // a name: the image knows it
		}
		passwd, group := identityNames(user, &f)
		u, g := strconv.Itoa(uid), strconv.Itoa(gid)
		files = append(files,
			File{Path: passwd, Mode: 0o644, Data: []byte(workerAccount + ":x:" + u + ":" + g + "::" + homeDir + ":/bin/sh\n")},
			File{Path: group, Mode: 0o644, Data: []byte(workerAccount + ":x:" + g + ":\n")})
	}
	return append(files, backFiles(c, &f)...)
}

// identityNames are the names of the files of one user.
func identityNames(user string, f *Facts) (passwd, group string) {
	if user == userOf("", f) {
		return passwdFile, groupFile
	}
	uid, gid, _ := ids(user)
	suffix := "-" + strconv.Itoa(uid) + "-" + strconv.Itoa(gid)
	return passwdFile + suffix, groupFile + suffix
}

// identityMounts bind the files over the image's.
func identityMounts(dir, user string, f *Facts) []types.ServiceVolumeConfig {
	if _, _, ok := ids(user); !ok {
		return nil
	}
	passwd, group := identityNames(user, f)
	return []types.ServiceVolumeConfig{
		bind(dir+"/"+passwd, "/etc/passwd", true),
		bind(dir+"/"+group, "/etc/group", true),
	}
}

// users lists the users of all workers, each once, sorted.
func users(c *Compiled, f *Facts) []string {
	var all []string
	for name, role := range c.Roles {
		if role == RoleWorker {
			s := c.Project.Services[name]
			all = append(all, userOf(s.User, f))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
