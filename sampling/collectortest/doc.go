// Package collectortest checks what sampling.CollectorConfig writes against the real
// components of the OpenTelemetry Collector, v0.161.0: their loaders of configuration, and
// Collectors that run in this process and judge the same traces as a Tail.
//
// It is a module of its own, outside of the workspace, so that nobody who imports the
// library gets the Collector's dependencies, and has tests only:
//
//	cd sampling/collectortest && GOWORK=off go test ./...
//
// The tier in front of the sampling one, and all tiers together, are behind a build tag:
// the exporter that balances brings the clients of Kubernetes and AWS, which take
// minutes to compile.
//
//	GOWORK=off go test -tags balancing ./...
//
// What both cost, side by side, which docs/sampling.md quotes, takes minutes and is
// behind a flag:
//
//	GOWORK=off go test -tags balancing -run SideBySide -sidebyside .
//
// The Collector's AWS resolver asks for a version of its SDK that the module proxies
// no longer have; go.mod asks for the next one.
package collectortest
