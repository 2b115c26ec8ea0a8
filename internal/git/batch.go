package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// batch is a running `git cat-file --batch`: names go in by its standard input, so that
// none is taken for an option.
type batch struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	cancel context.CancelFunc
	err    error
}

func newBatch(ctx context.Context, dir string) (*batch, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, fmt.Errorf("git took longer than %s", Timeout))
	cmd, err := command(ctx, dir, "cat-file", "--batch")
	if err != nil {
		cancel()
		return nil, err
	}
	b := &batch{cmd: cmd, cancel: cancel}
	if b.in, err = cmd.StdinPipe(); err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			b.out, err = bufio.NewReader(out), cmd.Start()
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return b, nil
}

func (b *batch) close() {
	_ = b.in.Close()
	b.cancel()
	_ = b.cmd.Wait()
}

// ask sends one name and reads the answer, a line "OBJECT TYPE SIZE" and the content, of
// at most limit bytes.
func (b *batch) ask(name string, limit int64) (object, kind string, content []byte, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return "", "", nil, b.err
	}
	if _, err := io.WriteString(b.in, name+"\n"); err != nil {
		return "", "", nil, fmt.Errorf("git cat-file: %w", err)
	}
	line, err := b.out.ReadString('\n')
	if err != nil {
		return "", "", nil, fmt.Errorf("git cat-file ended: %w", err)
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return "", "", nil, errMissing
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 || size > limit {
		b.err = fmt.Errorf("an object of %s bytes is not read", clip.Bytes(fields[2], 40)) // its content is in the pipe
		return "", "", nil, b.err
	}
	content = make([]byte, size+1)
	if _, err := io.ReadFull(b.out, content); err != nil {
		return "", "", nil, fmt.Errorf("git cat-file ended: %w", err)
	}
	return fields[0], fields[1], content[:size], nil
}

var errMissing = errors.New("there is no such object")

// objectName is the name of an object: SHA-1 or SHA-256.
var objectName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`) })

// commit returns the commit of a revision.
func (b *batch) commit(revision string) (string, error) {
	if revision == "" || strings.ContainsAny(revision, "\n\r\x00") {
		return "", fmt.Errorf("%q is not a revision", clip.Bytes(revision, 80))
	}
	object, kind, _, err := b.ask(revision+"^{commit}", maxBlob)
	if errors.Is(err, errMissing) || err == nil && kind != "commit" {
		return "", fmt.Errorf("there is no commit %q here", clip.Bytes(revision, 80))
	}
	if err == nil && !objectName().MatchString(object) {
		err = fmt.Errorf("git cat-file named the commit %q", clip.Bytes(object, 80))
	}
	return object, err
}

// blob reads a file's content.
func (b *batch) blob(object string) ([]byte, error) {
	_, kind, content, err := b.ask(object, maxBlob)
	if err == nil && kind != "blob" {
		err = fmt.Errorf("the object %s is a %s", object, clip.Bytes(kind, 20))
	}
	return content, err
}
