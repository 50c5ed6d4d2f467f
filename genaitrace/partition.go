package genaitrace

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

// A part is one share of the time to first token.
type part uint8

const (
	partQueue part = iota
	partTokenize
	partSchedule
	partPrefill
	partEmit
	partCount // also the mark of phases that are no part of it
)

var partKeys = [partCount]attribute.Key{
	partQueue:    semconv.GenAITTFTQueueMsKey,
	partTokenize: semconv.GenAITTFTTokenizeMsKey,
	partSchedule: semconv.GenAITTFTScheduleMsKey,
	partPrefill:  semconv.GenAITTFTPrefillMsKey,
	partEmit:     semconv.GenAITTFTEmitMsKey,
}

// An interval is when a part ran, in nanoseconds since arrival.
type interval struct {
	part       part
	start, end int64
}

// A partition says where the time to first token went.
type partition struct {
	parts        [partCount]int64
	known        [partCount]bool
	unattributed int64
}

// partitionTTFT splits [0, ttft] among intervals: each is clipped to it, and
// where two overlap the later start wins, or the later in the slice where both
// start together. Emit runs from the end of the last prefill that started before
// the first output to that output. The parts and the rest sum up to ttft exactly.
func partitionTTFT(intervals []interval, ttft int64) partition {
	var p partition
	prefillEnd := int64(-1)
	var space [12]interval // without allocation for the usual number of phases
	clipped := space[:0]
	for _, iv := range intervals {
		if iv.part >= partEmit {
			continue
		}
		p.known[iv.part] = true
		if iv.part == partPrefill && iv.start <= ttft {
			prefillEnd = max(prefillEnd, iv.end)
		}
		clipped = append(clipped, iv)
	}
	if prefillEnd >= 0 {
		p.known[partEmit] = true
		clipped = append(clipped, interval{partEmit, prefillEnd, ttft})
	}
	var cutSpace [26]int64
	cuts := append(cutSpace[:0], 0, ttft)
	for i := range clipped {
		iv := &clipped[i]
		iv.start, iv.end = max(iv.start, 0), min(iv.end, ttft)
		if iv.start < iv.end {
			cuts = append(cuts, iv.start, iv.end)
		}
	}
	slices.Sort(cuts)
	for i := 1; i < len(cuts); i++ {
		from, to := cuts[i-1], cuts[i]
		owner := -1
		for j, iv := range clipped {
			if iv.start <= from && to <= iv.end && (owner < 0 || iv.start >= clipped[owner].start) {
				owner = j
			}
		}
		if owner < 0 {
			p.unattributed += to - from
			continue
		}
		p.parts[clipped[owner].part] += to - from
	}
	return p
}

// appendTo appends the parts that were observed. Without any, the rest would
// say nothing that llm.ttft_ms does not.
func (p *partition) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	observed := false
	for i, known := range p.known {
		if known {
			observed = true
			attrs = append(attrs, partKeys[i].Float64(ms(p.parts[i])))
		}
	}
	if observed {
		attrs = append(attrs, semconv.GenAITTFTUnattributedMs(ms(p.unattributed)))
	}
	return attrs
}
