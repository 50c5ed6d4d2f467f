//go:build unix

package benchmarks

import (
	"syscall"
	"time"
)

// cpuTime is what the process has used of all processors: other than the time on a
// wall, it says the same on a busy machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
