package monitor

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/made"
)

// queued is how many of a guest's lines wait for who reads them: 1 MiB at most.
const queued = 1 << 20 / carrier.MaxLine

// outputTimeout bounds the writing of the last lines.
const outputTimeout = time.Second

// output writes a guest's lines to the streams of this process. A guest that writes faster
// than they are read loses lines, and is told how many; nothing else waits.
type output struct {
	stdout, stderr io.Writer
	queue          chan carrier.Head
	lost           atomic.Int64
	decided        atomic.Bool // the worker is ready, or failed: this was written
	done           chan struct{}
}

func newOutput(stdout, stderr io.Writer) *output {
	o := &output{stdout: stdout, stderr: stderr, queue: make(chan carrier.Head, queued), done: make(chan struct{})}
	go o.run()
	return o
}

// line takes a line, without what could change a terminal: `logs` and `up` show it. What a guest
// says its container is isn't handed on: who compares that compares this process's.
func (o *output) line(h carrier.Head) {
	h.Line = strings.Map(shown, h.Line)
	if strings.HasPrefix(h.Line, made.Prefix) {
		return
	}
	select {
	case o.queue <- h:
	default:
		o.lost.Add(1)
	}
}

func (o *output) run() {
	defer close(o.done)
	for h := range o.queue {
		to := o.stdout
		if h.Stream == carrier.Stderr {
			to = o.stderr
		} else if h.Line == "READY" || strings.HasPrefix(h.Line, "FAILED") {
			o.decided.Store(true)
		}
		_, _ = io.WriteString(to, h.Line+"\n")
		if n := o.lost.Swap(0); n > 0 {
			fmt.Fprintf(o.stderr, "workshop-vm: %d lines of the worker are lost: it wrote faster than they are read\n", n)
		}
	}
}

// close ends the output once what was taken is written. No line may come any more.
func (o *output) close() {
	close(o.queue)
	select {
	case <-o.done:
	case <-time.After(outputTimeout): // nobody reads
	}
}
