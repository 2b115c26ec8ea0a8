package supervisor

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/made"
)

// Lines that workshop-init prints on stdout when it is ready, or can't become
// ready.
const (
	readyLine    = "READY"
	failedPrefix = "FAILED"
	notePrefix   = "NOTE " // of a line that `up` shows
)

// maxNotes bounds the kept notes.
const maxNotes = 32

// maxWords bounds the kept bytes of a line, and of stderr.
const maxWords = 4 << 10

// hearing is the output of a container until it is ready.
type hearing struct {
	mu     sync.Mutex
	done   chan struct{} // closed at the line
	ready  bool
	failed bool
	reason string // of FAILED
	notes  []string
	made   string // of MADE, what the container says of itself
	line   []byte
	words  []byte // the end of stderr
	told   func() // called once at READY, with mu not held
}

func newHearing() *hearing { return &hearing{done: make(chan struct{})} }

// stdout looks for the line until it is found.
func (h *hearing) stdout(p []byte) {
	h.mu.Lock()
	for !h.ready && !h.failed && len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		h.add(part)
		if i < 0 {
			break
		}
		p = p[i+1:]
		h.hear(strings.TrimRight(string(h.line), "\r"))
		h.line = h.line[:0]
	}
	ready := h.ready && h.told != nil
	told := h.told
	if h.ready || h.failed {
		h.line, h.told = nil, nil
	}
	h.mu.Unlock()
	if ready {
		told()
	}
}

// add adds to the line, up to maxWords or, of a report, [made.MaxLine].
func (h *hearing) add(p []byte) {
	for _, limit := range []int{maxWords, made.MaxLine} {
		part := p[:min(len(p), max(0, limit-len(h.line)))]
		h.line, p = append(h.line, part...), p[len(part):]
		if !bytes.HasPrefix(h.line, []byte(made.Prefix)) {
			return
		}
	}
}

func (h *hearing) hear(line string) {
	rest, ok := strings.CutPrefix(line, failedPrefix)
	switch {
	case line == readyLine:
		h.ready = true
	case ok && (rest == "" || rest[0] == ' '):
		h.failed, h.reason = true, strings.TrimSpace(rest)
	default:
		if report, ok := strings.CutPrefix(line, made.Prefix); ok {
			h.made = strings.ToValidUTF8(report, "?")
		}
		if note, ok := strings.CutPrefix(line, notePrefix); ok && len(h.notes) < maxNotes {
			h.notes = append(h.notes, strings.ToValidUTF8(note, "?"))
		}
		return
	}
	close(h.done)
}

// stderr keeps the end of the stream.
func (h *hearing) stderr(p []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.words = append(h.words, p[max(0, len(p)-maxWords):]...)
	if over := len(h.words) - maxWords; over > 0 {
		h.words = append(h.words[:0], h.words[over:]...)
	}
}

func (h *hearing) lastWords() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(h.words), "?"))
}

func (h *hearing) noted() (notes []string, made string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.notes), h.made
}

// verdict returns the result so far.
func (h *hearing) verdict() (ready, failed bool, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready, h.failed, strings.ToValidUTF8(h.reason, "?")
}
