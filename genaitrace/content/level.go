package content

import (
	"fmt"
	"strings"
)

// A Level says how much of content is written.
type Level uint8

// The levels.
const (
	Off      Level = iota // nothing
	Hash                  // structure and keyed hashes
	Redacted              // texts without what the redactors find
	Full                  // texts as they are
)

var levelNames = [...]string{"off", "hash", "redacted", "full"}

// Valid reports whether l is one of the constants.
func (l Level) Valid() bool { return int(l) < len(levelNames) }

// String returns the name of the level, such as "redacted".
func (l Level) String() string {
	if !l.Valid() {
		return fmt.Sprintf("Level(%d)", uint8(l))
	}
	return levelNames[l]
}

// A Place says on what content is written.
type Place uint8

// The places. Structured values go on events; spans get them as JSON, since many
// backends take nothing else there.
const (
	OnEvents Place = 1 << iota
	OnSpans
	OnEventsAndSpans = OnEvents | OnSpans
)

// Valid reports whether p is one of the constants.
func (p Place) Valid() bool { return p >= OnEvents && p <= OnEventsAndSpans }

// String returns the name of the place, such as "events".
func (p Place) String() string {
	switch p {
	case OnEvents:
		return "events"
	case OnSpans:
		return "spans"
	case OnEventsAndSpans:
		return "events and spans"
	}
	return fmt.Sprintf("Place(%d)", uint8(p))
}

// Variable is the environment variable that turns the capture of content on for
// instrumentations of GenAI.
const Variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// ParseVariable reads a value of [Variable], in any case:
//
//	empty, NO_CONTENT, false   Off
//	SPAN_ONLY                  Redacted, on spans
//	EVENT_ONLY, true           Redacted, on events
//	SPAN_AND_EVENT             Redacted, on both
//
// The conventions name the variable and let an instrumentation filter what it
// captures; so the variable says where content goes, and to write it as it is takes
// a decision in code. Any other value is an error, and Off.
func ParseVariable(value string) (Level, Place, error) {
	switch strings.ToUpper(strings.TrimSpace(value)) {
	case "", "NO_CONTENT", "FALSE":
		return Off, OnEvents, nil
	case "SPAN_ONLY":
		return Redacted, OnSpans, nil
	case "EVENT_ONLY", "TRUE":
		return Redacted, OnEvents, nil
	case "SPAN_AND_EVENT":
		return Redacted, OnEventsAndSpans, nil
	}
	return Off, OnEvents, fmt.Errorf("%s: want NO_CONTENT, SPAN_ONLY, EVENT_ONLY, SPAN_AND_EVENT, true or false", Variable)
}
