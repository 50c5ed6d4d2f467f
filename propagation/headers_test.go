package propagation_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// headerCase is one entry of testdata/headers.json: what a request carries and
// what must be read from it.
type headerCase struct {
	Name      string      `json:"name"`
	Why       string      `json:"why"`
	Transport string      `json:"transport"` // http or grpc
	Headers   [][2]string `json:"headers"`
	HexValues bool        `json:"hexValues"` // values are bytes in hexadecimal

	Parent  *parent           `json:"parent"` // null: there is no valid parent
	Baggage map[string]string `json:"baggage"`
}

type parent struct {
	TraceID    string `json:"traceID"`
	SpanID     string `json:"spanID"`
	Flags      string `json:"flags"`
	TraceState string `json:"tracestate"`
}

// lostTraceState lists the cases whose tracestate is legal but lost, and why.
// The rest of each case holds.
var lostTraceState = map[string]string{
	"ts_l2_key_digit": "trace.TraceState has the key grammar of Level 1: a letter first, one @ at most",
}

func TestHeadersAreReadAsTheirFormatDemands(t *testing.T) {
	for _, tc := range readHeaderCases(t) {
		format, _, _ := strings.Cut(tc.Name, "_")
		propagators := map[string]otelprop.TextMapPropagator{
			"bridge": propagation.New(propagation.WithTraceBin()),
		}
		switch format {
		case "tp", "ts":
			propagators["W3C"] = propagation.W3C{}
			propagators["default bridge"] = propagation.New()
		case "gtb":
			propagators["TraceBin"] = propagation.TraceBin{}
		}
		for pname, p := range propagators {
			for cname, carrier := range tc.carriers(t) {
				t.Run(tc.Name+"/"+pname+"/"+cname, func(t *testing.T) {
					got := p.Extract(context.Background(), carrier)
					tc.check(t, got)
				})
			}
		}
	}
}

func TestEveryLostTraceStateIsACase(t *testing.T) {
	names := map[string]bool{}
	for _, tc := range readHeaderCases(t) {
		names[tc.Name] = true
	}
	for name := range lostTraceState {
		assert.True(t, names[name], "%s is not in testdata/headers.json", name)
	}
}

func readHeaderCases(t *testing.T) []headerCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/headers.json")
	require.NoError(t, err)
	var cases []headerCase
	require.NoError(t, json.Unmarshal(raw, &cases))
	for i, tc := range cases {
		if !tc.HexValues {
			continue
		}
		for j, kv := range tc.Headers {
			value, err := hex.DecodeString(kv[1])
			require.NoError(t, err, tc.Name)
			cases[i].Headers[j][1] = string(value)
		}
	}
	return cases
}

// carriers returns every carrier that can hold the headers of tc.
func (tc headerCase) carriers(t *testing.T) map[string]otelprop.TextMapCarrier {
	t.Helper()
	header, md := http.Header{}, metadata.MD{}
	for _, kv := range tc.Headers {
		header.Add(kv[0], kv[1])
		md.Append(kv[0], kv[1])
	}
	switch tc.Transport {
	case "http":
		return map[string]otelprop.TextMapCarrier{
			"HTTPHeader":         propagation.HTTPHeader(header),
			"otel HeaderCarrier": otelprop.HeaderCarrier(header),
			"GRPCMetadata":       propagation.GRPCMetadata(md),
		}
	case "grpc":
		return map[string]otelprop.TextMapCarrier{
			"GRPCMetadata": propagation.GRPCMetadata(md),
		}
	default:
		t.Fatalf("%s: unknown transport %q", tc.Name, tc.Transport)
		return nil
	}
}

func (tc headerCase) check(t *testing.T, ctx context.Context) {
	t.Helper()
	sc := trace.SpanContextFromContext(ctx)
	if tc.Parent == nil {
		assert.False(t, sc.IsValid(), "there is a parent, but: %s", tc.Why)
	} else if assert.True(t, sc.IsValid(), "there is no parent, but: %s", tc.Why) {
		want := *tc.Parent
		if _, lost := lostTraceState[tc.Name]; lost {
			want.TraceState = ""
		}
		assert.Equal(t, want, parentOf(sc), tc.Why)
		assert.True(t, sc.IsRemote(), "the parent is not marked as remote")
	}
	if tc.Baggage != nil {
		got := map[string]string{}
		for _, m := range baggage.FromContext(ctx).Members() {
			got[m.Key()] = m.Value()
		}
		assert.Equal(t, tc.Baggage, got, tc.Why)
	}
}

func parentOf(sc trace.SpanContext) parent {
	return parent{
		TraceID:    sc.TraceID().String(),
		SpanID:     sc.SpanID().String(),
		Flags:      sc.TraceFlags().String(),
		TraceState: sc.TraceState().String(),
	}
}
