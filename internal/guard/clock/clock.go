// Package clock has the clock by which the guard ends and frees things.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boot returns the time since the machine booted: CLOCK_BOOTTIME
// (clock_gettime(2)), which advances during sleep and can't be set. It outlives a
// restart of the guard.
func Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // exists since Linux 2.6.39
	}
	return time.Duration(ts.Nano())
}
