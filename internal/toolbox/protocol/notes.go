package protocol

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// FileMemory are a worker's directories with file systems in its memory.
var FileMemory = []string{"/tmp", "/scratch", "/home/worker", "/dev/shm"}

// FullNote says that one of them is full, with its size in bytes.
func FullNote(dir string, size uint64) string { return dir + " is full (" + mega(size) + ")" }

// HeldNote says how many bytes of a worker's memory the files in one of them are.
func HeldNote(dir string, size uint64) string { return mega(size) + " are files in " + dir }

func mega(size uint64) string { return strconv.FormatUint(size>>20, 10) + "M" }

const (
	lefts = " of the command still run in the background; they end with the session"
	left  = " of the command still runs in the background; it ends with the session"
)

// LeftNote says how many processes of a command still run.
func LeftNote(n int) string {
	if n == 1 {
		return "1 process" + left
	}
	return strconv.Itoa(n) + " processes" + lefts
}

// AfterSession is a note of a command for who reads it once the session has ended.
func AfterSession(note string) string {
	return strings.NewReplacer(left, " of the command that ran in the background has ended with this call", lefts, " of the command that ran in the background have ended with this call").Replace(note)
}

var noteTexts = sync.OnceValue(func() *regexp.Regexp {
	dirs := "(" + strings.Join(FileMemory, "|") + ")"
	return regexp.MustCompile(`\b\d+M are files in ` + dirs + `\b|` + dirs + ` is full \(\d+M\)`)
})

// Notes finds in a worker's note of a command's end which file systems are full, as
// directories, and what its files hold, as [HeldNote] has it. Nothing else of the text is in them.
func Notes(note string) (full, held []string) {
	for _, m := range noteTexts().FindAllStringSubmatch(note, 2*len(FileMemory)) {
		if m[2] != "" {
			full = append(full, m[2])
		} else {
			held = append(held, m[0])
		}
	}
	return full, held
}
