package benchmarks

import (
	"context"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

var scoreFile = flag.String("score", "", "`file` to write the table of TestTruth to")

// TestTruth has each column read answers over a loopback connection, whose truth is the
// log of the server's own writes, and prints how often it told that. Ours must be right
// in all of them; what others say is data.
func TestTruth(t *testing.T) {
	all := slices.Concat(rows(), fixtureRows(t))
	var columns []column.Column
	for _, c := range column.All() {
		if c.Bare != "" {
			columns = append(columns, c)
		}
	}
	scores := make([]score, len(columns))
	t.Run("columns", func(t *testing.T) {
		for i, c := range columns {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				scores[i] = readAll(t, c, all)
			})
		}
	})
	text := table(scores)
	t.Log("\n" + text)
	if *scoreFile != "" {
		require.NoError(t, os.WriteFile(*scoreFile, []byte(text), 0o600))
	}
}

func readAll(t *testing.T, c column.Column, all []row) score {
	s := score{column: c.Name}
	for _, r := range all {
		if (r.only != nil && !slices.Contains(r.only, c.API)) || (r.header != nil && c.Library) {
			continue
		}
		got := play(t, c, r)
		s.add(got)
		if len(got.notes) > 0 {
			t.Logf("%s: %v", r.name, got.notes)
		}
		if allRight(c) && !got.unread {
			assert.True(t, got.ok(), "%s: %+v", r.name, got)
		}
	}
	return s
}

// allRight is whether a column must be right in each row. Where a library makes the
// span itself, our part of it cannot mend the library's.
func allRight(c column.Column) bool { return c.Ours && (!c.Library || c.API == column.OpenAI) }

// play runs one row for one column.
func play(t *testing.T, c column.Column, r row) cell {
	t.Helper()
	var s *script
	var served sync.WaitGroup
	served.Add(1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		defer served.Done()
		s = newScript(c.API, w, req)
		r.serve(s)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()

	spans := new(spanLog)
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	v := visit{cancel: cancel}
	var err error
	v.stream, err = c.Wire(base, column.Telemetry{Traces: traces, Metrics: metrics}, v.watch.wrap)(ctx, server.URL, r.header)
	require.NoError(t, err)
	if use := r.use; use != nil {
		use(&v)
	} else {
		v.toTheEnd()
	}
	spans.settle(patience(c))
	is := r.truth(wordsOf(c.API))
	cancel()
	served.Wait()
	got := judge(c, r.name, is, s.log, v.watch.sent, v.by(s.log), spans)
	if got.unread = r.use == nil && !is.failed && v.short(s); got.unread {
		got.notef("its library stopped reading: not counted")
	}
	v.close()
	return got
}

// patience is how long to wait for the end of a span.
func patience(c column.Column) time.Duration {
	if allRight(c) {
		return 20 * time.Second
	}
	return time.Second
}
