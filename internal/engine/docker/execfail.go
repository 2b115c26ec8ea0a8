package docker

import (
	"bytes"
	"io"
)

// runtimeFailed is the beginning of the engine's message, in the command's output,
// that the command couldn't be started.
const runtimeFailed = "OCI runtime exec failed"

// heldWriter passes everything on, but holds output that begins like the engine's
// message until it is known who wrote it.
type heldWriter struct {
	w       io.Writer
	held    []byte
	decided bool
}

func (h *heldWriter) Write(p []byte) (int, error) {
	if h.decided {
		return h.w.Write(p)
	}
	h.held = append(h.held, p...)
	n := min(len(h.held), len(runtimeFailed))
	if len(h.held) > maxLine || !bytes.Equal(h.held[:n], []byte(runtimeFailed)[:n]) {
		return len(p), h.release()
	}
	return len(p), nil
}

// release writes the held output: it is the command's.
func (h *heldWriter) release() error {
	h.decided = true
	held := h.held
	h.held = nil
	if len(held) == 0 {
		return nil
	}
	_, err := h.w.Write(held)
	return err
}
