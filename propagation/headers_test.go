package propagation_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// headerCase is one entry of testdata/headers.json: what a request or response
// carries and what must be read from it.
type headerCase struct {
	Name    string      `json:"name"`
	Carrier string      `json:"carrier"`
	Headers [][2]string `json:"headers"`
	Expect  expectation `json:"expect"`
	Why     string      `json:"why"`
}

type expectation struct {
	Source          *string            `json:"source"` // null: there is no parent
	Reject          string             `json:"reject"` // why there is none
	TraceID         string             `json:"trace_id"`
	SpanID          *string            `json:"span_id"` // null: a trace without a span
	Flags           string             `json:"flags"`
	TraceState      *string            `json:"tracestate"`
	TraceStateOneOf []string           `json:"tracestate_oneof"`
	Sampling        string             `json:"sampling"`
	Debug           bool               `json:"debug"`
	ParentSpanID    string             `json:"parent_span_id"`
	Original        string             `json:"original"`
	Conflict        []string           `json:"conflict"`
	PromptChain     json.RawMessage    `json:"prompt_chain"`
	CausalDeps      []string           `json:"causal_deps"`
	Link            string             `json:"link"`
	ForcedSample    *bool              `json:"forced_sample"`
	Baggage         map[string]string  `json:"baggage"`
	BaggageLen      *int               `json:"baggage_len"`
	BaggageMax      *int               `json:"baggage_max"`
	EngineMillis    map[string]float64 `json:"engine"`
	Load            map[string]float64 `json:"load"`
	RPC             string             `json:"rpc"`
}

var allFormats = []propagation.Format{
	propagation.W3C, propagation.TraceBin, propagation.B3, propagation.B3Multi, propagation.Jaeger,
	propagation.Contract, propagation.XTraceID, propagation.JaegerTraceID,
}

func TestEveryHeaderCaseIsReadAsExpected(t *testing.T) {
	for _, tc := range readHeaderCases(t) {
		t.Run(tc.Name, func(t *testing.T) {
			switch tc.Carrier {
			case "response":
				tc.checkResponse(t)
			case "grpc-limit-8192":
				tc.checkLimit(t)
			case "http-public":
				tc.checkRequest(t, propagation.New(
					propagation.WithFormats(allFormats...), propagation.WithPromptChain(), propagation.WithPublicEndpoint()))
			default:
				tc.checkRequest(t, propagation.New(
					propagation.WithFormats(allFormats...), propagation.WithPromptChain()))
			}
		})
	}
}

func readHeaderCases(t *testing.T) []headerCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/headers.json")
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields() // an expectation that nothing checks
	var cases []headerCase
	require.NoError(t, d.Decode(&cases))
	require.Len(t, cases, 75)
	return cases
}

// carriers returns every carrier that can hold the headers of tc.
func (tc headerCase) carriers(t *testing.T) map[string]otelprop.TextMapCarrier {
	t.Helper()
	header, md, text := http.Header{}, metadata.MD{}, propagation.Map{}
	var records []kafkaHeader
	repeated := false
	for _, kv := range tc.Headers {
		key, value := kv[0], kv[1]
		if tc.Carrier == "grpc-bin-hex" {
			raw, err := hex.DecodeString(value)
			require.NoError(t, err)
			value = string(raw)
		}
		header.Add(key, value)
		md.Append(key, value)
		records = append(records, kafkaHeader{key, []byte(value)})
		repeated = repeated || text[key] != ""
		text[key] = value
	}
	carriers := map[string]otelprop.TextMapCarrier{
		"HTTPHeader":         propagation.HTTPHeader(header),
		"otel HeaderCarrier": otelprop.HeaderCarrier(header),
		"GRPCMetadata":       propagation.GRPCMetadata(md),
	}
	if !repeated {
		carriers["Map"] = text
	}
	kafka := propagation.NewKafka(&records)
	switch tc.Carrier {
	case "http", "http-public", "ws":
		return carriers
	case "grpc":
		return map[string]otelprop.TextMapCarrier{"GRPCMetadata": propagation.GRPCMetadata(md), "Kafka": kafka}
	case "grpc-bin-hex":
		return map[string]otelprop.TextMapCarrier{"GRPCMetadata": propagation.GRPCMetadata(md), "Kafka": kafka, "Map": text}
	case "kafka":
		return map[string]otelprop.TextMapCarrier{"Kafka": kafka}
	case "ws-message":
		return map[string]otelprop.TextMapCarrier{"envelope": propagation.ReadEnvelope([]byte(tc.Headers[0][1]))}
	default:
		t.Fatalf("unknown carrier %q", tc.Carrier)
		return nil
	}
}

func (tc headerCase) checkRequest(t *testing.T, bridge *propagation.Bridge) {
	for name, carrier := range tc.carriers(t) {
		t.Run(name, func(t *testing.T) {
			ctx, got := bridge.Receive(context.Background(), carrier)
			tc.checkParent(t, ctx, got)
			tc.checkTraceState(t, ctx)
			tc.checkBaggage(t, ctx)
			tc.checkChain(t, ctx)
			tc.checkTrust(t, ctx)
		})
	}
}

func (tc headerCase) checkParent(t *testing.T, ctx context.Context, got propagation.Received) {
	t.Helper()
	want, sc := tc.Expect, trace.SpanContextFromContext(ctx)
	if want.Source == nil {
		assert.False(t, sc.HasTraceID(), "there is a parent, but: %s %s", want.Reject, tc.Why)
		assert.False(t, got.Parent)
		return
	}
	assert.Equal(t, *want.Source, got.Format.String())
	assert.Equal(t, sc, got.SpanContext)
	assert.True(t, got.Parent)
	assert.True(t, sc.IsRemote(), "the parent is not marked as remote")
	assert.Equal(t, want.TraceID, sc.TraceID().String(), tc.Why)
	if want.SpanID == nil {
		assert.False(t, sc.HasSpanID(), tc.Why)
	} else {
		assert.Equal(t, *want.SpanID, sc.SpanID().String(), tc.Why)
		assert.Equal(t, want.Flags, sc.TraceFlags().String(), tc.Why)
	}
	if want.Debug {
		want.Sampling = "debug"
	}
	if want.Sampling != "" {
		assert.Equal(t, want.Sampling, got.Sampling.String(), tc.Why)
	}
	assert.Equal(t, got.Sampling, propagation.SamplingFromContext(ctx))
	if want.ParentSpanID != "" {
		assert.Equal(t, want.ParentSpanID, got.ParentSpanID.String())
	}
	assert.Equal(t, want.Original, got.TraceName)
	var conflicts []string
	for _, c := range got.Conflicts {
		conflicts = append(conflicts, c.Source)
		if c.SpanContext.IsValid() {
			assert.Contains(t, propagation.Links(ctx), trace.Link{SpanContext: c.SpanContext}, "the losing context becomes a link")
		}
	}
	assert.ElementsMatch(t, want.Conflict, conflicts, tc.Why)
}

// checkTraceState looks at what the next hop gets, which is more than
// trace.TraceState can hold.
func (tc headerCase) checkTraceState(t *testing.T, ctx context.Context) {
	t.Helper()
	next := propagation.Map{}
	propagation.W3C.Inject(ctx, next)
	if tc.Expect.TraceState != nil {
		assert.Equal(t, *tc.Expect.TraceState, next["tracestate"], tc.Why)
	}
	if tc.Expect.TraceStateOneOf != nil {
		assert.Contains(t, tc.Expect.TraceStateOneOf, next["tracestate"], tc.Why)
	}
}

func (tc headerCase) checkBaggage(t *testing.T, ctx context.Context) {
	t.Helper()
	bag := baggage.FromContext(ctx)
	if tc.Expect.Baggage != nil {
		got := map[string]string{}
		for _, m := range bag.Members() {
			got[m.Key()] = m.Value()
		}
		assert.Equal(t, tc.Expect.Baggage, got, tc.Why)
	}
	if tc.Expect.BaggageLen != nil {
		assert.Equal(t, *tc.Expect.BaggageLen, bag.Len(), tc.Why)
	}
	if tc.Expect.BaggageMax != nil {
		assert.LessOrEqual(t, bag.Len(), *tc.Expect.BaggageMax, tc.Why)
	}
}

func (tc headerCase) checkChain(t *testing.T, ctx context.Context) {
	t.Helper()
	if tc.Expect.PromptChain == nil {
		return
	}
	var want []string
	require.NoError(t, json.Unmarshal(tc.Expect.PromptChain, &want))
	c, ok := propagation.PromptChainFromContext(ctx)
	assert.Equal(t, want != nil, ok, tc.Why)
	var names, causes []string
	for _, hop := range c.Hops {
		names = append(names, hop.Name)
	}
	for _, link := range c.Links() {
		assert.Equal(t, trace.SpanContextFromContext(ctx).TraceID(), link.SpanContext.TraceID())
		causes = append(causes, link.SpanContext.SpanID().String())
	}
	assert.Equal(t, want, names, tc.Why)
	assert.Equal(t, tc.Expect.CausalDeps, causes, tc.Why)
}

func (tc headerCase) checkTrust(t *testing.T, ctx context.Context) {
	t.Helper()
	if want := tc.Expect.Link; want != "" {
		links := propagation.Links(ctx)
		require.Len(t, links, 1, tc.Why)
		sc := links[0].SpanContext
		assert.Equal(t, want, sc.TraceID().String()+"/"+sc.SpanID().String(), tc.Why)
	}
	if want := tc.Expect.ForcedSample; want != nil {
		provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
		defer provider.Shutdown(context.Background())
		_, span := provider.Tracer("test").Start(ctx, "chat")
		assert.Equal(t, *want, span.SpanContext().IsSampled(), tc.Why)
	}
}

func (tc headerCase) checkResponse(t *testing.T) {
	for name, newCarrier := range transports {
		t.Run(name, func(t *testing.T) {
			fields := map[string][]string{}
			for _, kv := range tc.Headers {
				fields[strings.ToLower(kv[0])] = append(fields[strings.ToLower(kv[0])], kv[1])
			}
			c, _ := newCarrier(fields)
			got := propagation.ReadResponse(c)
			if tc.Expect.TraceID != "" {
				assert.Equal(t, tc.Expect.TraceID, got.SpanContext.TraceID().String(), tc.Why)
				assert.Equal(t, *tc.Expect.SpanID, got.SpanContext.SpanID().String(), tc.Why)
			}
			for key, ms := range tc.Expect.EngineMillis {
				name := key[:len(key)-len("_ms")]
				assert.Equal(t, time.Duration(ms*1e6), got.Durations[name], "%s: %s", key, tc.Why)
			}
			assert.Equal(t, tc.Expect.Load, got.Load, tc.Why)
		})
	}
}

// checkLimit sends what tc brought on to a server that takes 8 KiB.
func (tc headerCase) checkLimit(t *testing.T) {
	e := newEngine(t, 8<<10)
	header := http.Header{}
	for _, kv := range tc.Headers {
		header.Add(kv[0], kv[1])
	}
	bridge := propagation.New()
	ctx := bridge.Extract(t.Context(), propagation.HTTPHeader(header))
	require.Equal(t, 1, baggage.FromContext(ctx).Len(), "a gateway over HTTP gets it all")
	md, err := e.callContext(bridge.ToGRPC(ctx))
	require.NoError(t, err, "the RPC: %s", tc.Expect.RPC)
	assert.Equal(t, header["Traceparent"], md["traceparent"])
	assert.Equal(t, *tc.Expect.BaggageLen, len(md["baggage"]), tc.Why)
	assert.EqualValues(t, 1, bridge.Stats().ShedBaggageMembers)
}

type parent struct{ TraceID, SpanID, Flags, TraceState string }

func parentOf(sc trace.SpanContext) parent {
	return parent{
		TraceID:    sc.TraceID().String(),
		SpanID:     sc.SpanID().String(),
		Flags:      sc.TraceFlags().String(),
		TraceState: sc.TraceState().String(),
	}
}
