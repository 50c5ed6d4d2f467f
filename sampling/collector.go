package sampling

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// A Collector is the configuration of the tiers of OpenTelemetry Collectors that
// judge traces across processes, one YAML file each, for the contrib distribution from
// v0.161.0 on. A file may be given to the Collector together with further ones
// (--config twice), which win: for TLS certificates, headers, persistent queues, other
// receivers and the Collector's own telemetry.
type Collector struct{ agent, loadBalancing, tailSampling string }

// Agent configures the Collector beside the services: in their pod, or one a node.
// Services send to it, and it sends to the load-balancing tier alone, so that nodes
// with GPUs have one connection out and neither wait nor retry for anybody. It is empty
// unless [CollectorOptions].LoadBalancer is given.
func (c Collector) Agent() string { return c.agent }

// LoadBalancing configures the first tier, of any number of equal instances. It sends
// all spans of a trace to the same instance of the second one.
func (c Collector) LoadBalancing() string { return c.loadBalancing }

// TailSampling configures the second tier: it holds each trace for DecisionWait,
// judges it, and sends what is kept to the backend.
func (c Collector) TailSampling() string { return c.tailSampling }

// CollectorOptions say where the tiers are and how much they hold. Backend and Samplers are
// required. Addresses may contain ${env:NAME}, which the Collector replaces.
type CollectorOptions struct {
	// Backend takes the traces that are kept, by OTLP over gRPC: "host:port", with TLS
	// unless it begins with "http://".
	Backend string
	// Samplers are the instances of the second tier.
	Samplers SamplerTier
	// LoadBalancer is where the first tier is for agents, written like Backend. Empty:
	// there are no agents.
	LoadBalancer string

	// Listen is the address at which the first tier takes OTLP over gRPC,
	// SamplerListen that of the second one. Default: "0.0.0.0:4317".
	Listen, SamplerListen string
	// AgentListen is that of the agents. Default: "localhost:4317", for agents in the
	// pod of the service.
	AgentListen string
	// HTTP makes agents and the first tier take OTLP over HTTP as well, on port 4318 of
	// the same host.
	HTTP bool

	// DecisionWait is how long after its first span a trace is judged, in whole seconds.
	// It must exceed the longest request that matters, for a trace is judged by the spans
	// that have arrived, and what comes later follows the decision. Default: 30 s, or 15 s
	// more than the longest limit of the policy. It must be 5 s more than that limit, for
	// the time that SDKs hold spans.
	DecisionWait time.Duration
	// WaitAfterRoot is how long after the span without a parent has arrived a trace is
	// judged, if that is before DecisionWait, in whole seconds. It saves memory where a
	// few requests last much longer than most; what other services send later than that
	// follows the decision. Default: DecisionWait alone.
	WaitAfterRoot time.Duration
	// TracesPerSecond is how many new traces an instance of the second tier gets at its
	// peak. Default: 500.
	TracesPerSecond int
	// Traces that an instance of the second tier may hold; the oldest gives way,
	// undecided. Default: twice those that come within DecisionWait, and at least 50,000.
	Traces int
	// TraceBytes is how large a trace may become; a larger one is dropped, so that it
	// does not take the others with it. Default: 16 MiB.
	TraceBytes int
	// Decisions is of how many kept traces, and of how many dropped ones, the decision is
	// remembered for spans that come late; each takes about 120 bytes. Default: ten times
	// Traces.
	Decisions int
	// AgentMemory is how much an agent may use, in MiB; what comes beyond it is refused.
	// Default: 512. The tiers may use 80 % of the memory of their machine or container.
	AgentMemory int
}

// A SamplerTier is how the first tier finds the instances of the second one: by one of
// Hosts, DNS and Kubernetes. When the instances change, so does the one that some traces
// belong to; those under way are judged in two parts.
type SamplerTier struct {
	// Hosts are the instances, each "host:port".
	Hosts []string
	// DNS is the "name:port" whose addresses are the instances, such as a headless
	// service. It is asked every 5 s.
	DNS string
	// Kubernetes is the "service.namespace:port" whose ready endpoints are the instances.
	// The first tier must be allowed to get, list and watch EndpointSlices.
	Kubernetes string
	// TLS encrypts between the tiers.
	TLS bool
}

// CollectorConfig writes the configuration of Collectors that keep what p keeps, judging
// the spans of all services together. What the Collector cannot do is an error that names
// the part of the policy and the way out: [Custom], [AboveQuantile], [TargetRate],
// [Adaptive], [Limit], [KeyPath], [Layers].
//
// The Collector judges as a Tail would that saw the whole trace, with these differences:
//
//   - [Baseline] keeps the traces that a Tail would if the Collector runs with
//     --feature-gates=processor.tailsamplingprocessor.usetracestate and spans arrive with
//     an "ot" tracestate, as those from a Tail do. The Collector then
//     also keeps the th of what it exports true. Otherwise it chooses the same share
//     of traces by a hash of its own, without a th.
//   - The duration of a trace counts from the first start in any service to the last end.
//     Spans that arrive later than DecisionWait do not count.
//   - [SlowBy]: where a trace has several values of the attribute, each that has a limit of
//     its own counts, not the first.
//   - [Selector].Values match texts, numbers and booleans.
//
// Where services have Tails of their own, what these keep is kept here by
//
//	sampling.Any(sampling.Match("tail", sampling.Selector{Key: semconv.GenAISamplingReasonKey}), policy)
func CollectorConfig(p Policy, o CollectorOptions) (Collector, error) {
	s, atoms, err := translate(p)
	var longest time.Duration
	for _, a := range atoms {
		longest = max(longest, a.waits)
	}
	o = o.withDefaults(longest)
	if err = errors.Join(err, o.check(longest)); err != nil {
		return Collector{}, err
	}
	c := Collector{loadBalancing: o.loadBalancing(), tailSampling: o.tailSampling(p, s, atoms)}
	if o.LoadBalancer != "" {
		c.agent = o.agent()
	}
	return c, nil
}

// sdkDelay is how long the SDK's batch processor holds a span.
const sdkDelay = 5 * time.Second

func (o CollectorOptions) withDefaults(longest time.Duration) CollectorOptions {
	set(&o.Listen, "0.0.0.0:4317")
	set(&o.SamplerListen, "0.0.0.0:4317")
	set(&o.AgentListen, "localhost:4317")
	wait := longest + 3*sdkDelay
	set(&o.DecisionWait, max(30*time.Second, (wait+time.Second-1).Truncate(time.Second)))
	set(&o.TracesPerSecond, 500)
	set(&o.Traces, max(50_000, 2*o.inWait()))
	set(&o.TraceBytes, 16<<20)
	set(&o.Decisions, 10*o.Traces)
	set(&o.AgentMemory, 512)
	return o
}

// set sets a field that is zero.
func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// inWait is how many traces come within DecisionWait.
func (o CollectorOptions) inWait() int {
	const enough = 1 << 40 // no overflow where figures are absurd
	return int(min(float64(o.TracesPerSecond)*o.DecisionWait.Seconds(), enough))
}

func (o CollectorOptions) check(longest time.Duration) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("sampling: CollectorOptions."+format, args...))
	}
	address := func(field, value string) {
		if err := checkAddress(value); err != nil {
			fail("%s is %q: %w", field, value, err)
		}
	}
	_, backend := endpoint(o.Backend)
	address("Backend", backend)
	if o.LoadBalancer != "" {
		_, balancer := endpoint(o.LoadBalancer)
		address("LoadBalancer", balancer)
	}
	address("Listen", o.Listen)
	address("SamplerListen", o.SamplerListen)
	address("AgentListen", o.AgentListen)
	given := 0
	for i, host := range o.Samplers.Hosts {
		given = 1
		address(fmt.Sprintf("Samplers.Hosts[%d]", i), host)
	}
	if o.Samplers.DNS != "" {
		given++
		address("Samplers.DNS", o.Samplers.DNS)
	}
	if o.Samplers.Kubernetes != "" {
		given++
		address("Samplers.Kubernetes", o.Samplers.Kubernetes)
	}
	for _, f := range []struct {
		name, value string
		split       bool
	}{
		{"Listen", o.Listen, o.HTTP},
		{"AgentListen", o.AgentListen, o.HTTP},
		{"Samplers.DNS", o.Samplers.DNS, o.Samplers.DNS != ""},
		{"Samplers.Kubernetes", o.Samplers.Kubernetes, o.Samplers.Kubernetes != ""},
	} {
		if _, port := splitPort(f.value); f.split && strings.Trim(port, "0123456789") != "" {
			fail("%s is %q, and its port must be a number here", f.name, f.value)
		}
	}
	if given != 1 {
		fail("Samplers must have one of Hosts, DNS and Kubernetes, and has %d", given)
	}
	switch {
	case o.DecisionWait < time.Second || o.DecisionWait%time.Second != 0:
		fail("DecisionWait is %s and must be whole seconds", o.DecisionWait)
	case longest > 0 && o.DecisionWait < longest+sdkDelay:
		fail("DecisionWait is %s, so that no trace is seen to last %s, which the policy asks for: give at least %s",
			o.DecisionWait, longest, longest+sdkDelay)
	}
	if o.WaitAfterRoot < 0 || o.WaitAfterRoot%time.Second != 0 || o.WaitAfterRoot > o.DecisionWait {
		fail("WaitAfterRoot is %s and must be whole seconds, up to DecisionWait %s", o.WaitAfterRoot, o.DecisionWait)
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"TracesPerSecond", o.TracesPerSecond}, {"Traces", o.Traces}, {"TraceBytes", o.TraceBytes},
		{"Decisions", o.Decisions}, {"AgentMemory", o.AgentMemory},
	} {
		if f.value < 0 || f.value > 1<<40 {
			fail("%s is %d and must be from 0 to 2^40", f.name, f.value)
		}
	}
	if o.AgentMemory > 0 && o.AgentMemory < minAgentMemory || o.AgentMemory > 1<<20 {
		fail("AgentMemory is %d MiB and must be from %d MiB, for its queue, to 1 TiB", o.AgentMemory, minAgentMemory)
	}
	if o.Traces >= 0 && o.Traces < o.inWait() {
		fail("Traces is %d, less than the %d that come within DecisionWait, so that they would give way undecided", o.Traces, o.inWait())
	}
	return errors.Join(errs...)
}

// endpoint splits what begins with a scheme into whether it is plain text and the address.
func endpoint(s string) (plaintext bool, address string) {
	if address, ok := strings.CutPrefix(s, "http://"); ok {
		return true, address
	}
	return false, strings.TrimPrefix(s, "https://")
}

// splitPort splits at the last colon.
func splitPort(address string) (host, port string) {
	i := max(0, strings.LastIndexByte(address, ':'))
	return address[:i], strings.TrimPrefix(address[i:], ":")
}

var errNoAddress = errors.New(`give "host:port"`)

func checkAddress(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }) {
		return errNoAddress
	}
	if strings.Contains(s, "${") { // known to the Collector only
		return nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || strings.ContainsAny(s, "/$") {
		return errNoAddress
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("the port is %q and must be from 1 to 65535", port)
	}
	return nil
}
