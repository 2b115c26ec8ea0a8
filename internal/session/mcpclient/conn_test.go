package mcpclient

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPace: a server that sends without end what nobody asked for is read at a
// pace, so that it costs the host next to nothing (B60).
func TestPace(t *testing.T) {
	for name, line := range map[string]string{
		"notifications": `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n",
		"empty lines":   "\n",
		"answers":       `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, server := io.Pipe()
			var sent atomic.Int64
			go func() {
				for {
					if _, err := io.WriteString(server, line); err != nil {
						return
					}
					sent.Add(1)
				}
			}()
			c := newConn(in, server, func() {})
			done := make(chan struct{})
			begun := time.Now()
			go func() {
				defer close(done)
				_, _ = c.Read(t.Context())
			}()
			time.Sleep(1500 * time.Millisecond)
			// What the reader holds beside: its buffer.
			most := int64(time.Since(begun)/time.Second+2)*maxUnasked + int64((64<<10)/len(line)) + 1
			if n := sent.Load(); n > most || n < maxUnasked {
				t.Errorf("%d messages were read, want %d to %d", n, maxUnasked, most)
			}
			c.end(nil)
			in.Close()
			<-done
		})
	}
	// One that speaks little isn't slowed down.
	few := strings.Repeat("\n", maxUnasked/2) + `{"jsonrpc":"2.0","method":"x"}` + "\n"
	c := newConn(io.NopCloser(strings.NewReader(few)), discard{}, func() {})
	if _, err := c.Read(t.Context()); err != io.EOF || c.unasked != maxUnasked/2+1 {
		t.Errorf("%v, %d counted", err, c.unasked)
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
