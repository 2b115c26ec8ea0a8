package proxy

import "time"

// slots is how finely a window slides. One more is kept than the time has, so
// that the bytes of any stretch of that time are counted, wherever it begins.
const slots = 60

// window counts bytes over a stretch of time that slides. Times are since
// whatever start, never less than the last one.
type window struct {
	limit int64
	per   time.Duration
	slot  [slots + 1]int64
	used  int64 // the sum of all slots
	at    int64 // number of the newest slot
}

// advance forgets what is older than the window.
func (w *window) advance(now time.Duration) {
	at := int64(now / (w.per / slots))
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

// take takes up to n bytes and returns how many there were.
func (w *window) take(now time.Duration, n int64) int64 {
	w.advance(now)
	n = max(0, min(n, w.limit-w.used))
	w.slot[w.at%int64(len(w.slot))] += n
	w.used += n
	return n
}

// free returns how long it takes until something can be taken again.
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
