// Package clock is the clock of what the guard ends or frees after a time.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the time since the machine booted: CLOCK_BOOTTIME (clock_gettime(2)),
// which goes on while the machine sleeps and which nobody sets. A guard that
// starts again goes on with it.
func Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // Linux 2.6.39 has it
	}
	return time.Duration(ts.Nano())
}
