package genaitrace

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// WithContent sets how much of prompts, answers and tool calls is written; see
// package content. Default: what the environment variable
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says, else [content.Off].
// [ContextWithContent] says otherwise for single requests. content.Hash needs
// [WithHashKey], and is Off without one. Handles take content from their Set methods
// alone: the HTTP and gRPC middleware reads none.
func WithContent(level content.Level) Option {
	return optionFunc(func(c config) config {
		if !level.Valid() {
			c.err = errors.Join(c.err, fmt.Errorf("WithContent: %v is no level: want content.Off, Hash, Redacted or Full", level))
			return c
		}
		c.contentLevel, c.levelChosen = level, true
		return c
	})
}

// WithContentPlace sets where content is written. Default: what the environment
// variable of [WithContent] says, else [content.OnEvents], which needs a
// [WithLoggerProvider].
func WithContentPlace(place content.Place) Option {
	return optionFunc(func(c config) config {
		if !place.Valid() {
			c.err = errors.Join(c.err, fmt.Errorf("WithContentPlace: %v is no place: want content.OnEvents, OnSpans or OnEventsAndSpans", place))
			return c
		}
		c.contentPlace = place
		return c
	})
}

// WithContentLimit sets how long one value of content may be, in bytes of JSON, from
// [content.MinLimit] to [content.MaxLimit]. Default: [content.DefaultLimit].
// Exporters drop whole batches that are too long, and backends cut what is longer
// than they keep.
func WithContentLimit(bytes int) Option {
	return optionFunc(func(c config) config {
		if bytes < content.MinLimit || bytes > content.MaxLimit {
			c.err = errors.Join(c.err, fmt.Errorf("WithContentLimit: limit is %d: want %d to %d", bytes, content.MinLimit, content.MaxLimit))
			return c
		}
		c.sanitizer.Limit = bytes
		return c
	})
}

// WithRedactors adds redactors of your own to the built-in ones of
// [content.Redacted]. One that returns an error or panics costs the value that it
// was to redact, which is counted in genai.telemetry.faults.
func WithRedactors(redactors ...content.Redactor) Option {
	return optionFunc(func(c config) config {
		for _, r := range redactors {
			if r.Redact == nil {
				c.err = errors.Join(c.err, fmt.Errorf("WithRedactors: redactor %q has no function", r.Name))
				continue
			}
			c.sanitizer.Redactors = append(c.sanitizer.Redactors[:len(c.sanitizer.Redactors):len(c.sanitizer.Redactors)], r)
		}
		return c
	})
}

// WithHashKey sets the key of genai.prompt.hash and of [content.Hash]; see
// [content.NewHasher]. Default: none, and then no hash is written.
func WithHashKey(key []byte) Option {
	return optionFunc(func(c config) config {
		h, err := content.NewHasher(key)
		if err != nil {
			c.err = errors.Join(c.err, fmt.Errorf("WithHashKey: %w", err))
			return c
		}
		c.sanitizer.Hasher = h
		return c
	})
}

// contentFromEnvironment fills in what no option says.
func (c config) contentFromEnvironment() config {
	level, place, err := content.ParseVariable(os.Getenv(content.Variable))
	if err != nil && !c.levelChosen {
		c.err = errors.Join(c.err, err)
	}
	if !c.levelChosen {
		c.contentLevel = level
	}
	if c.contentPlace == 0 {
		c.contentPlace = place
	}
	if c.contentLevel == content.Hash && c.sanitizer.Hasher == nil {
		c.err = errors.Join(c.err, errors.New("WithContent: content.Hash needs a key: add WithHashKey"))
		c.contentLevel = content.Off
	}
	return c
}

// ContextWithContent says how much content is written for what starts in the
// returned context, whatever the Tracer says: of a tenant that asked for none, or of
// a request that is looked into. The inner of two wins; a level that is none counts
// as [content.Off]. It stays in the process.
func ContextWithContent(ctx context.Context, level content.Level) context.Context {
	if !level.Valid() {
		level = content.Off
	}
	return context.WithValue(ctx, contentKey, level)
}

// Hash returns the keyed hash of a text, as genai.retriever.query_hash has it, and as
// the ContextHash of a prompt chain should; see [content.Hasher.Text]. It is empty
// without [WithHashKey].
func (t *Tracer) Hash(text string) string {
	if t == nil || t.content == nil {
		return ""
	}
	return t.content.Hasher.Text(text)
}

// contentPolicy is what a Tracer does with content.
type contentPolicy struct {
	content.Sanitizer

	level content.Level
	place content.Place
}

// contentFor says what is written of content of a span, and where; no place is
// nothing at all. event is what would carry it; nil where nothing would.
func (t *Tracer) contentFor(ctx context.Context, span trace.Span, event *logEvent) (content.Level, content.Place) {
	if t.content == nil {
		return content.Off, 0
	}
	level := t.content.level
	if chosen, ok := ctx.Value(contentKey).(content.Level); ok {
		level = chosen
	}
	if level == content.Off {
		return level, 0
	}
	place := t.content.place
	if !span.IsRecording() {
		place &^= content.OnSpans
	}
	if place&content.OnEvents != 0 && (event == nil || !t.logs.enabled(ctx, event)) {
		place &^= content.OnEvents
	}
	return level, place
}

// An Input is what a model is given. It is content: what is written of it says
// [WithContent].
type Input struct {
	// Instructions are the system instructions, where they are apart from the
	// messages.
	Instructions genaiconv.Parts
	// Messages are the messages, oldest first.
	Messages []genaiconv.Message
	// Tools are the tools that the model may call.
	Tools []genaiconv.ToolDefinition
}

// contentKinds are the values of a request.
const (
	contentInstructions = iota
	contentInput
	contentOutput
	contentTools
	contentKinds
)

var contentKeys = [contentKinds]attribute.Key{
	contentInstructions: genaiconv.SystemInstructionsKey,
	contentInput:        genaiconv.InputMessagesKey,
	contentOutput:       genaiconv.OutputMessagesKey,
	contentTools:        genaiconv.ToolDefinitionsKey,
}

// contentNotes is the content of a request, as it may be written.
type contentNotes struct {
	place  content.Place
	values [contentKinds]content.Value
}

// sanitizeInput is what may be written of an input.
func (t *Tracer) sanitizeInput(ctx context.Context, level content.Level, in *Input) (notes contentNotes) {
	if in.Instructions != nil {
		v, err := t.content.Instructions(level, in.Instructions)
		notes.values[contentInstructions] = t.sanitized(ctx, v, err)
	}
	if in.Messages != nil {
		v, err := t.content.Messages(level, in.Messages)
		notes.values[contentInput] = t.sanitized(ctx, v, err)
	}
	if in.Tools != nil {
		v, err := t.content.Tools(level, in.Tools)
		notes.values[contentTools] = t.sanitized(ctx, v, err)
	}
	return notes
}

// sanitized counts content that had to be dropped.
func (t *Tracer) sanitized(ctx context.Context, v content.Value, err error) content.Value {
	if err != nil {
		t.metrics.fault(ctx, semconv.GenAIFaultContent, err)
	}
	return v
}

// merge takes over what is known of later content.
func (n *contentNotes) merge(later contentNotes, place content.Place) *contentNotes {
	if n == nil {
		n = &contentNotes{}
	}
	n.place |= place
	for i, v := range later.values {
		if v.Present() {
			n.values[i] = v
		}
	}
	return n
}

// appendTo appends the content that has this place.
func (n *contentNotes) appendTo(attrs []attribute.KeyValue, place content.Place) []attribute.KeyValue {
	if n == nil || n.place&place == 0 {
		return attrs
	}
	truncated := false
	for i, v := range n.values {
		if !v.Present() {
			continue
		}
		truncated = truncated || v.Truncated
		if place == content.OnSpans {
			attrs = append(attrs, contentKeys[i].String(v.JSON()))
		} else {
			attrs = append(attrs, attribute.KeyValue{Key: contentKeys[i], Value: v.Structured()})
		}
	}
	if truncated {
		attrs = append(attrs, semconv.GenAIContentTruncated(true))
	}
	return attrs
}

// SetInput notes what the model is given, as far as the content policy lets it; by
// default nothing is read. It is made safe at once, and nothing of the input is kept.
// What is set here replaces what was before.
func (c *Call) SetInput(in Input) {
	if c == nil || c.t == nil || c.gateway || c.done.Load() {
		return
	}
	level, place := c.t.contentFor(c.ctx, c.span, detailsEvent)
	if place == 0 {
		return
	}
	c.noteContent(c.t.sanitizeInput(c.ctx, level, &in), place)
}

// SetOutput notes the messages of the answer, one a choice; see [Call.SetInput]. A
// stream has them once it is complete.
func (c *Call) SetOutput(messages []genaiconv.Message) {
	if c == nil || c.t == nil || c.gateway || c.done.Load() {
		return
	}
	level, place := c.t.contentFor(c.ctx, c.span, detailsEvent)
	if place == 0 {
		return
	}
	var notes contentNotes
	v, err := c.t.content.Messages(level, messages)
	notes.values[contentOutput] = c.t.sanitized(c.ctx, v, err)
	c.noteContent(notes, place)
}

// KeepsContent reports whether SetInput and SetOutput would keep something. Who has to
// put an answer together from its pieces, only to give it to SetOutput, asks first.
func (c *Call) KeepsContent() bool {
	if c == nil || c.t == nil || c.gateway || c.done.Load() {
		return false
	}
	_, place := c.t.contentFor(c.ctx, c.span, detailsEvent)
	return place != 0
}

func (c *Call) noteContent(notes contentNotes, place content.Place) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done.Load() {
		c.content = c.content.merge(notes, place)
	}
}

// SetInput notes what the model is given; see [Call.SetInput]. In the process that
// runs the model it goes on the event genai.completion, since the conventions' event
// is the caller's.
func (inf *Inference) SetInput(in Input) {
	if inf == nil || inf.t == nil {
		return
	}
	level, place := inf.t.contentFor(inf.ctx, inf.span, completionEvent)
	if place == 0 {
		return
	}
	inf.noteContent(inf.t.sanitizeInput(inf.ctx, level, &in), place)
}

// SetOutput notes the messages of the answer, one a choice; see [Call.SetInput].
func (inf *Inference) SetOutput(messages []genaiconv.Message) {
	if inf == nil || inf.t == nil {
		return
	}
	level, place := inf.t.contentFor(inf.ctx, inf.span, completionEvent)
	if place == 0 {
		return
	}
	var notes contentNotes
	v, err := inf.t.content.Messages(level, messages)
	notes.values[contentOutput] = inf.t.sanitized(inf.ctx, v, err)
	inf.noteContent(notes, place)
}

func (inf *Inference) noteContent(notes contentNotes, place content.Place) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.content = inf.content.merge(notes, place)
	}
}
