// Package logfile keeps the output of containers: per service a directory of
// numbered files of JSON lines, of which the oldest are removed. The supervisor
// writes them, the engine on the host reads them. Files are only appended to and
// never renamed, so that a reader can follow without notifications.
//
// A line is one object:
//
//	{"time":"2026-11-22T06:00:00.123456789Z","stream":"stdout","text":"one line\n"}
//
// A line of the container longer than [MaxText] is split, as Docker does; only the
// last piece ends in "\n". Invalid UTF-8 becomes U+FFFD.
package logfile

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxText bounds the text of one entry, in bytes, as Docker's 16 KiB.
const MaxText = 16 << 10

// maxLine bounds a line of a file: every byte of the text may become \u00XX.
const maxLine = 6*MaxText + 256

// The streams.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// suffix of a log file, after its number, which begins with 1.
const suffix = ".log"

// Entry is one line, or a piece of one.
type Entry struct {
	Time   time.Time `json:"time"` // UTC, when the output was read
	Stream string    `json:"stream"`
	Text   string    `json:"text"`
}

// numbers lists the files of a log, the oldest first.
func numbers(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, name := range names {
		text, ok := strings.CutSuffix(name, suffix)
		if n, err := strconv.Atoi(text); ok && err == nil && n > 0 && strconv.Itoa(n) == text {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, nil
}

func fileName(dir string, n int) string { return dir + "/" + strconv.Itoa(n) + suffix }
