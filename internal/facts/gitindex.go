package facts

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// Bounds of what is read of indexes (B60). One of 500,000 files has some 50 MB.
const (
	maxIndex      = 64 << 20  // bytes of one,
	maxIndexAll   = 128 << 20 // and of all
	maxIndexNames = 4         // bytes of names that are looked at, for each byte of an index
)

// index says of a git directory's index what git would write beside the worktree
// by it: git checks a path before it adds it, and not when it reads it again. An
// index isn't hashed, as every `git add` changes it.
func (w *watcher) index(gitDir string) {
	hash := objectHash(gitDir)
	read := func(name string) (x gitIndex, found bool) {
		full := filepath.Join(gitDir, name)
		data, err := boundedfile.Read(full, min(maxIndex, maxIndexAll-w.git.indexes))
		if errors.Is(err, fs.ErrNotExist) {
			return x, false
		}
		if err == nil {
			w.git.indexes += int64(len(data))
			x, err = parseIndex(data, hash)
		}
		switch {
		case err != nil:
			w.put(full, unchecked+boundedfile.Reason(err))
		case x.refused != "":
			w.put(full, fmt.Sprintf("%sits entry %q is none that git adds, but git checkout writes it", unchecked, ClipPath(x.refused)))
		}
		return x, err == nil
	}
	x, ok := read("index")
	if !ok || x.base == "" {
		return
	}
	base := "sharedindex." + x.base
	if shared, ok := read(base); ok && shared.base != "" {
		w.put(filepath.Join(gitDir, base), unchecked+errIndex("it shares another").Error())
	}
}

// objectHash is the length of the names of objects in a git directory.
func objectHash(dir string) int {
	if common, err := boundedfile.Read(filepath.Join(dir, "commondir"), maxGitFile); err == nil {
		dir = pathFrom(dir, strings.TrimRight(string(common), "\r\n"))
	}
	hash := 20
	if text, err := readConfig(filepath.Join(dir, "config")); err == nil {
		for name, value := range gitConfig(text) {
			if name == "objectformat" {
				if hash = 20; value == "sha256" {
					hash = 32
				}
			}
		}
	}
	return hash
}

// gitIndex is what counts of an index.
type gitIndex struct {
	refused string // the first path that git doesn't add
	base    string // of a split index: the hash that names the shared one
}

// errIndex is why an index can't be told.
type errIndex string

func (e errIndex) Error() string { return "this index can't be read: " + string(e) }

// Modes of entries.
const (
	modeType    = 0o170000
	modeDir     = 0o040000
	modeSymlink = 0o120000
)

// parseIndex reads an index of git (gitformat-index(5)), versions 2 to 4, whose
// names of objects have hash bytes. What two readers could take for different
// entries is an error: git begins to read a large one at several places at once,
// which an extension tells it (IEOT), and finds extensions by another (EOIE).
func parseIndex(data []byte, hash int) (x gitIndex, err error) {
	const head, stat = 12, 40
	if len(data) < head+hash || string(data[:4]) != "DIRC" {
		return x, errIndex("it doesn't begin as one")
	}
	version, entries := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return x, errIndex(fmt.Sprintf("version %d, want 2 to 4", version))
	}
	end := len(data) - hash // a checksum is last
	at := head
	var name []byte
	var begins []int // of entries
	var whole []bool // whether an entry repeats nothing of the one before
	looked := 0
	unnamed := false // an entry of a split index may have the name of the shared one's
	for range entries {
		if at+stat+hash+2 > end {
			return x, errIndex("it ends in an entry")
		}
		begins = append(begins, at)
		mode := binary.BigEndian.Uint32(data[at+24:])
		flags := binary.BigEndian.Uint16(data[at+stat+hash:])
		text := at + stat + hash + 2
		if flags&0x4000 != 0 {
			text += 2
		}
		kept := 0 // of the name before
		if version == 4 {
			strip, n := varint(data[min(text, end):end])
			if n == 0 || strip > len(name) {
				return x, errIndex("a name repeats more than there is")
			}
			kept, text = len(name)-strip, text+n
		}
		size := bytes.IndexByte(data[min(text, end):end], 0)
		if size < 0 {
			return x, errIndex("a name doesn't end")
		}
		name = append(name[:kept], data[text:text+size]...)
		from := bytes.LastIndexByte(name[:kept], '/') + 1 // the rest was looked at
		if looked += len(name) - from; looked > maxIndexNames*len(data) {
			return x, errIndex("its names repeat too much")
		}
		if length := int(flags & 0xfff); length != min(len(name), 0xfff) {
			return x, errIndex("a name has not the length that is told")
		}
		whole = append(whole, kept == 0)
		if at = text + size + 1; version < 4 {
			at = begins[len(begins)-1] + (text+size-begins[len(begins)-1]+8)&^7
		}
		if unnamed = unnamed || len(name) == 0; len(name) > 0 && x.refused == "" && refusedPath(string(name[from:]), mode) {
			x.refused = string(name)
		}
	}
	entriesEnd, ends := at, false
	for at < end {
		if at+8 > end || int64(binary.BigEndian.Uint32(data[at+4:])) > int64(end-at-8) {
			return x, errIndex("an extension is longer than the file")
		}
		kind, body := string(data[at:at+4]), data[at+8:][:binary.BigEndian.Uint32(data[at+4:])]
		at += 8 + len(body)
		switch kind {
		case "link":
			if x.base != "" || len(body) < hash {
				return x, errIndex("what it shares isn't told")
			}
			if bytes.ContainsFunc(body[:hash], func(r rune) bool { return r != 0 }) {
				x.base = hex.EncodeToString(body[:hash])
			}
		case "EOIE":
			if len(body) != 4+hash || int64(binary.BigEndian.Uint32(body)) != int64(entriesEnd) || at != end {
				return x, errIndex("it ends elsewhere by what it says")
			}
			ends = true
		case "IEOT":
			if !blocks(body, begins, whole, version) {
				return x, errIndex("its blocks are not those of its entries")
			}
		}
	}
	if last := end - 12 - hash; !ends && last > 0 && string(data[last:last+4]) == "EOIE" { // git looks for it there
		return x, errIndex("it ends elsewhere by what it says")
	}
	if at != end {
		return x, errIndex("an entry is longer than the file")
	}
	if unnamed && x.base == "" {
		return x, errIndex("an entry has no name")
	}
	return x, nil
}

// blocks reports whether the table of a large index has blocks that begin where
// entries do, one after the other, each with a name that is whole.
func blocks(table []byte, begins []int, whole []bool, version uint32) bool {
	if len(table) < 4 || len(table)%8 != 4 || binary.BigEndian.Uint32(table) != 1 {
		return false
	}
	first := 0
	for block := range slices.Chunk(table[4:], 8) {
		offset, n := binary.BigEndian.Uint32(block), binary.BigEndian.Uint32(block[4:])
		if first >= len(begins) || int64(offset) != int64(begins[first]) || version == 4 && !whole[first] || int64(n) > int64(len(begins)-first) {
			return false
		}
		first += int(n)
	}
	return first == len(begins)
}

// varint reads a number as git writes it, and how many bytes it has; 0: it is none.
func varint(data []byte) (value, size int) {
	for size < len(data) && size < 4 { // no name has more than 2^28 bytes
		c := data[size]
		size++
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, size
		}
		value++
	}
	return 0, 0
}

// refusedPath reports whether git refuses to add a path (verify_path of its
// read-cache.c), on any system: one that leads out of the worktree, or into what
// some file system takes for .git.
func refusedPath(path string, mode uint32) bool {
	if mode&modeType == modeDir { // a directory that isn't checked out
		path = strings.TrimSuffix(path, "/")
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" {
			return true
		}
		for part := range strings.SplitSeq(part, `\`) {
			if part == "." || part == ".." || gitName(part) == ".git" || gitName(part) == "git~1" ||
				mode&modeType == modeSymlink && gitName(part) == ".gitmodules" {
				return true
			}
		}
	}
	return false
}

// gitName is a name as file systems may take it: without letters that nobody
// sees (HFS+), and what NTFS leaves out at the end, in lower case.
func gitName(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, name)
	return strings.ToLower(strings.TrimRight(name, ". "))
}
