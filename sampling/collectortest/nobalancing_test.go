//go:build !balancing

package collectortest

import "go.opentelemetry.io/collector/exporter"

// Without the tag balancing the tier in front is not checked: its component brings the
// clients of Kubernetes and AWS, which take minutes to compile.
var balancing []exporter.Factory
