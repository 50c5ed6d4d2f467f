package genaitrace_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// recordWith is record with options for the Tracer.
func recordWith(t *testing.T, options []genaitrace.Option, opts ...sdktrace.TracerProviderOption) *recording {
	t.Helper()
	r := record(t, opts...)
	r.Tracer = genaitrace.New(append(providers(r), options...)...)
	return r
}

// startRecorder remembers what spans started with.
type startRecorder struct {
	mu    sync.Mutex
	attrs map[trace.SpanID][]attribute.KeyValue
}

func (s *startRecorder) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attrs[span.SpanContext().SpanID()] = slices.Clone(span.Attributes())
}
func (*startRecorder) OnEnd(sdktrace.ReadOnlySpan)      {}
func (*startRecorder) Shutdown(context.Context) error   { return nil }
func (*startRecorder) ForceFlush(context.Context) error { return nil }

func TestEverySpanOfTheRegistryIsPairedWithWhatRecordsIt(t *testing.T) {
	known := map[string]bool{}
	for span := range semconv.Spans() {
		if span.AliasOf != "" || span.Deprecated != "" {
			continue
		}
		known[span.Type] = true
		p, ok := pairings[span.Type]
		require.True(t, ok, "%s: pair it with the function that records it, or say what it waits for", span.Type)
		if p.later != "" {
			continue
		}
		assertMethod(t, p.by)
		for way, err := range map[string]error{"ends well": nil, "fails": typedError("device_lost")} {
			for _, level := range []content.Level{content.Off, content.Full} {
				t.Run(span.Type+"/"+way+", content "+level.String(), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { p.check(t, span, err, level) })
				})
			}
		}
	}
	for name := range pairings {
		assert.True(t, known[name], "%s is no span of the registry", name)
	}
}

func TestEveryEventOfTheRegistryIsPairedWithWhatRecordsIt(t *testing.T) {
	known := map[string]bool{}
	for event := range semconv.Events() {
		if event.AliasOf != "" || event.Deprecated != "" {
			continue
		}
		known[event.Name] = true
		p, ok := eventPairings[event.Name]
		require.True(t, ok, "%s: pair it with the function that records it, or say what it waits for", event.Name)
		if p.later != "" {
			continue
		}
		assertMethod(t, p.by)
		t.Run(event.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged := capture.NewRecorder()
				r := recordWith(t, []genaitrace.Option{
					genaitrace.WithStepEvents(8), genaitrace.WithLoggerProvider(logged.LoggerProvider()),
					genaitrace.WithContent(content.Full), genaitrace.WithHashKey(testKey),
				})
				p.run(t.Context(), r)
				if event.Log {
					p.checkLog(t, event, logged)
					return
				}
				var found []sdktrace.Event
				for _, s := range r.recorder.Ended() {
					found = append(found, seen{s, t}.events(event.Name)...)
				}
				require.NotEmpty(t, found)
				for _, a := range event.Attributes {
					if a.Level != semconv.LevelOptIn {
						assert.Contains(t, keys(found[0].Attributes), string(a.Key))
					}
				}
				assert.Len(t, found[0].Attributes, len(event.Attributes), "no others")
			})
		})
	}
	for name := range eventPairings {
		assert.True(t, known[name], "%s is no event of the registry", name)
	}
}

// checkLog checks that the record has what the registry says, and nothing that it does
// not know.
func (p eventPairing) checkLog(t *testing.T, event semconv.Event, logged *capture.Recorder) {
	got, err := logged.Capture(t.Context())
	require.NoError(t, err)
	i := slices.IndexFunc(got.Logs, func(l *capture.Log) bool { return l.EventName == event.Name })
	require.GreaterOrEqual(t, i, 0)
	record := got.Logs[i]
	if event.Severity > 0 {
		assert.Equal(t, event.Severity, record.Severity)
	}
	for _, a := range event.Attributes {
		house := strings.HasPrefix(event.Name, "genai.")
		if a.Level == semconv.LevelRequired || a.Level != semconv.LevelOptIn && (house || len(event.Attributes) < 10) {
			assert.Equal(t, !slices.Contains(p.without, a.Key), record.Attributes.Has(a.Key), a.Key)
		}
	}
	for _, kv := range record.Attributes {
		known, ok := semconv.Lookup(kv.Key)
		assert.True(t, ok && known.Deprecated == "", "%s is no key of the registry", kv.Key)
		listed := slices.ContainsFunc(event.Attributes, func(a semconv.Requirement) bool { return a.Key == kv.Key })
		request := slices.ContainsFunc(inferenceSpan().Attributes, func(a semconv.Requirement) bool { return a.Key == kv.Key })
		assert.True(t, listed || known.Origin == semconv.OriginHouse && !strings.HasPrefix(event.Name, "genai.") || request, "%s is not listed for %s", kv.Key, event.Name)
	}
}

func inferenceSpan() semconv.Span {
	span, _ := semconv.LookupSpan("gen_ai.client.inference")
	return span
}

func (p pairing) check(t *testing.T, want semconv.Span, err error, level content.Level) {
	starts := &startRecorder{attrs: map[trace.SpanID][]attribute.KeyValue{}}
	r := recordWith(t, []genaitrace.Option{
		genaitrace.WithStepEvents(8), genaitrace.WithContent(level), genaitrace.WithContentPlace(content.OnSpans),
	}, sdktrace.WithSpanProcessor(starts))
	p.run(genaitrace.ContextWith(t.Context(), p.facts...), r, err)
	s := r.span(p.name)
	assert.Empty(t, r.faults())

	assert.Equal(t, want.Kind, s.SpanKind(), "kind")
	assert.Equal(t, string(want.Role), s.text(semconv.GenAISpanRoleKey), "role")
	assert.Equal(t, err != nil, s.Status().Code == codes.Error, "status")
	if want.Type != semconv.SpanGatewayRequest { // named by its route
		assert.Equal(t, nameOf(want, s), s.Name())
	}
	recognized, ok := semconv.RecognizeSpan(s.Name(), s.SpanKind(), s.get)
	assert.True(t, ok && recognized.Type == want.Type, "recognized as %s", recognized.Type)

	for _, a := range want.Attributes {
		has := s.hasAny(a.Key)
		if known, _ := semconv.Lookup(a.Key); known.Content {
			assert.Equal(t, level != content.Off && p.reason(a.Key) == "", has, "%s is content", a.Key)
			continue
		}
		if a.Level == semconv.LevelOptIn {
			continue
		}
		verdict := a.When.Check(a.Key, err != nil, s.get)
		switch reason := p.reason(a.Key); {
		case reason != "":
			assert.False(t, has, "%s is recorded: it needs no excuse (%s)", a.Key, reason)
		case verdict == semconv.Fails:
			assert.False(t, has, "%s is for %s", a.Key, a.If)
		default: // every fact is known
			assert.True(t, has, "%s is %s, and absent", a.Key, a.Level)
		}
		if a.Sampling && has {
			start := seen{startedWith{s.ReadOnlySpan, starts.attrs[s.SpanContext().SpanID()]}, t}
			assert.True(t, start.hasAny(a.Key), "%s is for samplers, and comes after the start", a.Key)
		}
	}
	p.checkNothingElse(t, want, s)
}

// checkNothingElse checks that the registry knows each attribute of the span, and
// that a span of the house has no others than its own.
func (p pairing) checkNothingElse(t *testing.T, want semconv.Span, s seen) {
	for _, kv := range s.Attributes() {
		a, ok := semconv.Lookup(kv.Key)
		assert.True(t, ok && a.Deprecated == "" && a.AliasOf == "", "%s is no key of the registry", kv.Key)
		listed := slices.ContainsFunc(want.Attributes, func(r semconv.Requirement) bool {
			return slices.Contains(spellings(r.Key), kv.Key)
		})
		if strings.HasPrefix(want.Type, "gen_ai.") {
			listed = listed || a.Origin == semconv.OriginHouse || a.Key == genaiconv.RequestStreamKey ||
				a.Key == genaiconv.EmbeddingsDimensionCountKey // of the vectors that a search compares
		}
		if want.Type == semconv.SpanGatewayRequest { // HTTP and the stream have keys of their own
			listed = listed || a.Origin == semconv.OriginHouse
		}
		assert.True(t, listed, "%s is not listed for %s", kv.Key, want.Type)
	}
}

func (p pairing) reason(key attribute.Key) string {
	for reason, keys := range p.without {
		for _, k := range keys {
			prefix, family := strings.CutSuffix(string(k), "*")
			if k == key || family && strings.HasPrefix(string(key), prefix) {
				return reason
			}
		}
	}
	return ""
}

// nameOf is the name that the registry gives to a span with these attributes.
func nameOf(want semconv.Span, s seen) string {
	for _, format := range want.Names {
		name := format
		for _, kv := range s.Attributes() {
			name = strings.ReplaceAll(name, "{"+string(kv.Key)+"}", kv.Value.String())
		}
		if !strings.Contains(name, "{") {
			return name
		}
	}
	return want.Type
}

// spellings are a key and its twin, if any.
func spellings(key attribute.Key) []attribute.Key {
	keys := []attribute.Key{key}
	for a := range semconv.All() {
		if a.Origin == semconv.OriginHouse && a.Official != "" && a.Deprecated == "" {
			switch key {
			case a.Key:
				keys = append(keys, a.Official)
			case a.Official:
				keys = append(keys, a.Key)
			}
		}
	}
	return keys
}

func (s seen) hasAny(key attribute.Key) bool { return slices.ContainsFunc(spellings(key), s.has) }

func (s seen) get(key attribute.Key) (attribute.Value, bool) {
	for _, spelling := range spellings(key) {
		if s.has(spelling) {
			return s.value(spelling), true
		}
	}
	return attribute.Value{}, false
}

// startedWith is a span with the attributes that it started with.
type startedWith struct {
	sdktrace.ReadOnlySpan

	attrs []attribute.KeyValue
}

func (s startedWith) Attributes() []attribute.KeyValue { return s.attrs }

// assertMethod checks that a method of that name exists.
func assertMethod(t *testing.T, name string) {
	t.Helper()
	of, method, _ := strings.Cut(name, ".")
	for _, handle := range []any{&genaitrace.Tracer{}, &genaitrace.Inference{}, &genaitrace.Phase{}, &genaitrace.Decode{}, &genaitrace.Call{}} {
		if typ := reflect.TypeOf(handle); typ.Elem().Name() == of {
			_, ok := typ.MethodByName(method)
			assert.True(t, ok, "there is no %s", name)
			return
		}
	}
	assert.Fail(t, "no such type", name)
}
