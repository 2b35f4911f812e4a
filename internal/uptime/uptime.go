// Package uptime is a clock for what must have ended by a certain time whatever the
// machine did meanwhile, such as the lease on a store that others share.
//
// Go's own monotonic clock is CLOCK_MONOTONIC on Linux, which goes on while a process is
// stopped (SIGSTOP, a frozen cgroup) and stands still while the machine is suspended.
// CLOCK_BOOTTIME is the same with the time of suspension in it (clock_gettime(2)).
// Neither sees that a hypervisor paused the whole machine if that stops the guest's
// clocks, too, as QEMU does with kvmclock.
package uptime

import "time"

// Clock gives a clock that says how long something has lasted, from some beginning. It
// never goes back, and may be asked by any goroutine. On Linux it goes on while the
// machine is suspended; elsewhere it is Go's monotonic clock, which may stand still.
func Clock() func() time.Duration {
	if c := boottime(); c != nil {
		return c
	}
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
