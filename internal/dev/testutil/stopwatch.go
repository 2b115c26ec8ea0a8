package testutil

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Instant is a moment on a machine that may be short of processors. A promise
// of "within a second" is one of a machine that has the time: between two
// instants counts what some processor stood idle, so what other tests took, or
// the host of a virtual machine gave to others, doesn't; and at least a quarter
// counts, so that no limit is without an end.
type Instant struct {
	wall time.Time
	idle time.Duration // of all processors, since the machine started
}

// Now returns the present.
func Now() Instant { return Instant{time.Now(), idleTime()} }

// Sub returns what counts between two instants.
func (i Instant) Sub(before Instant) time.Duration {
	all := i.wall.Sub(before.wall)
	return min(max(i.idle-before.idle, all/4), all)
}

// Part returns what counts of a time that passed between two instants, as if
// processors had been short all the while.
func (i Instant) Part(before Instant, d time.Duration) time.Duration {
	if all := i.wall.Sub(before.wall); all > 0 {
		return time.Duration(float64(d) * float64(i.Sub(before)) / float64(all))
	}
	return d
}

// Wall is the moment by the clock.
func (i Instant) Wall() time.Time { return i.wall }

// Since returns what counts since an instant.
func Since(i Instant) time.Duration { return Now().Sub(i) }

// userHZ is the unit of /proc/stat on every architecture that Go runs on: 100
// in a second (USER_HZ, include/asm-generic/param.h).
const userHZ = 100

// idleTime is what processors had nothing to do in, waiting for input included,
// which is the fourth and the fifth number of the first line of /proc/stat
// (proc_stat(5)). Where there is none, all time is idle.
func idleTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	f := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	if err != nil || len(f) < 6 {
		return time.Since(started)
	}
	idle, _ := strconv.ParseInt(f[4], 10, 64)
	waiting, _ := strconv.ParseInt(f[5], 10, 64)
	return time.Duration(idle+waiting) * time.Second / userHZ
}

var started = time.Now()
