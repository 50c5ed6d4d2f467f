package genaitrace

import (
	"errors"
	"math"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/semconv"
)

// An Engine says what runs the model. Empty values and nil fields are unknown.
type Engine struct {
	// Backend is the software that runs the model, such as "vllm".
	Backend string
	// Quantization is the number format of the model's weights, such as "fp8".
	Quantization string
	// DecodingStrategy says how tokens are chosen, such as "greedy".
	DecodingStrategy string
	// DeviceID is the index of the device as its driver counts it.
	DeviceID *int
	// DeviceName is the model of the device, such as "NVIDIA H100".
	DeviceName string
}

// engineKeys are the keys of Backend, Quantization, DecodingStrategy, DeviceName.
var engineKeys = [...]attribute.Key{
	semconv.GenAIBackendTypeKey, semconv.GenAIQuantizationKey, semconv.GenAIDecodingStrategyKey, otelsemconv.HwModelKey,
}

// SetEngine notes what runs the model; known fields replace those of earlier
// calls. Quantization and DeviceName are dimensions of the metrics where
// [WithMetricDimensions] asks for them. The version of the model is in [Request.ModelVersion].
func (inf *Inference) SetEngine(e Engine) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	if !inf.ended {
		inf.learnEngine(e)
	}
	inf.mu.Unlock()
	if !inf.span.IsRecording() {
		return
	}
	for i, value := range [...]string{e.Backend, e.Quantization, e.DecodingStrategy, e.DeviceName} {
		if value != "" {
			inf.note(engineKeys[i].String(boundCopy(value, maxName)))
		}
	}
	if e.DeviceID != nil {
		inf.note(semconv.AIGPUDeviceID(*e.DeviceID))
	}
}

// note keeps a fact for the end.
func (inf *Inference) note(fact attribute.KeyValue) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.facts = noted(inf.facts, fact)
	}
}

// Resources holds what a phase had and took of the machine. nil fields are
// unknown; use new(n) for a known number, 0 included.
type Resources struct {
	// BatchSize is how many requests shared the forward passes; where they come
	// and go, the most at one time.
	BatchSize *int
	// BlocksAllocated and BlocksFreed count the blocks of the KV cache that the
	// request took and gave back, BlocksEvicted those of others that were
	// dropped to make room for it.
	BlocksAllocated, BlocksFreed, BlocksEvicted *int
	// DeviceAllocated is the device memory in use by tensors, DeviceReserved what
	// the allocator holds, in use or not, DeviceMaxReserved the highest value of
	// that so far. In bytes.
	DeviceAllocated, DeviceReserved, DeviceMaxReserved *int
	// HeapUsedRatio is the share of the heap in use, from 0 to 1.
	HeapUsedRatio *float64
	// NativeAllocRate is how much is allocated outside the heap, in bytes per
	// second.
	NativeAllocRate *float64
}

// resourceKeys are the keys of the counts and sizes of Resources, in their order.
// They stand apart from the values so that those need no heap.
var resourceKeys = [...]attribute.Key{
	semconv.AIBatchSizeKey,
	semconv.AIKVCacheBlocksAllocatedKey, semconv.AIKVCacheBlocksFreedKey, semconv.AIKVCacheBlocksEvictedKey,
	semconv.AIGPUMemoryAllocatedKey, semconv.AIGPUMemoryReservedKey, semconv.AIGPUMemoryMaxReservedKey,
}

var errResources = errors.New("resources: negative number, or share that is not between 0 and 1: dropped")

// SetResources notes what the phase had and took of the machine; known fields
// replace those of earlier calls. Wrong ones (negative, not finite, a share above
// 1) are dropped and counted.
func (p *Phase) SetResources(r Resources) {
	if p == nil || p.inf == nil || !p.span.IsRecording() {
		return
	}
	sane := true
	for i, value := range [...]*int{
		r.BatchSize, r.BlocksAllocated, r.BlocksFreed, r.BlocksEvicted,
		r.DeviceAllocated, r.DeviceReserved, r.DeviceMaxReserved,
	} {
		switch {
		case value == nil:
		case *value < 0:
			sane = false
		default:
			p.note(resourceKeys[i].Int(*value))
		}
	}
	if v := r.HeapUsedRatio; v != nil {
		if *v >= 0 && *v <= 1 { // which no NaN is
			p.note(semconv.AIMemoryHeapUsedRatio(*v))
		} else {
			sane = false
		}
	}
	if v := r.NativeAllocRate; v != nil {
		if *v >= 0 && *v <= math.MaxFloat64 {
			p.note(semconv.AIMemoryNativeAllocRate(*v))
		} else {
			sane = false
		}
	}
	if !sane {
		p.inf.t.metrics.fault(p.inf.ctx, semconv.GenAIFaultCount, errResources)
	}
}

// SetResources is [Phase.SetResources].
func (d *Decode) SetResources(r Resources) { d.phase().SetResources(r) }

// note keeps a fact for the end.
func (p *Phase) note(fact attribute.KeyValue) {
	p.inf.mu.Lock()
	defer p.inf.mu.Unlock()
	if !p.ended {
		p.facts = noted(p.facts, fact)
	}
}
