package proxy

import (
	"errors"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// slots is the resolution of a window. One slot more is kept, so that the bytes of
// any interval of the window's length are counted, wherever it begins.
const slots = 60

// window counts bytes in a sliding window. Times are since boot (clock.Boot) and
// never decrease.
type window struct {
	limit int64
	per   time.Duration
	slot  [slots + 1]int64
	used  int64 // the sum of all slots
	at    int64 // number of the newest slot
	// reserved bytes of the newest slot are recorded as sent, but not sent yet.
	reserved int64
}

// A crash of the guard loses the reserved bytes: a 64th of the budget, and 1 MiB
// at most. Each reservation is recorded before a byte of it is sent.
const (
	reservePart = 64
	reserveMost = 1 << 20
)

func newWindow(b firewall.Budget) window { return window{limit: b.Bytes, per: b.Per} }

// advance drops slots older than the window.
func (w *window) advance(now time.Duration) {
	at := int64(now / (w.per / slots))
	if at > w.at {
		w.reserved = 0 // recorded with an old slot, it would be freed too early
	}
	if at-w.at > slots {
		w.slot, w.used, w.at = [slots + 1]int64{}, 0, at
	}
	for w.at < at {
		w.at++
		s := &w.slot[w.at%int64(len(w.slot))]
		w.used -= *s
		*s = 0
	}
}

// take takes up to n bytes and returns how many were available.
func (w *window) take(now time.Duration, n int64) int64 {
	w.advance(now)
	n = max(0, min(n, w.limit-w.used))
	w.slot[w.at%int64(len(w.slot))] += n
	w.used += n
	w.reserved = max(0, w.reserved-n)
	return n
}

// reserve reserves bytes for taking up to n. It reports whether the reservation
// must be recorded first.
func (w *window) reserve(now time.Duration, n int64) bool {
	w.advance(now)
	left := w.limit - w.used
	if n = min(n, left); n <= w.reserved {
		return false
	}
	w.reserved = min(left, max(n, min(w.limit/reservePart, reserveMost)))
	return true
}

// recorded returns the bytes sent or reserved, as pairs of slot number and bytes;
// nil if there are none.
func (w *window) recorded(now time.Duration) (sent [][2]int64) {
	w.advance(now)
	for i := max(0, w.at-slots); i <= w.at; i++ {
		n := w.slot[i%int64(len(w.slot))]
		if i == w.at {
			n += w.reserved
		}
		if n > 0 {
			sent = append(sent, [2]int64{i, n})
		}
	}
	return sent
}

// restore fills an empty window with the result of recorded, whose newest slot was
// at.
func (w *window) restore(now time.Duration, at int64, sent [][2]int64) error {
	if at < 0 || at > int64(now/(w.per/slots)) {
		return errors.New("the recorded time is in the future")
	}
	w.at = at
	last := max(0, at-slots) - 1
	for _, x := range sent {
		if x[0] <= last || x[0] > at || x[1] <= 0 || x[1] > w.limit-w.used {
			return errors.New("times or bytes are out of range")
		}
		last = x[0]
		w.slot[x[0]%int64(len(w.slot))] = x[1]
		w.used += x[1]
	}
	return nil
}

// free returns the time until bytes can be taken again.
func (w *window) free(now time.Duration) time.Duration {
	w.advance(now)
	if w.used < w.limit {
		return 0
	}
	for i := w.at - slots; i <= w.at; i++ {
		if i >= 0 && w.slot[i%int64(len(w.slot))] > 0 {
			return time.Duration(i+slots+1)*(w.per/slots) - now
		}
	}
	return 0
}
