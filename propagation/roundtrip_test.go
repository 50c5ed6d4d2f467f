package propagation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// A journey takes a context over five transports: an HTTP server, a gRPC server,
// a message of a WebSocket, a record of Kafka, and an HTTP server again, this time
// over HTTP/2. None of the processes makes a span, so that what arrives must be
// what was sent, to the last bit.
type journey struct {
	bridge           *propagation.Bridge
	http1, http2     *httptest.Server
	engine           *engine
	received         context.Context // by the HTTP servers
	client1, client2 *http.Client
}

func newJourney(t *testing.T, bridge *propagation.Bridge) *journey {
	t.Helper()
	j := &journey{bridge: bridge, engine: newEngine(t, 8<<10)}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		j.received = context.WithoutCancel(bridge.FromHTTP(r))
	})
	j.http1 = httptest.NewServer(handler)
	j.http2 = httptest.NewUnstartedServer(handler)
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	j.http2.Config.Protocols = protocols
	j.http2.Start()
	transport := &http.Transport{Protocols: protocols, DialContext: (&net.Dialer{}).DialContext}
	j.client1, j.client2 = j.http1.Client(), &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		j.http1.Close()
		j.http2.Close()
	})
	return j
}

func (j *journey) overHTTP(t *testing.T, ctx context.Context, client *http.Client, url, proto string) context.Context {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	j.bridge.ToHTTP(req)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, proto, resp.Proto)
	return j.received
}

func (j *journey) overGRPC(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	md, err := j.engine.callContext(j.bridge.ToGRPC(ctx))
	require.NoError(t, err)
	return j.bridge.Extract(context.Background(), propagation.GRPCMetadata(md))
}

func (j *journey) overWebSocket(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	m := propagation.Map{}
	j.bridge.Inject(ctx, m)
	message, err := propagation.WriteEnvelope([]byte(`{"type":"response.create","metadata":{"user":"u1"}}`), m)
	require.NoError(t, err)
	return j.bridge.Extract(context.Background(), propagation.ReadEnvelope(message))
}

func (j *journey) overKafka(_ *testing.T, ctx context.Context) context.Context {
	headers := []kafkaHeader{{"TraceParent", []byte("of an earlier attempt")}}
	j.bridge.Inject(ctx, propagation.NewKafka(&headers))
	return j.bridge.Extract(context.Background(), propagation.NewKafka(&headers))
}

// belongings is all that a context has to carry, in a form that can be compared.
func (j *journey) belongings(ctx context.Context) map[string]any {
	chain, _ := propagation.PromptChainFromContext(ctx)
	bag := map[string]string{}
	for _, m := range baggage.FromContext(ctx).Members() {
		bag[m.Key()] = fmt.Sprint(m.Value(), m.Properties())
	}
	return map[string]any{
		"span context": trace.SpanContextFromContext(ctx),
		"sampling":     propagation.SamplingFromContext(ctx).String(),
		"baggage":      bag,
		"prompt chain": chain,
		"member":       propagation.MemberOf(trace.SpanContextFromContext(ctx)),
		"on the wire":  inject(j.bridge, ctx), // the hidden tracestate, the parent, the name of the trace
	}
}

func TestAContextCrossesEveryTransportWithoutLosingABit(t *testing.T) {
	for name, bridge := range map[string]*propagation.Bridge{
		"W3C":         propagation.New(propagation.WithPromptChain()),
		"all formats": propagation.New(everything...),
	} {
		t.Run(name, func(t *testing.T) {
			j := newJourney(t, bridge)
			r := rand.New(rand.NewPCG(7, 41))
			for range 200 {
				ctx := randomContext(t, r, bridge, name == "all formats")
				want := j.belongings(ctx)
				ctx = j.overHTTP(t, ctx, j.client1, j.http1.URL, "HTTP/1.1")
				require.Equal(t, want, j.belongings(ctx), "HTTP")
				ctx = j.overGRPC(t, ctx)
				require.Equal(t, want, j.belongings(ctx), "gRPC")
				ctx = j.overWebSocket(t, ctx)
				require.Equal(t, want, j.belongings(ctx), "WebSocket")
				ctx = j.overKafka(t, ctx)
				require.Equal(t, want, j.belongings(ctx), "Kafka")
				ctx = j.overHTTP(t, ctx, j.client2, j.http2.URL, "HTTP/2.0")
				require.Equal(t, want, j.belongings(ctx), "HTTP/2")
			}
			assert.Equal(t, propagation.Stats{}, bridge.Stats(), "nothing was left out or contradicted")
		})
	}
}

// randomContext returns a context as a request may bring it, in any of the formats.
func randomContext(t *testing.T, r *rand.Rand, bridge *propagation.Bridge, all bool) context.Context {
	t.Helper()
	sc := trace.NewSpanContext(trace.SpanContextConfig{TraceID: randomTraceID(r), SpanID: randomSpanID(r), TraceFlags: trace.TraceFlags(r.IntN(4))})
	parent := randomSpanID(r).String()
	m := propagation.Map{}
	switch n := r.IntN(8); {
	case !all || n < 3:
		propagation.W3C.Inject(trace.ContextWithSpanContext(context.Background(), sc), m)
		m["tracestate"] = randomTraceState(r, sc)
	case n == 3:
		m["b3"] = sc.TraceID().String() + "-" + sc.SpanID().String() + [...]string{"", "-0", "-1", "-d", "-1-" + parent}[r.IntN(5)]
	case n == 4:
		m["uber-trace-id"] = sc.TraceID().String() + ":" + sc.SpanID().String() + ":" + parent + ":" + fmt.Sprint(r.IntN(4))
	case n == 5:
		m["trace-id"], m["span-id"], m["parent-span-id"] = sc.TraceID().String(), sc.SpanID().String(), parent
	case n == 6:
		m["x-trace-id"] = "order " + parent
	default:
		raw := propagation.EncodeTraceBin(sc)
		m["grpc-trace-bin"] = string(raw[:27+2*r.IntN(2)])
	}
	m["baggage"] = randomBaggage(r)
	ctx := bridge.Extract(context.Background(), m)
	if trace.SpanContextFromContext(ctx).IsValid() {
		for range r.IntN(5) {
			ctx = propagation.ContextWithHop(ctx, randomText(r), randomSpanID(r), randomSpanID(r))
		}
	}
	return ctx
}

func randomTraceID(r *rand.Rand) (id trace.TraceID) {
	for i := range id {
		id[i] = byte(1 + r.IntN(255))
	}
	return id
}

func randomSpanID(r *rand.Rand) (id trace.SpanID) {
	for i := range id {
		id[i] = byte(1 + r.IntN(255))
	}
	return id
}

func randomTraceState(r *rand.Rand, sc trace.SpanContext) string {
	list := make([]string, 0, 8)
	for i := range r.IntN(6) {
		key := fmt.Sprint([...]string{"k", "0", "t@s", "9@x@", "v*"}[r.IntN(5)], i)
		value := make([]byte, 1+r.IntN(20))
		for j := range value {
			for value[j] = ','; value[j] == ',' || value[j] == '=' || j == len(value)-1 && value[j] == ' '; {
				value[j] = byte(' ' + r.IntN('~'-' '+1))
			}
		}
		list = append(list, key+"="+string(value))
	}
	if r.IntN(2) == 0 {
		own := "genai=c:1;t:199c82cc07b;m:a%2Cb"
		if hint := r.IntN(4); hint < 3 {
			own = "genai=s:" + "dnb"[hint:hint+1] + "-" + sc.SpanID().String()[8:] + ";c:1;m:x"
		}
		list = append([]string{own}, list...)
	}
	return strings.Join(list, ",")
}

func randomBaggage(r *rand.Rand) string {
	list := make([]string, 0, 4)
	for i := range r.IntN(4) {
		m, _ := baggage.NewMemberRaw(fmt.Sprint("key.", i), randomText(r))
		list = append(list, m.String()+[...]string{"", ";ttl=60", ";a;b=%20c"}[r.IntN(3)])
	}
	return strings.Join(list, ",")
}

func randomText(r *rand.Rand) string {
	return [...]string{"", "plain", "a b\tc", `"quoted\"`, "ümlaut → 😀", "50%", "\u0000\u007f", "a,b;c=d", "</script>"}[r.IntN(9)]
}
