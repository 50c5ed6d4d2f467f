package propagation

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

const (
	// maxMembers is the number of members a tracestate may have.
	maxMembers = 32
	// maxMemberLen is the length of the longest member: a key and a value of
	// 256 characters each and the "=" between them.
	maxMemberLen = 256 + 1 + 256
	// maxListLen is the length of the longest tracestate. What is behind it
	// could only be surplus, and is not even looked at.
	maxListLen = maxMembers*(maxMemberLen+1) - 1
	// maxRefused bounds the work that a list of unreadable members can cause.
	maxRefused = 2 * maxMembers
)

// parseTraceState reads the readable members of a tracestate list.
func parseTraceState(list string) trace.TraceState {
	if list == "" {
		return trace.TraceState{}
	}
	list = clipList(list)
	state, err := trace.ParseTraceState(list)
	if err != nil {
		// A repaired list has readable members only; were it refused all the
		// same, the state would be empty.
		state, _ = trace.ParseTraceState(repairList(list))
	}
	return state
}

// clipList cuts list between two members, so that it is no longer than
// maxListLen.
func clipList(list string) string {
	if len(list) <= maxListLen {
		return list
	}
	return list[:max(0, strings.LastIndexByte(list[:maxListLen+1], ','))]
}

// repairList returns list without the members that trace.ParseTraceState
// refuses, without all but the left-most of several with the same key, which
// is the newest, and without those that are too many.
func repairList(list string) string {
	var (
		repaired strings.Builder
		keys     = make([]string, 0, maxMembers)
		refused  int
	)
	for member := range strings.SplitSeq(list, ",") {
		member = trimOWS(member)
		if member == "" {
			continue
		}
		key, _, _ := strings.Cut(member, "=")
		if slices.Contains(keys, key) {
			continue
		}
		if _, err := trace.ParseTraceState(member); err != nil {
			if refused++; refused == maxRefused {
				break
			}
			continue
		}
		if len(keys) > 0 {
			repaired.WriteByte(',')
		}
		repaired.WriteString(member)
		if keys = append(keys, key); len(keys) == maxMembers {
			break
		}
	}
	return repaired.String()
}
