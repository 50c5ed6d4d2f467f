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
	partLoad
	partPreempted
	partCount // also the mark of phases that are no part of it
	partDecode
)

// A partSet is a set of parts.
type partSet uint16

func (s partSet) has(p part) bool     { return s&(1<<p) != 0 }
func (s partSet) with(p part) partSet { return s | 1<<p }

var partKeys = [partCount]attribute.Key{
	partQueue:     semconv.GenAITTFTQueueMsKey,
	partTokenize:  semconv.GenAITTFTTokenizeMsKey,
	partSchedule:  semconv.GenAITTFTScheduleMsKey,
	partPrefill:   semconv.GenAITTFTPrefillMsKey,
	partEmit:      semconv.GenAITTFTEmitMsKey,
	partLoad:      semconv.GenAITTFTLoadMsKey,
	partPreempted: semconv.GenAITTFTPreemptedMsKey,
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
// start together; but what was observed wins over what was only reported. Emit
// runs from the end of the last observed prefill that started before the first
// output to that output, and what starts with it wins over it. The parts and the
// rest sum up to ttft exactly.
func partitionTTFT(seen, reported []interval, ttft int64) partition {
	var p partition
	prefillEnd := int64(-1)
	var space [12]interval // without allocation for the usual number of phases
	clipped := space[:0]
	for _, iv := range reported {
		if iv.part < partCount {
			p.known[iv.part] = true
			clipped = append(clipped, iv)
		}
	}
	observed := len(clipped) // from here on
	for _, iv := range seen {
		if iv.part == partPrefill && iv.start <= ttft {
			prefillEnd = max(prefillEnd, iv.end)
		}
	}
	if prefillEnd >= 0 {
		p.known[partEmit] = true
		clipped = append(clipped, interval{partEmit, prefillEnd, ttft})
	}
	for _, iv := range seen {
		if iv.part < partCount {
			p.known[iv.part] = true
			clipped = append(clipped, iv)
		}
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
			if iv.start > from || to > iv.end {
				continue
			}
			if owner < 0 || owner < observed && j >= observed || iv.start >= clipped[owner].start {
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

// appendTo appends the parts that are known. Without any, the rest would
// say nothing that llm.ttft_ms does not.
func (p *partition) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	some := false
	for i, known := range p.known {
		if known {
			some = true
			attrs = append(attrs, partKeys[i].Float64(ms(p.parts[i])))
		}
	}
	if some {
		attrs = append(attrs, semconv.GenAITTFTUnattributedMs(ms(p.unattributed)))
	}
	return attrs
}
