package genaihttp

import (
	"net/http"
	"time"
)

// ProbeEvery is Probe with another interval.
func ProbeEvery(interval time.Duration, transport http.RoundTripper) http.Handler {
	return &probe{transport: transport, interval: interval}
}
