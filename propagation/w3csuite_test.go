package propagation_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// A conformanceService is what the conformance suite of W3C Trace Context tests:
// a real server that, for each request, makes calls to another one, with a span
// of its own for each. It is asked in raw bytes, because a client of net/http
// would tidy up the headers.
type conformanceService struct {
	server, callee *httptest.Server

	mu       sync.Mutex
	received []http.Header // by the callee
}

func newConformanceService(t *testing.T) *conformanceService {
	t.Helper()
	s := &conformanceService{}
	s.callee = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.received = append(s.received, r.Header)
	}))
	provider := sdktrace.NewTracerProvider()
	tracer, bridge := provider.Tracer("test"), propagation.New()
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, span := tracer.Start(bridge.FromHTTP(r), "serve", trace.WithLinks(propagation.Links(r.Context())...))
		defer span.End()
		calls, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		for range calls {
			ctx, span := tracer.Start(ctx, "call")
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.callee.URL, http.NoBody)
			bridge.ToHTTP(req)
			resp, err := s.callee.Client().Do(req)
			span.End()
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			resp.Body.Close()
		}
	}))
	t.Cleanup(func() {
		s.server.Close()
		s.callee.Close()
		assert.NoError(t, provider.Shutdown(t.Context()))
	})
	return s
}

// ask sends the header lines as they are, and returns what the calls carried.
func (s *conformanceService) ask(t *testing.T, calls int, lines ...string) []http.Header {
	t.Helper()
	s.mu.Lock()
	s.received = nil
	s.mu.Unlock()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /%d HTTP/1.1\r\nHost: service\r\nContent-Length: 0\r\nConnection: close\r\n%s\r\n",
		calls, strings.Join(append(lines, ""), "\r\n"))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Len(t, s.received, calls)
	return s.received
}

const (
	suiteTrace = "5af7183fb1d4cf5f1dd7a7f6a1b2c3d4"
	suiteSpan  = "6b221d5bc9e6496c"
	suiteIDs   = suiteTrace + "-" + suiteSpan
	// parentLine is a good traceparent.
	parentLine = "traceparent: 00-" + suiteIDs + "-00"
)

// exchange is a request, and what the calls of the service must then carry.
type exchange struct {
	lines []string
	calls int    // 1 if 0
	fresh bool   // a trace of its own, not that of the request
	state string // the tracestate
}

// in continues the trace of the request.
func in(lines ...string) exchange { return exchange{lines: lines} }

// out begins a trace.
func out(lines ...string) exchange { return exchange{lines: lines, fresh: true} }

// with continues the trace of a good traceparent with this tracestate.
func with(state string, lines ...string) exchange {
	return exchange{lines: append([]string{parentLine}, lines...), state: state}
}

// tp is a traceparent line.
func tp(value string) string { return "traceparent: " + value }

// suiteMembers returns the members k01=01 and so on.
func suiteMembers(from, to int) string {
	list := make([]string, 0, to-from+1)
	for i := from; i <= to; i++ {
		list = append(list, fmt.Sprintf("k%02d=%02d", i, i))
	}
	return strings.Join(list, ",")
}

// conformance has the rules of the W3C's suite, in its names
// (https://github.com/w3c/trace-context/tree/main/test, Level 2, strict).
func conformance() map[string][]exchange {
	const (
		keyChars = "abcdefghijklmnopqrstuvwxyz0123456789_-*/"
		ts       = "tracestate: "
	)
	var valueChars strings.Builder
	for c := ' '; c <= '~'; c++ {
		if c != ',' && c != '=' {
			valueChars.WriteRune(c)
		}
	}
	key256, keyLongTenant := strings.Repeat("q", 256), strings.Repeat("t", 241)+"@"+strings.Repeat("v", 14)
	keyLongerTenant, keyLongSystem := strings.Repeat("t", 242)+"@v", "t@"+strings.Repeat("v", 15)

	return map[string][]exchange{
		"both_traceparent_and_tracestate_missing":    {out()},
		"traceparent_included_tracestate_missing":    {in(tp("00-" + suiteIDs + "-01"))},
		"traceparent_duplicated":                     {out(parentLine, tp("00-"+strings.Replace(suiteIDs, "5a", "5b", 1)+"-01")), out(parentLine, parentLine)},
		"traceparent_header_name":                    {out("trace-parent: 00-" + suiteIDs + "-01"), out("trace.parent: 00-" + suiteIDs + "-01")},
		"traceparent_header_name_valid_casing":       {in("TraceParent: 00-" + suiteIDs + "-01"), in("tRACEpARENT: 00-" + suiteIDs + "-01"), in("TRACEPARENT: 00-" + suiteIDs + "-01")},
		"traceparent_version_0x00":                   {out(tp("00-" + suiteIDs + "-01.")), out(tp("00-" + suiteIDs + "-01-and-more")), out(tp("00-" + suiteIDs + "-01-"))},
		"traceparent_version_0xcc":                   {in(tp("cc-" + suiteIDs + "-01")), in(tp("cc-" + suiteIDs + "-01-and-more")), out(tp("cc-" + suiteIDs + "-01.and-more"))},
		"traceparent_version_0xff":                   {out(tp("ff-" + suiteIDs + "-01"))},
		"traceparent_version_illegal_characters":     {out(tp(".0-" + suiteIDs + "-01")), out(tp("0.-" + suiteIDs + "-01")), out(tp("0A-" + suiteIDs + "-01"))},
		"traceparent_version_too_long":               {out(tp("000-" + suiteIDs + "-01")), out(tp("0000-" + suiteIDs + "-01"))},
		"traceparent_version_too_short":              {out(tp("0-" + suiteIDs + "-01"))},
		"traceparent_trace_id_all_zero":              {out(tp("00-" + strings.Repeat("0", 32) + "-" + suiteSpan + "-01"))},
		"traceparent_trace_id_illegal_characters":    {out(tp("00-." + suiteTrace[1:] + "-" + suiteSpan + "-01")), out(tp("00-" + suiteTrace[1:] + ".-" + suiteSpan + "-01")), out(tp("00-" + strings.ToUpper(suiteTrace) + "-" + suiteSpan + "-01"))},
		"traceparent_trace_id_too_long":              {out(tp("00-" + suiteTrace + "0-" + suiteSpan + "-01"))},
		"traceparent_trace_id_too_short":             {out(tp("00-" + suiteTrace[1:] + "-" + suiteSpan + "-01"))},
		"traceparent_parent_id_all_zero":             {out(tp("00-" + suiteTrace + "-0000000000000000-01"))},
		"traceparent_parent_id_illegal_characters":   {out(tp("00-" + suiteTrace + "-." + suiteSpan[1:] + "-01")), out(tp("00-" + suiteTrace + "-" + suiteSpan[1:] + ".-01"))},
		"traceparent_parent_id_too_long":             {out(tp("00-" + suiteIDs + "0-01"))},
		"traceparent_parent_id_too_short":            {out(tp("00-" + suiteTrace + "-" + suiteSpan[1:] + "-01"))},
		"traceparent_trace_flags_illegal_characters": {out(tp("00-" + suiteIDs + "-.0")), out(tp("00-" + suiteIDs + "-0."))},
		"traceparent_trace_flags_too_long":           {out(tp("00-" + suiteIDs + "-001"))},
		"traceparent_trace_flags_too_short":          {out(tp("00-" + suiteIDs + "-1"))},
		"traceparent_ows_handling": {
			in("traceparent:  00-" + suiteIDs + "-01"), in("traceparent:\t00-" + suiteIDs + "-01"),
			in("traceparent:00-" + suiteIDs + "-01 "), in("traceparent: 00-" + suiteIDs + "-01\t"),
			in("traceparent: \t 00-" + suiteIDs + "-01 \t"),
		},

		"tracestate_included_traceparent_missing":  {out(ts + "foo=1"), out(ts + "foo=1,bar=2")},
		"tracestate_included_traceparent_included": {with("foo=1,bar=2", ts+"foo=1,bar=2")},
		"tracestate_header_name":                   {with("", "trace-state: foo=1"), with("", "trace.state: foo=1")},
		"tracestate_header_name_valid_casing":      {with("foo=1", "TraceState: foo=1"), with("foo=1", "tRACEsTATE: foo=1"), with("foo=1", "TRACESTATE: foo=1")},
		"tracestate_empty_header":                  {with("", ts), with("foo=1", ts+"foo=1", ts), with("foo=1", ts, ts+"foo=1")},
		"tracestate_multiple_headers_different_keys": {
			with("foo=1,bar=2,rojo=1,congo=2,baz=3", ts+"foo=1,bar=2", ts+"rojo=1,congo=2", ts+"baz=3"),
		},
		"tracestate_duplicated_keys": {
			with("foo=1", ts+"foo=1,foo=1"), with("foo=1", ts+"foo=1,foo=2"),
			with("foo=1", ts+"foo=1", ts+"foo=1"), with("foo=1", ts+"foo=1", ts+"foo=2"),
		},
		"tracestate_all_allowed_characters": {
			with(keyChars+"="+valueChars.String(), ts+keyChars+"="+valueChars.String()),
			with(keyChars+"@a-z0-9_-*/="+valueChars.String(), ts+keyChars+"@a-z0-9_-*/="+valueChars.String()),
		},
		"tracestate_ows_handling": {
			with("foo=1,bar=2,baz=3", ts+"foo=1 \t , \t bar=2, \t baz=3"),
			with("foo=1,bar=2,baz=3", ts+"foo=1\t \t,\t \tbar=2,\t \tbaz=3"),
			with("foo=1", ts+" foo=1"), with("foo=1", ts+"\tfoo=1"), with("foo=1", ts+"foo=1 "),
			with("foo=1", ts+"foo=1\t"), with("foo=1", ts+"\t foo=1 \t"),
		},
		"tracestate_key_illegal_characters": {with("", ts+"foo =1"), with("", ts+"FOO=1"), with("", ts+"foo.bar=1")},
		"tracestate_key_illegal_vendor_format": {
			with("foo@=1,bar=2", ts+"foo@=1,bar=2"), with("", ts+"@foo=1,bar=2"),
			with("foo@@bar=1,bar=2", ts+"foo@@bar=1,bar=2"), with("foo@bar@baz=1,bar=2", ts+"foo@bar@baz=1,bar=2"),
		},
		"tracestate_member_count_limit": {
			with(suiteMembers(1, 32), ts+suiteMembers(1, 10), ts+suiteMembers(11, 20), ts+suiteMembers(21, 30), ts+suiteMembers(31, 32)),
			with("", ts+suiteMembers(1, 10), ts+suiteMembers(11, 20), ts+suiteMembers(21, 30), ts+suiteMembers(31, 33)),
		},
		"tracestate_key_length_limit": {
			with("foo=1,"+key256+"=1", ts+"foo=1", ts+key256+"=1"),
			with("", ts+"foo=1", ts+key256+"q=1"),
			with("foo=1,"+keyLongTenant+"=1", ts+"foo=1", ts+keyLongTenant+"=1"),
			with("foo=1,"+keyLongerTenant+"=1", ts+"foo=1", ts+keyLongerTenant+"=1"),
			with("foo=1,"+keyLongSystem+"=1", ts+"foo=1", ts+keyLongSystem+"=1"),
		},
		"tracestate_value_illegal_characters": {with("", ts+"foo=bar=baz"), with("", ts+"foo=,bar=3")},

		"multiple_requests_with_valid_traceparent":   {{lines: []string{parentLine}, calls: 3}},
		"multiple_requests_without_traceparent":      {{calls: 3, fresh: true}},
		"multiple_requests_with_illegal_traceparent": {{lines: []string{tp("00-" + strings.Repeat("0", 32) + "-" + suiteSpan + "-01")}, calls: 3, fresh: true}},

		"propagates_random_flag": {in(tp("00-" + suiteIDs + "-02"))},
	}
}

func TestAServiceConformsToTheSuiteOfTheW3C(t *testing.T) {
	rules := conformance()
	require.Len(t, rules, 41)
	s := newConformanceService(t)
	for name, exchanges := range rules {
		t.Run(name, func(t *testing.T) {
			for _, x := range exchanges {
				seen := map[string]bool{suiteSpan: true}
				for _, got := range s.ask(t, max(x.calls, 1), x.lines...) {
					require.Len(t, got["Traceparent"], 1, "%q", x.lines)
					parent := got.Get("Traceparent")
					require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[0-3]$", parent)
					assert.Equal(t, !x.fresh, parent[3:35] == suiteTrace, "%q made %s", x.lines, parent)
					assert.NotEqual(t, strings.Repeat("0", 32), parent[3:35])
					assert.False(t, seen[parent[36:52]], "two spans have the same ID")
					seen[parent[36:52]] = true
					assert.LessOrEqual(t, len(got["Tracestate"]), 1)
					assert.Equal(t, x.state, got.Get("Tracestate"), "%q", x.lines)
					if name == "propagates_random_flag" {
						assert.Equal(t, "02", parent[53:])
					}
				}
			}
		})
	}
}
