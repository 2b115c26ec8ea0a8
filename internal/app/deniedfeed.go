package app

import (
	"context"
	"sync"
	"time"

	"github.com/llmdo/workshop/internal/guard/events"
)

const (
	// maxFeed bounds the refusals that are kept.
	maxFeed = 2000
	// settled is how long after the first refusal of a call others may come.
	settled = 10 * time.Millisecond
)

// deniedFeed keeps what the guard refused lately, as it comes, for calls that ask
// afterwards. A call must not wait for a log to be read.
type deniedFeed struct {
	mu    sync.Mutex
	lines []events.Line
	news  chan struct{} // closed by the next one
}

func newDeniedFeed() *deniedFeed { return &deniedFeed{news: make(chan struct{})} }

// add takes an event.
func (f *deniedFeed) add(l events.Line) {
	if l.Verdict != events.Deny {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.lines) == maxFeed {
		f.lines = append(f.lines[:0], f.lines[maxFeed/2:]...)
	}
	f.lines = append(f.lines, l)
	close(f.news)
	f.news = make(chan struct{})
}

// refused is what was refused to a worker since a time. repeats: the guard may
// join more to what was refused just before.
func (f *deniedFeed) refused(worker string, since time.Time) (list []Refusal, repeats bool, news <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := Refusals{Worker: worker}
	for _, l := range f.lines {
		repeats = found.addSince(l, since) || repeats
	}
	return found.List, repeats, f.news
}

// wait is refused for a call that has ended: what the guard wrote about it may be
// on its way for so long. flush makes the guard write what it joins.
func (f *deniedFeed) wait(ctx context.Context, worker string, since time.Time, patience time.Duration, flush func()) []Refusal {
	until := time.Now().Add(patience)
	for flushed, found := false, false; ; {
		list, repeats, news := f.refused(worker, since)
		switch {
		case len(list) > 0 && !found:
			found, until = true, time.Now().Add(settled)
		case len(list) == 0 && repeats && !flushed:
			flushed = true
			flush()
			until = time.Now().Add(max(patience, onItsWay))
			continue
		}
		select {
		case <-news:
			continue
		case <-time.After(time.Until(until)):
		case <-ctx.Done():
		}
		list, _, _ = f.refused(worker, since)
		return list
	}
}
