package durationtext

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "1.5s": 1500 * time.Millisecond, "30m": 30 * time.Minute, "30m10s": 30*time.Minute + 10*time.Second,
		"1h": time.Hour, "10h": 10 * time.Hour, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second, "-20m": -20 * time.Minute,
	} {
		got := Of(d)
		if again, err := time.ParseDuration(got); got != want || err != nil || again != d {
			t.Errorf("%v: got %s, want %s; it reads as %v, %v", d, got, want, again, err)
		}
	}
}
