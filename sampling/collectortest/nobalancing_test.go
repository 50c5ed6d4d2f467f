//go:build !balancing

package collectortest

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/service/telemetry"
)

// Without the tag balancing the tier in front is not checked, and a Collector says nothing
// of itself: what does both brings the clients of Kubernetes and AWS, which take minutes
// to compile.
var (
	balancing    []exporter.Factory
	ownTelemetry = telemetry.NewFactory(func() component.Config {
		return &struct {
			Any map[string]any `mapstructure:",remain"`
		}{}
	})
)
