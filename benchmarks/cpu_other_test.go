//go:build !unix

package benchmarks

import "time"

var started = time.Now()

func cpuTime() time.Duration { return time.Since(started) }
