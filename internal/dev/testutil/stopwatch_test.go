package testutil

import (
	"testing"
	"time"
)

func TestInstant(t *testing.T) {
	at := func(wall, idle time.Duration) Instant { return Instant{started.Add(wall), idle} }
	for _, c := range []struct{ wall, idle, want time.Duration }{
		{time.Second, 2 * time.Second, time.Second},
		{time.Second, 600 * time.Millisecond, 600 * time.Millisecond},
		{8 * time.Second, 0, 2 * time.Second},
		{0, 10 * time.Millisecond, 0}, // a tick ended
	} {
		if got := at(time.Minute+c.wall, time.Hour+c.idle).Sub(at(time.Minute, time.Hour)); got != c.want {
			t.Errorf("%v with %v idle: %v, want %v", c.wall, c.idle, got, c.want)
		}
	}
	if got := at(4*time.Second, time.Second).Part(at(0, 0), 2*time.Second); got != 500*time.Millisecond {
		t.Errorf("2s of 4s, of which 1s counts: %v", got)
	}
	begin := Now()
	time.Sleep(80 * time.Millisecond)
	if got := Since(begin); got < 20*time.Millisecond {
		t.Errorf("a sleep of 80ms counts %v", got)
	}
}
