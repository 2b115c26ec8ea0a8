package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/go-units"
)

// FileSystem is what a directory is on.
type FileSystem struct {
	Name     string // what the directory is for: "state"
	Dir      string
	Variable string // that moves it; empty: none does
	Type     string // "ext4"; empty: unknown
	Device   uint64
	Free     int64 // bytes that the caller may use; negative: unknown
	Inodes   int64 // that are free; negative: there is no such limit
	ReadOnly bool
	NoExec   bool
	Execs    bool // programs are executed from it
}

// remote are file systems on which locks and unix sockets don't work, or not between
// all who look, and on which root may be nobody.
var remote = []string{"nfs", "cifs", "smb", "9p", "ceph", "fuse", "afs", "vboxsf", "virtiofs"}

const (
	lowSpace = 1 << 30   // bytes: an image, a tool's packages
	noSpace  = 100 << 20 // bytes: workshop-init and logs
	noInodes = 1000
)

// finding says what is wrong with a file system, the worst of it.
func (fs FileSystem) finding() Finding {
	f := Finding{Group: Disk, Name: fs.Name, Level: OK, Text: fmt.Sprintf("%s: %s free", fs.Dir, freeText(fs.Free))}
	if fs.Type != "" {
		f.Text += " on " + fs.Type
	}
	move := ""
	if fs.Variable != "" {
		move = "move it to another disk: `export " + fs.Variable + "=DIRECTORY`"
	}
	bad := func(level Level, text, do string) Finding {
		f.Level, f.Text, f.Do = level, fs.Dir+text, do
		return f
	}
	switch {
	case fs.ReadOnly:
		return bad(Error, " is on a read-only file system", move)
	case fs.NoExec && fs.Execs:
		return bad(Error, " is on a noexec file system, and programs are executed from it", move)
	case fs.Free >= 0 && fs.Free < noSpace:
		return bad(Error, " is full: "+freeText(fs.Free)+" left", "see what is large: `du -xh "+fs.Dir+" | sort -h | tail`")
	case fs.Inodes >= 0 && fs.Inodes < noInodes:
		return bad(Error, fmt.Sprintf(" has room for %d files only (inodes)", fs.Inodes), "see where many are: `du -x --inodes "+fs.Dir+" | sort -n | tail`")
	case slices.Contains(remote, fs.Type):
		return bad(Warning, " is on "+fs.Type+", where locks and unix sockets may not work", move)
	case fs.Free >= 0 && fs.Free < lowSpace:
		return bad(Warning, " has "+freeText(fs.Free)+" left, which an image may need", "see what is large: `du -xh "+fs.Dir+" | sort -h | tail`")
	}
	return f
}

func freeText(n int64) string {
	if n < 0 {
		return "an unknown amount"
	}
	return units.BytesSize(float64(n))
}

// Disks judges file systems. What is wrong with one is said for the first directory that
// is on it.
func Disks(list []FileSystem) []Finding {
	var out []Finding
	said := map[string]bool{}
	for _, fs := range list {
		f := fs.finding()
		what := fmt.Sprint(fs.Device, strings.TrimPrefix(f.Text, fs.Dir))
		if f.Level != OK && said[what] {
			continue
		}
		said[what] = true
		out = append(out, f)
	}
	return out
}
