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

// Bounds of reading indexes (B60). One of 500,000 files has some 50 MB.
const (
	maxIndex      = 64 << 20  // bytes of one,
	maxIndexAll   = 128 << 20 // and of all
	maxIndexNames = 4         // bytes of names that are checked, per byte of an index
)

// index records paths of a git directory's index that git would write outside the
// worktree: git checks a path when it adds it, but not when it reads it again. An
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

// objectHash returns the length in bytes of object names in a git directory.
func objectHash(dir string) int {
	if common, err := boundedfile.Read(filepath.Join(dir, "commondir"), maxGitFile); err == nil {
		dir = pathFrom(dir, strings.TrimRight(string(common), "\r\n"))
	}
	hash := 20
	if text, err := readConfig(filepath.Join(dir, "config")); err == nil {
		for key, value := range gitConfig(text) {
			if nameOf(key) == "objectformat" {
				if hash = 20; value == "sha256" {
					hash = 32
				}
			}
		}
	}
	return hash
}

// gitIndex is the relevant content of an index.
type gitIndex struct {
	refused string // the first path that git doesn't add
	base    string // of a split index: the hash that names the shared one
}

// errIndex is why an index can't be parsed.
type errIndex string

func (e errIndex) Error() string { return "this index can't be read: " + string(e) }

// Modes of entries.
const (
	modeType    = 0o170000
	modeDir     = 0o040000
	modeSymlink = 0o120000
)

// parseIndex parses a git index (gitformat-index(5)) of versions 2 to 4, whose object
// names have hash bytes. An index that two readers could read differently is an
// error: git reads a large one concurrently from offsets in an extension (IEOT), and
// finds extensions by another (EOIE).
func parseIndex(data []byte, hash int) (x gitIndex, err error) {
	const head, stat = 12, 40
	if len(data) < head+hash || string(data[:4]) != "DIRC" {
		return x, errIndex("the signature is wrong")
	}
	version, entries := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 {
		return x, errIndex(fmt.Sprintf("version %d, want 2 to 4", version))
	}
	end := len(data) - hash // before the checksum
	at := head
	var name []byte
	var begins []int // offsets of entries
	var whole []bool // whether an entry shares no prefix with the previous one
	looked := 0
	unnamed := false // an entry of a split index may take its name from the shared index
	for range entries {
		if at+stat+hash+2 > end {
			return x, errIndex("truncated in an entry")
		}
		begins = append(begins, at)
		mode := binary.BigEndian.Uint32(data[at+24:])
		flags := binary.BigEndian.Uint16(data[at+stat+hash:])
		text := at + stat + hash + 2
		if flags&0x4000 != 0 {
			text += 2
		}
		kept := 0 // bytes of the previous name
		if version == 4 {
			strip, n := varint(data[min(text, end):end])
			if n == 0 || strip > len(name) {
				return x, errIndex("a name shares a longer prefix than the previous name has")
			}
			kept, text = len(name)-strip, text+n
		}
		size := bytes.IndexByte(data[min(text, end):end], 0)
		if size < 0 {
			return x, errIndex("a name isn't terminated")
		}
		name = append(name[:kept], data[text:text+size]...)
		from := bytes.LastIndexByte(name[:kept], '/') + 1 // the part before was checked
		if looked += len(name) - from; looked > maxIndexNames*len(data) {
			return x, errIndex("its names share too long prefixes")
		}
		if length := int(flags & 0xfff); length != min(len(name), 0xfff) {
			return x, errIndex("a name differs from its length")
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
				return x, errIndex("it doesn't name exactly one shared index")
			}
			if bytes.ContainsFunc(body[:hash], func(r rune) bool { return r != 0 }) {
				x.base = hex.EncodeToString(body[:hash])
			}
		case "EOIE":
			if len(body) != 4+hash || int64(binary.BigEndian.Uint32(body)) != int64(entriesEnd) || at != end {
				return x, errIndex("the end-of-index extension is wrong")
			}
			ends = true
		case "IEOT":
			if !blocks(body, begins, whole, version) {
				return x, errIndex("the blocks of its offset table don't match its entries")
			}
		}
	}
	if last := end - 12 - hash; !ends && last > 0 && string(data[last:last+4]) == "EOIE" { // where git looks for it
		return x, errIndex("the end-of-index extension is wrong")
	}
	if at != end {
		return x, errIndex("an entry is longer than the file")
	}
	if unnamed && x.base == "" {
		return x, errIndex("an entry has no name")
	}
	return x, nil
}

// blocks reports whether the offset table of a large index has contiguous blocks that
// begin at entries with a full name.
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

// varint parses a number in git's encoding and returns its size in bytes, 0 if it
// isn't valid.
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

// refusedPath reports whether git refuses to add a path on any system (verify_path in
// its read-cache.c): one that leads out of the worktree, or into a name that some file
// system treats as .git.
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

// gitName returns a name as file systems may treat it: in lower case, without
// characters ignored by HFS+, and without trailing ones ignored by NTFS.
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
