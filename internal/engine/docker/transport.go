package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// What an engine may answer to one request that isn't for a stream. The client decodes it
// as a whole, and each of its values can take some hundred bytes.
const (
	maxAnswer = 32 << 20 // bytes
	maxValues = 1 << 19  // values, as far as commas tell them apart
)

// How long an engine may take for such an answer: when it is asked for what it knows, and
// when it does something, such as measuring its disk, sending a file or copying an image.
const (
	askTime = 30 * time.Second
	doTime  = 10 * time.Minute
)

// answerError is an answer that no engine gives.
type answerError struct{ why string }

func (e *answerError) Error() string { return e.why }

var (
	errLateAnswer  = &answerError{fmt.Sprintf("no answer within %v", askTime)}
	errLateDone    = &answerError{fmt.Sprintf("no answer within %v", doTime)}
	errLateUpgrade = &answerError{fmt.Sprintf("no stream within %v", upgradeTime)}
	errLongAnswer  = &answerError{fmt.Sprintf("its answer has more than %d MiB, or %d values", maxAnswer>>20, maxValues)}
	errLongHead    = &answerError{fmt.Sprintf("the head of its answer has more than %d KiB", maxHead>>10)}
	errRedirect    = &answerError{"it redirects elsewhere, which no engine does"}
)

// bounded is the way of all the client's requests but those of [Engine.send]: it bounds
// answers in bytes and time, and follows no redirect.
type bounded struct {
	next  http.RoundTripper
	bound func(*http.Request) (time.Duration, *answerError) // [boundOf]
}

// RoundTrip implements [http.RoundTripper].
func (b *bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	within, late := b.bound(req)
	if late == nil {
		return b.direct(req)
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), within, late)
	resp, err := b.direct(req.WithContext(ctx))
	if err != nil {
		if context.Cause(ctx) == error(late) {
			err = late
		}
		cancel()
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, bytes: maxAnswer, values: maxValues, ctx: ctx, late: late, cancel: cancel}
	return resp, nil
}

// direct makes the request where it is sent, and nowhere else.
func (b *bounded) direct(req *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(req)
	if err != nil && strings.Contains(err.Error(), "response headers exceeded") { // net/http has no type for it
		err = errLongHead
	}
	if err == nil && resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		resp.Body.Close()
		return nil, errRedirect
	}
	return resp, err
}

// boundOf returns the time for an answer, and its error; nil: it is a stream, which goes on
// as long as there is something to say.
func boundOf(req *http.Request) (time.Duration, *answerError) {
	asks := req.Method == http.MethodGet || req.Method == http.MethodHead
	switch p := req.URL.Path; {
	case strings.HasSuffix(p, "/logs"), strings.HasSuffix(p, "/wait"), strings.HasSuffix(p, "/build"), strings.HasSuffix(p, "/images/create"),
		strings.HasSuffix(p, "/archive") && !asks: // what is sent takes its time
		return 0, nil
	case asks && !strings.HasSuffix(p, "/system/df") && !strings.HasSuffix(p, "/archive"):
		return askTime, errLateAnswer
	}
	return doTime, errLateDone
}

// boundedBody is the body of an answer.
type boundedBody struct {
	io.ReadCloser
	bytes, values int
	ctx           context.Context
	late          *answerError
	cancel        context.CancelFunc
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes -= n
	b.values -= bytes.Count(p[:n], []byte{','})
	switch {
	case b.bytes < 0 || b.values < 0:
		return 0, errLongAnswer
	case err != nil && err != io.EOF && context.Cause(b.ctx) == error(b.late):
		err = b.late
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
