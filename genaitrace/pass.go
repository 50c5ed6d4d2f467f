package genaitrace

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

// maxPasses bounds the spans of forward passes and kernels of one inference. A
// decode phase has a pass a token: [Phase.RecordStep] is for those.
const maxPasses = 100

// maxDimensions bounds the dimensions of a tensor that a span tells of.
const maxDimensions = 8

var (
	forwardPhase = newPhaseKind(semconv.SpanModelForward, semconv.GenAISpanRoleForward, partCount, "")
	kernelPhase  = newPhaseKind(semconv.SpanDeviceKernel, semconv.GenAISpanRoleKernel, partCount, semconv.AIKernelDurationMsKey)
)

// inner reports whether phases of the kind run inside others.
func (k *phaseKind) inner() bool { return k == &forwardPhase || k == &kernelPhase }

// A Forward holds what is known of a forward pass when it starts. Zero values and
// nil fields are unknown.
type Forward struct {
	// StepID is the number of the scheduler's step.
	StepID *int
	// Tokens is how many tokens of the request the pass computes: those of a
	// piece of the prompt where prefill is chunked, else those that it generates.
	Tokens int
	// BatchSize is how many requests share the pass.
	BatchSize int
	// DeviceID is the index of the device as its driver counts it.
	DeviceID *int
	// TensorShape is the shape of the tensor that the pass works on, of 8
	// dimensions at most.
	TensorShape []int
}

var errForward = errors.New("forward pass: negative number, or tensor of more than 8 dimensions: dropped")

// attributes are what is known and sane.
func (f Forward) attributes() (attrs []attribute.KeyValue, sane bool) {
	attrs = make([]attribute.KeyValue, 0, 5)
	attrs = appendInt(attrs, semconv.GenAIStepIDKey, f.StepID)
	attrs = appendInt(attrs, semconv.AIGPUDeviceIDKey, f.DeviceID)
	if f.Tokens > 0 {
		attrs = append(attrs, semconv.GenAIStepTokens(f.Tokens))
	}
	if f.BatchSize > 0 {
		attrs = append(attrs, semconv.AIBatchSize(f.BatchSize))
	}
	sane = f.Tokens >= 0 && f.BatchSize >= 0
	switch {
	case len(f.TensorShape) == 0:
	case len(f.TensorShape) > maxDimensions || slices.Min(f.TensorShape) < 0:
		sane = false
	default:
		attrs = append(attrs, semconv.GenAITensorShape(slices.Clone(f.TensorShape)...))
	}
	return attrs, sane
}

// appendInt appends a number that may be unknown.
func appendInt(attrs []attribute.KeyValue, key attribute.Key, n *int) []attribute.KeyValue {
	if n == nil {
		return attrs
	}
	return append(attrs, key.Int(*n))
}

// A Kernel holds what is known of a device kernel when it starts. Empty values and
// nil fields are unknown.
type Kernel struct {
	// Name is the name of the kernel, or of the layer that it computes.
	Name string
	// StepID is the number of the scheduler's step.
	StepID *int
	// DeviceID is the index of the device as its driver counts it.
	DeviceID *int
	// StreamID is the number of the device stream that runs it.
	StreamID *int
}

func (k Kernel) attributes() (attrs []attribute.KeyValue) {
	attrs = make([]attribute.KeyValue, 0, 5) // and its duration
	if k.Name != "" {
		attrs = append(attrs, semconv.AIKernelName(boundCopy(k.Name, maxName)))
	}
	attrs = appendInt(attrs, semconv.GenAIStepIDKey, k.StepID)
	attrs = appendInt(attrs, semconv.AIGPUDeviceIDKey, k.DeviceID)
	return appendInt(attrs, semconv.AIGPUStreamIDKey, k.StreamID)
}

// StartForward starts a forward pass (model.forward) of a request that has no
// prefill or decode to belong to, such as one for embeddings; see
// [Phase.StartForward].
func (inf *Inference) StartForward(ctx context.Context, f Forward) (context.Context, *Phase) {
	return inf.startForward(ctx, nil, f)
}

// StartForward starts a forward pass inside the phase (model.forward): one for
// each piece of the prompt where prefill is chunked. It ends with its phase at the
// latest, and takes no share of the time to first token of its own.
//
// An inference has 100 spans of passes and kernels at most; what is more returns
// nil, costs nothing and is counted in genai.span.dropped_count. So the passes of
// a decode phase are better told by [Phase.RecordStep].
func (p *Phase) StartForward(ctx context.Context, f Forward) (context.Context, *Phase) {
	if p == nil {
		return ctx, nil
	}
	return p.inf.startForward(ctx, p, f)
}

// StartForward is [Phase.StartForward].
func (d *Decode) StartForward(ctx context.Context, f Forward) (context.Context, *Phase) {
	return d.phase().StartForward(ctx, f)
}

// StartKernel starts a device kernel, or a layer of the model, inside a forward
// pass or another phase (device.kernel). [Phase.StartForward] says how many there
// can be.
func (p *Phase) StartKernel(ctx context.Context, k Kernel) (context.Context, *Phase) {
	if p == nil || !p.inf.admitPass(p) {
		return ctx, nil
	}
	return p.inf.startPhase(ctx, &kernelPhase, Phase{around: p, facts: k.attributes()}, new(Phase))
}

// StartKernel is [Phase.StartKernel].
func (d *Decode) StartKernel(ctx context.Context, k Kernel) (context.Context, *Phase) {
	return d.phase().StartKernel(ctx, k)
}

func (inf *Inference) startForward(ctx context.Context, around *Phase, f Forward) (context.Context, *Phase) {
	if !inf.admitPass(around) {
		return ctx, nil
	}
	facts, sane := f.attributes()
	if !sane {
		inf.t.metrics.fault(ctx, semconv.GenAIFaultCount, errForward)
	}
	return inf.startPhase(ctx, &forwardPhase, Phase{around: around, facts: facts}, new(Phase))
}

// admitPass reports whether a pass or a kernel gets a span, and counts those that
// are too many. Passes have no metric, so they need a span that records.
func (inf *Inference) admitPass(around *Phase) bool {
	if inf == nil || inf.t == nil || !inf.span.IsRecording() {
		return false
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended || around.over() {
		return false
	}
	if inf.passes == maxPasses {
		inf.dropped++
		return false
	}
	inf.passes++
	return true
}

// stillOpen are the phases that run, those inside others first: none outlives the
// one around it. inf.mu is held.
func (inf *Inference) stillOpen() []*Phase {
	open := make([]*Phase, 0, len(inf.open))
	for _, p := range slices.Backward(inf.open) {
		if p.kind.inner() {
			open = append(open, p)
		}
	}
	for _, p := range inf.open {
		if !p.kind.inner() {
			open = append(open, p)
		}
	}
	return open
}

// over reports whether nothing starts inside p any more; in no phase, all does.
// inf.mu is held.
func (p *Phase) over() bool {
	for ; p != nil; p = p.around {
		if p.ending || p.ended {
			return true
		}
	}
	return false
}

// inside are the phases that run inside p, which is ending, the innermost first.
func (p *Phase) inside() (open []*Phase) {
	p.inf.mu.Lock()
	defer p.inf.mu.Unlock()
	p.ending = true
	if p.inf.passes == 0 {
		return nil
	}
	for _, q := range slices.Backward(p.inf.open) {
		for around := q.around; around != nil; around = around.around {
			if around == p {
				open = append(open, q)
				break
			}
		}
	}
	return open
}
