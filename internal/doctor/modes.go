package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// Private judges files and directories that decide what runs: whoever may write to one
// does. Those that don't exist are left out.
func Private(group string, uid int, paths ...string) []Finding {
	var out []Finding
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case path == "" || errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			out = append(out, Finding{group, "modes", Error, err.Error(), "see who owns it: `ls -ld " + shellquote.Quote(path) + "`"})
			continue
		}
		if f, ok := private(path, info, uid); !ok {
			f.Group = group
			out = append(out, f)
		}
	}
	return out
}

func private(path string, info fs.FileInfo, uid int) (Finding, bool) {
	owner, _, known := fileowner.Of(info)
	f := Finding{Name: "modes", Level: Error}
	switch {
	case !known:
		return f, true
	case owner != uid && owner != 0:
		f.Text = fmt.Sprintf("%s belongs to uid %d: its owner decides what runs as you", path, owner)
		f.Do = fmt.Sprintf("take it, if you trust what is in it: `sudo chown %d %s`", uid, shellquote.Quote(path))
	case info.Mode().Perm()&0o022 != 0:
		f.Text = fmt.Sprintf("%s can be written by others (mode %04o): they decide what runs as you", path, info.Mode().Perm())
		f.Do = "take that from them: `chmod go-w " + shellquote.Quote(path) + "`"
	default:
		return f, true
	}
	return f, false
}
