package propagation_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

func TestAResponseTellsThatItsTraceIsKept(t *testing.T) {
	for _, tt := range []struct {
		state string // of the server
		said  string // beside the trace
		read  string // by the caller
	}{
		{"genai=k:1;m:secret-model,ot=rv:12345678901234;th:0,vendor=secret", `genai;desc="k:1;th:0"`, "ot=th:0,genai=k:1"},
		{"genai=k:1", `genai;desc="k:1"`, "genai=k:1"},
		{"genai=k:1,ot=th:xyz", `genai;desc="k:1"`, "genai=k:1"},
		{"genai=k:1,ot=th:123456789012345", `genai;desc="k:1"`, "genai=k:1"},
		{"genai=k:0,ot=th:0", "", ""},
		{"ot=th:0", "", ""},
		{"", "", ""},
	} {
		t.Run(tt.state, func(t *testing.T) {
			sc := extractW3C(benchTraceparent, tt.state)
			ctx := trace.ContextWithSpanContext(context.Background(), sc)
			h := http.Header{"Server-Timing": {`genai;desc="k:1;th:8", db;dur=1`}}
			md := metadata.MD{"server-timing": {`genai;desc="k:1;th:8"`}}
			propagation.InjectResponse(ctx, propagation.HTTPHeader(h))
			propagation.InjectResponse(ctx, propagation.GRPCMetadata(md))
			want := []string{"db;dur=1, trace;desc=" + benchTraceparent}
			var wantMD []string
			if tt.said != "" {
				want[0] += ", " + tt.said
				wantMD = []string{tt.said}
			}
			assert.Equal(t, want, h.Values("Server-Timing"))
			assert.Equal(t, wantMD, md.Get("server-timing"), "not what an upstream said")
			for _, c := range []carrier{propagation.HTTPHeader(h), propagation.GRPCMetadata(md)} {
				got := propagation.ReadResponse(c).SpanContext
				assert.Equal(t, sc.TraceID(), got.TraceID())
				assert.Equal(t, tt.read, got.TraceState().String())
				assert.Equal(t, tt.said != "", propagation.MemberOf(got).Keep)
			}
		})
	}
}

func TestWhatAResponseSaysOfItsTraceIsReadByItsGrammar(t *testing.T) {
	for field, want := range map[string]string{
		`genai;desc="k:1", trace;desc=` + benchTraceparent:                    "genai=k:1",
		`trace;desc=` + benchTraceparent + `, GenAI;desc="x:y;k:1;th:8;z:9"`:  "ot=th:8,genai=k:1",
		`trace;desc=` + benchTraceparent + `, genai;desc="k:1;th:"`:           "genai=k:1",
		`trace;desc=` + benchTraceparent + `, genai;desc="k:1,ot=th:8"`:       "",
		`trace;desc=` + benchTraceparent + `, genai;desc="k:2;k:1"`:           "",
		`trace;desc=` + benchTraceparent + `, genai;dur=1`:                    "",
		`trace;desc=` + benchTraceparent + `, genai;desc=k:1, genai;desc=k:0`: "genai=k:1",
		`genai;desc="k:1"`: "",
	} {
		r := propagation.ReadResponse(propagation.HTTPHeader{"Server-Timing": {field}})
		assert.Equal(t, want, r.SpanContext.TraceState().String(), field)
	}
}
