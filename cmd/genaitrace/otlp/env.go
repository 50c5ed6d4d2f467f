package otlp

import (
	"cmp"
	"net"
	"os"
	"strings"
)

// Env returns the environment variables that make the OpenTelemetry SDK of another
// program, in any language, export to the receiver, as NAME=VALUE. They win over
// earlier ones of the same name in [os/exec.Cmd.Env]. They name the HTTP port, which
// takes gRPC too, for programs that were built with one exporter. They make the
// SDK export after 0.2 seconds, metrics every second, rather than after 5 and every
// 60. And they keep the proxies of this program away from the receiver.
func (r *Receiver) Env() []string {
	url := "http://" + reachable(r.HTTPAddr())
	const protocol = "http/protobuf"
	env := []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + url,
		"OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol,
		"OTEL_BSP_SCHEDULE_DELAY=200",  // spans, ms
		"OTEL_BLRP_SCHEDULE_DELAY=200", // log records, ms
		"OTEL_METRIC_EXPORT_INTERVAL=1000",
		"OTEL_METRIC_EXPORT_TIMEOUT=1000", // some SDKs refuse one above the interval
	}
	// Those of one signal win over the general ones, and may be there already.
	for s := range signal(signals) {
		name := strings.ToUpper(s.String())
		env = append(env,
			"OTEL_"+name+"_EXPORTER=otlp",
			"OTEL_EXPORTER_OTLP_"+name+"_ENDPOINT="+url+"/v1/"+s.String(),
			"OTEL_EXPORTER_OTLP_"+name+"_PROTOCOL="+protocol,
		)
	}
	return append(env, direct(reachable(r.HTTPAddr()))...)
}

// direct keeps proxies, which not every SDK knows to leave out for loopback, away from
// addr. Both spellings are set, because each is read by some.
func direct(addr string) []string {
	host, _, _ := net.SplitHostPort(addr)
	if others := cmp.Or(os.Getenv("NO_PROXY"), os.Getenv("no_proxy")); others != "" {
		host = others + "," + host
	}
	return []string{"NO_PROXY=" + host, "no_proxy=" + host}
}

// reachable replaces the address of all interfaces, to which nobody can connect, by
// that of this machine.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if ip.To4() != nil {
			return net.JoinHostPort("127.0.0.1", port)
		}
		return net.JoinHostPort("::1", port)
	}
	return addr
}
