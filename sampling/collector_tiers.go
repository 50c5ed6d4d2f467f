package sampling

import (
	"strconv"
	"strings"
)

// Sizes in bytes. A message of gRPC may have 4 MiB where the receiver says nothing else,
// and spans with prompts are large, so batches are measured in bytes and not in spans.
const (
	batchLeast     = 512 << 10
	batchMost      = 3 << 20
	agentQueue     = 64 << 20
	tierQueue      = 256 << 20
	minAgentMemory = 192 // MiB: the queue twice, and the Collector itself
)

func (o CollectorOptions) agent() string {
	plaintext, address := endpoint(o.LoadBalancer)
	return document("the agent",
		[]string{"It takes spans from the services beside it and sends them to the load-balancing tier."},
		receiver(o.AgentListen, o.HTTP),
		node{{"memory_limiter", node{
			{"check_interval", "1s"}, {"limit_mib", o.AgentMemory}, {"spike_limit_mib", o.AgentMemory / 4},
		}}},
		node{{"otlp_grpc", otlp(address, plaintext, agentQueue)}},
	)
}

func (o CollectorOptions) loadBalancing() string {
	return document("the load-balancing tier",
		[]string{"It sends all spans of a trace to the same instance of the sampling tier."},
		receiver(o.Listen, o.HTTP), memoryLimiter(),
		node{{"load_balancing", node{
			{"routing_key", "traceID"},
			// One queue, in front of all instances: what one of them refuses finds its
			// way when the list of instances changes.
			{"retry_on_failure", retry()},
			{"sending_queue", sendingQueue(tierQueue)},
			{"protocol", node{{"otlp", node{
				{"timeout", "5s"},
				{"retry_on_failure", node{{"enabled", false}}},
				{"sending_queue", node{{"enabled", false}}},
				{"tls", node{{"insecure", !o.Samplers.TLS}}},
			}}}},
			{"resolver", o.Samplers.resolver()},
		}}},
	)
}

func (o CollectorOptions) tailSampling(p Policy, s sum, atoms []atom) string {
	notes := []string{
		"It judges traces by the policy",
		"  " + p.String(),
	}
	for _, a := range atoms {
		if a.kind == "probabilistic" {
			notes = append(notes, "Run it with --feature-gates=processor.tailsamplingprocessor.usetracestate, so that",
				"its share is the same as that of others who sample consistently (ot=th).")
			break
		}
	}
	settings := node{
		{"decision_wait", seconds(o.DecisionWait.Seconds())},
		{"num_traces", o.Traces},
		{"expected_new_traces_per_sec", o.TracesPerSecond},
		{"maximum_trace_size_bytes", o.TraceBytes},
		{"decision_cache", node{{"sampled_cache_size", o.Decisions}, {"non_sampled_cache_size", o.Decisions}}},
		{"policies", s.policies(atoms)},
	}
	if o.WaitAfterRoot > 0 {
		settings = append(settings[:1:1], append(node{
			{"decision_wait_after_root_received", seconds(o.WaitAfterRoot.Seconds())},
		}, settings[1:]...)...)
	}
	plaintext, address := endpoint(o.Backend)
	return document("the sampling tier", notes,
		receiver(o.SamplerListen, false),
		append(memoryLimiter(), entry{"tail_sampling", settings}),
		node{{"otlp_grpc", otlp(address, plaintext, tierQueue)}},
	)
}

// document writes a configuration with one pipeline, through all processors in their order.
func document(what string, notes []string, receivers, processors, exporters node) string {
	var b strings.Builder
	b.WriteString(comment("Configuration of " + what + ", for OpenTelemetry Collector Contrib, v0.161.0 or later."))
	b.WriteString(comment(notes...))
	names := func(n node) []string {
		keys := make([]string, len(n))
		for i, e := range n {
			keys[i] = e.key
		}
		return keys
	}
	node{
		{"receivers", receivers},
		{"processors", processors},
		{"exporters", exporters},
		{"service", node{{"pipelines", node{{"traces", node{
			{"receivers", names(receivers)},
			{"processors", names(processors)},
			{"exporters", names(exporters)},
		}}}}}},
	}.write(&b, 0)
	return b.String()
}

func receiver(address string, http bool) node {
	protocols := node{{"grpc", node{{"endpoint", address}, {"max_recv_msg_size_mib", 16}}}}
	if http {
		host, _ := splitPort(address)
		protocols = append(protocols, entry{"http", node{{"endpoint", host + ":4318"}}})
	}
	return node{{"otlp", node{{"protocols", protocols}}}}
}

func memoryLimiter() node {
	return node{{"memory_limiter", node{
		{"check_interval", "1s"}, {"limit_percentage", 80}, {"spike_limit_percentage", 20},
	}}}
}

// otlp writes an exporter that batches, and waits five minutes for what it sends to.
func otlp(address string, plaintext bool, queueBytes int) node {
	return node{
		{"endpoint", address},
		{"tls", node{{"insecure", plaintext}}},
		{"retry_on_failure", retry()},
		{"sending_queue", sendingQueue(queueBytes)},
	}
}

func sendingQueue(size int) node {
	return node{
		{"sizer", "bytes"},
		{"queue_size", size},
		{"batch", node{{"flush_timeout", "200ms"}, {"min_size", batchLeast}, {"max_size", batchMost}}},
	}
}

// retry gives every field: the load-balancing exporter has no defaults.
func retry() node {
	return node{
		{"enabled", true},
		{"initial_interval", "1s"},
		{"randomization_factor", 0.5},
		{"multiplier", 1.5},
		{"max_interval", "30s"},
		{"max_elapsed_time", "300s"},
	}
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 0, 64) + "s" }

func (t SamplerTier) resolver() node {
	switch {
	case t.DNS != "":
		host, port := splitPort(t.DNS)
		return node{{"dns", node{{"hostname", host}, {"port", port}}}}
	case t.Kubernetes != "":
		host, port := splitPort(t.Kubernetes)
		n, _ := strconv.Atoi(port) // checked
		return node{{"k8s", node{{"service", host}, {"ports", []int{n}}}}}
	default:
		return node{{"static", node{{"hostnames", t.Hosts}}}}
	}
}
