package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/tool"
)

// maxLines of those that are told.
const maxLines = 100

// Edit is edit_file.
func Edit(ctx context.Context, a tool.EditFileArgs) (*tool.EditFileResult, error) {
	var result *tool.EditFileResult
	err := edit(ctx, a, func(t *target, edited []byte, lines []int, n int) error {
		if err := t.unchanged(); err != nil {
			return err
		}
		note, err := t.put(ctx, edited, false)
		result = &tool.EditFileResult{Path: a.Path, Replacements: n, Lines: lines, Note: note}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// CheckEdit returns why [Edit] would fail, as far as that shows without changing
// anything: nil is no promise.
func CheckEdit(ctx context.Context, a tool.EditFileArgs) error {
	return edit(ctx, a, func(*target, []byte, []int, int) error { return nil })
}

// edit finds what is to be replaced, and hands on the new content, the lines of
// the replacements, and how many they are.
func edit(ctx context.Context, a tool.EditFileArgs, do func(t *target, edited []byte, lines []int, n int) error) error {
	switch {
	case a.OldString == "":
		return errors.New("old_string is empty: give the text to replace; write_file writes a whole file")
	case a.OldString == a.NewString:
		return errors.New("old_string and new_string are the same: nothing would change")
	}
	unlock, err := lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	t, err := resolve(a.Path, noDirs)
	if err != nil {
		return err
	}
	defer t.close()
	if t.old < 0 {
		return explain(a.Path, unix.ENOENT)
	}
	if err := t.writable(); err != nil { // else the model looks for another old_string first
		return explain(a.Path, err)
	}
	old, err := t.read(ctx)
	if err != nil {
		return explain(a.Path, err)
	}
	edited, lines, n, err := replaced(a, old)
	if err != nil {
		return err
	}
	return explain(a.Path, do(t, edited, lines, n))
}

func (t *target) read(ctx context.Context) ([]byte, error) {
	if t.st.Size > tool.MaxEditFile {
		return nil, fmt.Errorf("the file has %d bytes, at most %d can be edited", t.st.Size, tool.MaxEditFile)
	}
	f, err := reopen(t.old, t.name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var b bytes.Buffer
	b.Grow(int(t.st.Size) + bytes.MinRead)
	if _, err := b.ReadFrom(&source{ctx, io.LimitReader(f, tool.MaxEditFile+1)}); err != nil {
		return nil, err
	}
	if b.Len() > tool.MaxEditFile {
		return nil, fmt.Errorf("the file has grown to more than %d bytes", tool.MaxEditFile)
	}
	return b.Bytes(), nil
}

// unchanged looks whether somebody else wrote the file since it was read. What
// happens between this and the rename isn't seen.
func (t *target) unchanged() error {
	var now unix.Stat_t
	var err error
	if t.inPlace {
		err = unix.Fstat(t.old, &now)
	} else {
		err = unix.Fstatat(int(t.dir.Fd()), t.name, &now, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && now.Ino == t.st.Ino && now.Dev == t.st.Dev && now.Size == t.st.Size && now.Mtim == t.st.Mtim {
		return nil
	}
	return errors.New("the file was changed by another process, and nothing was written: read it again")
}

// replaced gives the new content, where the replacements begin, and how many.
func replaced(a tool.EditFileArgs, old []byte) (edited []byte, lines []int, n int, err error) {
	from, to := []byte(a.OldString), []byte(a.NewString)
	step := 1 // aa occurs twice in aaa: which one was meant?
	if a.ReplaceAll {
		step = len(from)
	}
	line, counted, last := 1, 0, 0
	for at := 0; ; {
		i := bytes.Index(old[at:], from)
		if i < 0 {
			break
		}
		at += i
		if n++; n > maxLines && !a.ReplaceAll {
			break // it isn't unique, and long texts that overlap cost their square
		}
		if len(lines) < maxLines {
			line += bytes.Count(old[counted:at], []byte("\n"))
			counted = at
			lines = append(lines, line)
		}
		last = at
		at += step
	}
	switch {
	case n == 0:
		return nil, nil, 0, missing(a, old)
	case a.ReplaceAll:
		if size := len(old) + n*(len(to)-len(from)); size > tool.MaxWriteBytes {
			return nil, nil, 0, fmt.Errorf("%s would have %d bytes, at most %d can be written", show(a.Path), size, tool.MaxWriteBytes)
		}
		return bytes.ReplaceAll(old, from, to), lines, n, nil
	case n > 1:
		times := fmt.Sprint(n)
		if n > maxLines {
			times = fmt.Sprintf("more than %d", maxLines)
		}
		return nil, nil, 0, fmt.Errorf("old_string occurs %s times in %s (%s): add surrounding text to make it unique, or set replace_all", times, show(a.Path), lineList(lines))
	}
	edited = make([]byte, 0, len(old)-len(from)+len(to))
	edited = append(append(append(edited, old[:last]...), to...), old[last+len(from):]...)
	if len(edited) > tool.MaxWriteBytes {
		return nil, nil, 0, fmt.Errorf("%s would have %d bytes, at most %d can be written", show(a.Path), len(edited), tool.MaxWriteBytes)
	}
	return edited, lines, 1, nil
}

// lineList tells the first few lines.
func lineList(lines []int) string {
	const few = 10
	if lines = slices.Compact(lines); len(lines) == 1 {
		return fmt.Sprintf("all in line %d", lines[0])
	}
	var b strings.Builder
	b.WriteString("lines ")
	for i, n := range lines {
		if i == few {
			b.WriteString(" …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// missing says that the text isn't there, and what almost is.
func missing(a tool.EditFileArgs, old []byte) error {
	path := show(a.Path)
	if crlf := bytes.Contains(old, []byte("\r\n")); crlf || strings.Contains(a.OldString, "\r\n") {
		if bytes.Contains(bytes.ReplaceAll(old, []byte("\r\n"), []byte("\n")), []byte(strings.ReplaceAll(a.OldString, "\r\n", "\n"))) {
			if crlf {
				return fmt.Errorf("old_string is not in %s, but with other line endings it is: lines of the file end with \\r\\n; write them so in old_string and new_string", path)
			}
			return fmt.Errorf("old_string is not in %s, but with other line endings it is: lines of the file end with \\n alone; write them so in old_string and new_string", path)
		}
	}
	want := strings.Trim(squeeze(a.OldString), "\n")
	if want != "" {
		have := squeeze(string(old))
		if i := strings.Index(have, want); i >= 0 {
			return fmt.Errorf("old_string is not in %s, but with other white space it is at line %d: read that line and give the exact text", path, 1+strings.Count(have[:i], "\n"))
		}
	}
	return fmt.Errorf("old_string is not in %s: read the file again and give the exact text", path)
}

// squeeze makes texts equal that differ only in the blanks and tabs of a line.
func squeeze(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for line := range strings.SplitSeq(s, "\n") {
		for i, word := range strings.Fields(line) {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(word)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
