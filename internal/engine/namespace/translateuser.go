package namespace

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// user sets the process's user. Room and guard have the ids of the project if the
// caller is root, else the caller's: its user namespace has no others.
func (t *translation) user() error {
	p := &t.out.Process
	if t.role != spec.Worker {
		uid, gid, ok := numeric(t.s.User)
		if !ok {
			return fmt.Errorf("its user %q is not uid:gid in numbers", t.s.User)
		}
		if t.m.rootless {
			uid, gid = uint32(t.m.uid), uint32(t.m.gid)
		}
		if t.role == spec.Guard && uid == 0 {
			return fmt.Errorf("a guard is never root")
		}
		p.UID, p.GID = uid, gid
		return nil
	}
	user := cmp.Or(t.s.User, t.image.user)
	uid, gid, err := t.lookUp(user)
	switch {
	case errors.Is(err, errPending):
		return nil
	case err != nil:
		return fmt.Errorf("user %q: %w", user, err)
	case uid == 0 || gid == 0:
		return &engine.RefusedError{
			Promise: "B4", Reason: fmt.Sprintf("%s would run as root (user %q)", t.name, user),
			Do: "set `user: \"1000:1000\"`, or omit it",
		}
	case t.m.rootless && (int64(uid) != int64(t.m.uid) || int64(gid) != int64(t.m.gid)):
		return &engine.RefusedError{
			Promise: "B4", Reason: fmt.Sprintf("%s would run as %d:%d, but without root the namespace engine has only the caller's user, %d:%d", t.name, uid, gid, t.m.uid, t.m.gid),
			Do: "omit `user:`, run workshop as that user or as root, or use --engine docker",
		}
	}
	p.UID, p.GID = uid, gid
	return nil
}

// errPending means that the answer depends on an image that isn't pulled yet.
var errPending = errors.New("the image is not pulled yet")

// maxAccounts bounds the size of an image's passwd and group files.
const maxAccounts = 1 << 20

// lookUp returns the ids of "uid", "uid:gid", "name" or "name:group". Like Docker it
// resolves names by the image's /etc/passwd and /etc/group. An empty user is root.
func (t *translation) lookUp(user string) (uid, gid uint32, err error) {
	if uid, gid, ok := numeric(user); ok {
		return uid, gid, nil
	}
	if t.image.pending {
		return 0, 0, errPending
	}
	name, group, both := strings.Cut(user, ":")
	var account []string
	if err := t.accounts("etc/passwd", func(f []string) bool {
		if len(f) >= 4 && (f[0] == name || f[2] == name) {
			account = f
		}
		return account == nil
	}); err != nil {
		return 0, 0, err
	}
	switch n, isNumber := id(name); {
	case user == "":
		return 0, 0, nil
	case isNumber:
		uid = n
	case account == nil:
		return 0, 0, fmt.Errorf("its image has no user %q; use a numeric uid and gid", name)
	default:
		if n, isNumber = id(account[2]); !isNumber {
			return 0, 0, fmt.Errorf("its image has the uid %q for %s", account[2], name)
		}
		uid = n
	}
	if !both {
		if account == nil {
			return uid, 0, nil
		}
		gid, ok := id(account[3])
		if !ok {
			return 0, 0, fmt.Errorf("its image has the gid %q for %s", account[3], name)
		}
		return uid, gid, nil
	}
	if gid, ok := id(group); ok {
		return uid, gid, nil
	}
	found := false
	err = t.accounts("etc/group", func(f []string) bool {
		if len(f) >= 3 && f[0] == group {
			gid, found = id(f[2])
		}
		return !found
	})
	if err == nil && !found {
		err = fmt.Errorf("its image has no group %q; use a numeric uid and gid", group)
	}
	return uid, gid, err
}

// accounts calls each for the lines of a file of the image until it returns false.
// Symbolic links are resolved inside the image.
func (t *translation) accounts(name string, each func([]string) bool) error {
	if t.image.dir == "" {
		return nil
	}
	root, err := os.OpenRoot(t.image.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return fmt.Errorf("its image's /%s: %w", name, err)
	}
	f, err := root.Open(name)
	if err != nil {
		return fmt.Errorf("its image's /%s: %w", name, err)
	}
	defer f.Close()
	return readAccounts(f, each)
}

func readAccounts(r io.Reader, each func([]string) bool) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxAccounts))
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" && line[0] != '#' && !each(strings.Split(line, ":")) {
			return nil
		}
	}
	return lines.Err()
}

// numeric parses a numeric "uid:gid".
func numeric(user string) (uid, gid uint32, ok bool) {
	u, g, both := strings.Cut(user, ":")
	uid, okU := id(u)
	gid, okG := id(g)
	return uid, gid, both && okU && okG
}

// id parses one id; systems assign none above 2^31-2.
func id(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || strconv.FormatUint(n, 10) != s || n == 1<<31-1 {
		return 0, false
	}
	return uint32(n), true
}
