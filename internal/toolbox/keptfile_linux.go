package toolbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/tool"
)

// scratchDir is the worker's own directory for what it needs for a while.
var scratchDir = "/scratch" // a variable for tests

const (
	// outputDir is the directory in scratch with a directory for each session.
	outputDir = ".output"
	// minOutputFile is the smallest file that is worth having.
	minOutputFile = 64 << 10
)

// outputs are files with the outputs that are longer than a result, in the
// worker's scratch directory, until the session ends. The worker's programs can
// change or remove them, so nothing here reads them as anything but bytes, and
// the host never opens them. The oldest one is removed for a new one.
type outputs struct {
	mu    sync.Mutex
	dir   *os.File // of the session; nil before the first file
	up    *os.File // the directory above it
	name  string   // of dir in up
	path  string   // of dir, as the worker has it
	most  int64    // bytes of all files
	used  int64
	files []*outputFile // the oldest first
	last  int           // number of the last file
}

// outputFile has the whole output of a stream or, of a longer one, its first and
// its last half bytes.
type outputFile struct {
	path, name string
	file       *os.File // nil once it is closed
	half       int64
	total      int64 // bytes of the stream
	size       int64 // bytes of the file, or what it may become
	err        error // why the file was removed
}

// keepsOutput reports whether the worker has a tool to read the files with. In
// process mode a program hasn't their paths, which are the worker's.
func (s *session) keepsOutput() bool {
	return slices.ContainsFunc(s.grant.Tools, func(o tool.Offer) bool {
		return o.Name == tool.ReadFile || o.Name == tool.Shell && o.Limit == "" && s.view == nil
	})
}

// create makes the file of a stream.
func (o *outputs) create(s *session, stream string) (*outputFile, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dir == nil {
		if err := o.open(s); err != nil {
			return nil, fmt.Errorf("%s: %s", scratchDir, errorText(err))
		}
	}
	size := min(tool.MaxOutputFile, o.most/4)
	if size < minOutputFile {
		return nil, fmt.Errorf("%s or the worker's memory is too small for it", scratchDir)
	}
	for len(o.files) >= tool.MaxOutputFiles || o.used+size > o.most {
		oldest := slices.IndexFunc(o.files, func(f *outputFile) bool { return f.file == nil })
		if oldest < 0 {
			return nil, errors.New("too many commands with long outputs at the same time")
		}
		o.remove(o.files[oldest])
	}
	o.last++
	f := &outputFile{name: strconv.Itoa(o.last) + "." + stream, half: size / 2, size: size}
	f.path = o.path + "/" + f.name
	fd, err := unix.Openat(int(o.dir.Fd()), f.name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", f.path, errorText(err))
	}
	f.file = os.NewFile(uintptr(fd), f.path)
	o.files, o.used = append(o.files, f), o.used+size
	return f, nil
}

// open makes the session's directory. It follows no symbolic link below scratch:
// the worker's programs could make one.
func (o *outputs) open(s *session) (err error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	scratch, err := s.directory(scratchDir)
	if err != nil {
		return err
	}
	defer scratch.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(scratch.Fd()), &fs); err != nil {
		return err
	}
	o.most = min(tool.MaxOutputFileBytes, int64(fs.Blocks)*fs.Bsize/4)
	if memory := memoryLimit(); s.view == nil && memory > 0 { // a tmpfs counts
		o.most = min(o.most, memory/16)
	}
	up, err := makeDir(int(scratch.Fd()), outputDir, flags)
	if err != nil {
		return err
	}
	sweep(up)
	dir, err := makeDir(int(up.Fd()), s.owner, flags)
	if err != nil {
		up.Close()
		return err
	}
	o.up, o.dir, o.name, o.path = up, dir, s.owner, scratchDir+"/"+outputDir+"/"+s.owner
	return nil
}

func makeDir(at int, name string, flags int) (*os.File, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && err != unix.EEXIST {
		return nil, err
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|flags, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// sweep removes the directories of sessions that were killed.
func sweep(up *os.File) {
	const most = 64 // a worker's program could make any number
	names, _ := up.Readdirnames(most)
	for _, name := range names {
		pid, start, ok := strings.Cut(name, ".")
		if !ok {
			continue
		}
		if i, ok := reaper.Look(pid); ok && strconv.FormatUint(i.Start, 10) == start {
			continue
		}
		if fd, err := unix.Openat(int(up.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
			dir := os.NewFile(uintptr(fd), name)
			removeFiles(dir)
			dir.Close()
			_ = unix.Unlinkat(int(up.Fd()), name, unix.AT_REMOVEDIR)
		}
	}
}

func removeFiles(dir *os.File) {
	names, _ := dir.Readdirnames(2 * tool.MaxOutputFiles)
	for _, name := range names {
		_ = unix.Unlinkat(int(dir.Fd()), name, 0)
	}
}

// memoryLimit is that of the worker, in bytes; 0: none is known.
func memoryLimit() int64 {
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(file); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64) // max: none
			return n
		}
	}
	return 0
}

// remove removes a file; o.mu is held.
func (o *outputs) remove(f *outputFile) {
	_ = unix.Unlinkat(int(o.dir.Fd()), f.name, 0)
	o.used -= f.size
	o.files = slices.DeleteFunc(o.files, func(g *outputFile) bool { return g == f })
}

// end removes all files, and the directory.
func (o *outputs) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dir == nil {
		return
	}
	removeFiles(o.dir)
	_ = unix.Unlinkat(int(o.up.Fd()), o.name, unix.AT_REMOVEDIR)
	o.dir.Close()
	o.up.Close()
	o.dir = nil
}

// write adds to the file. The last half is a ring until close.
func (f *outputFile) write(b []byte) {
	for len(b) > 0 && f.err == nil {
		at, room := f.total, f.half-f.total
		if room <= 0 {
			at = f.half + (f.total-f.half)%f.half
			room = 2*f.half - at
		}
		n := int(min(room, int64(len(b))))
		if _, f.err = f.file.WriteAt(b[:n], at); f.err == nil {
			f.total += int64(n)
			b = b[n:]
		}
	}
}

// unroll puts the ring in order, after a line that says what is missing.
func (f *outputFile) unroll() error {
	if f.total <= 2*f.half {
		return nil
	}
	ring := make([]byte, f.half)
	if _, err := f.file.ReadAt(ring, f.half); err != nil {
		return err
	}
	from := (f.total - f.half) % f.half
	text := fmt.Appendf(nil, "\n[… %d bytes left out …]\n", f.total-2*f.half)
	_, err := f.file.WriteAt(slices.Concat(text, ring[from:], ring[:from]), f.half)
	return err
}

// close ends the writing, and reports why the file isn't there.
func (o *outputs) close(f *outputFile) error {
	if f.err == nil {
		f.err = f.unroll()
	}
	f.file.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	f.file = nil
	if f.err != nil {
		o.remove(f)
		return fmt.Errorf("%s: %s", f.path, errorText(f.err))
	}
	size := min(f.total, 2*f.half)
	o.used += size - f.size
	f.size = size
	return nil
}

// spill is the way of one stream to its file.
type spill struct {
	s      *session
	stream string
	file   *outputFile
	err    error // why there is no file
}

// add gets the whole stream (kept.rest).
func (p *spill) add(b []byte) {
	if p.file == nil && p.err == nil {
		p.file, p.err = p.s.outputs.create(p.s, p.stream)
	}
	if p.file != nil {
		p.file.write(b)
	}
}

// close ends the writing, and says in the output where the file is or, in a note,
// why there is none.
func (p *spill) close(o *tool.Output) (note string) {
	if p.file != nil {
		p.err = p.s.outputs.close(p.file)
	}
	switch {
	case p.err != nil:
		return fmt.Sprintf("the rest of %s was not kept: %v", p.stream, p.err)
	case p.file == nil:
		return ""
	}
	o.File = p.file.path
	if half := p.file.half; p.file.total > 2*half {
		o.FileOmitted = p.file.total - 2*half
	}
	return ""
}

// errNoResult is why a file is removed of a call that was cancelled.
var errNoResult = errors.New("the call has no result")

// drop removes the file of a call that has no result.
func (p *spill) drop() {
	if p.file != nil && p.file.file != nil {
		p.file.err = errNoResult
		_ = p.s.outputs.close(p.file)
	}
}
