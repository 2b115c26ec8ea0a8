package client

import (
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/internal/app"
)

// overlap is a writer that notices a second one at the same time.
type overlap struct {
	one  sync.Mutex
	text strings.Builder
	t    *testing.T
}

func (o *overlap) Write(b []byte) (int, error) {
	if !o.one.TryLock() {
		o.t.Error("two write at the same time")
		return len(b), nil
	}
	defer o.one.Unlock()
	return o.text.Write(b)
}

// A program's Log is written to by one at a time, as engines carry out steps side
// by side.
func TestLogIsWrittenInTurns(t *testing.T) {
	log := &overlap{t: t}
	env, err := environment(Options{Dir: t.TempDir(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 2000 {
				env.Events(app.Event{Kind: app.Warning, Text: "x"})
			}
		})
	}
	all.Wait()
	if n := strings.Count(log.text.String(), "\n"); n != 16000 {
		t.Errorf("%d lines, want 16000", n)
	}
}
