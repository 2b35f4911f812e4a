package uptime

import (
	"time"

	"golang.org/x/sys/unix"
)

// boottime is CLOCK_BOOTTIME, or nil where the kernel, or what stands in front of it, does
// not have it.
func boottime() func() time.Duration {
	if _, err := read(); err != nil {
		return nil
	}
	return func() time.Duration {
		now, err := read()
		if err != nil {
			// It worked, and its arguments are constants. No other clock has the same
			// beginning: to go on by one would be to believe what nobody knows.
			panic("CLOCK_BOOTTIME can not be read any more: " + err.Error())
		}
		return now
	}
}

func read() (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
