package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// observed runs questions through the hops in a bubble, under contract.yaml.
func observed(t *testing.T, engine func(*toy.Config), ask func(ctx context.Context, h *hops), check func(t *testing.T, obs *contracttest.Observer)) {
	t.Helper()
	contracttest.Synctest(t, contracttest.File("contract.yaml"), func(t *testing.T, obs *contracttest.Observer) {
		cfg := testEngine()
		if engine != nil {
			engine(&cfg)
		}
		h := startHopsOn(t, cfg, serving.Dial, obs.TracerProvider(), obs.MeterProvider())
		ask(t.Context(), h)
		h.stop()
		check(t, obs)
	})
}

func askAll(requests int) func(context.Context, *hops) {
	return func(ctx context.Context, h *hops) {
		cfg := streaming()
		cfg.requests, cfg.concurrency = requests, requests
		_, _ = askMany(ctx, h.client(cfg), cfg, io.Discard) // what fails is in the telemetry
	}
}

// The contract holds, to the nanosecond, for requests that are answered.
func TestTheContractIsMet(t *testing.T) {
	met := func(t *testing.T, obs *contracttest.Observer) { obs.Require(t) }
	t.Run("streamed", func(t *testing.T) { observed(t, nil, askAll(1), met) })
	t.Run("queued", func(t *testing.T) {
		observed(t, func(c *toy.Config) { c.Slots = 1 }, askAll(3), met)
	})
	t.Run("whole", func(t *testing.T) {
		observed(t, nil, func(ctx context.Context, h *hops) {
			cfg := streaming()
			cfg.stream = false
			_, _ = h.client(cfg).Ask(ctx, "What is prefill?", func(string) {})
		}, func(t *testing.T, obs *contracttest.Observer) { obs.Require(t, "chat", "inference") })
	})
}

// What -record writes can be checked later.
func TestARecordingMeetsTheContract(t *testing.T) {
	exampletest.WithoutCollector(t)
	file := filepath.Join(t.TempDir(), "chat.pb.gz")
	if err := run(t.Context(), []string{"-prompt", "What is 17 * 23?", "-record", file}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	recorded, err := otlp.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load("testdata/busy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if report := c.Check(recorded); len(recorded.Spans) != 9 || len(recorded.Logs) != 2 || report.Failed(false) {
		t.Errorf("%d spans, want 9; %d log records, want those of the call and the engine; findings %+v",
			len(recorded.Spans), len(recorded.Logs), report.Findings)
	}
}

// It holds for what goes wrong, too: such a request shows less, and nothing wrong.
func TestTheContractHoldsWhenRequestsFail(t *testing.T) {
	leaveAfter := func(d time.Duration) func(context.Context, *hops) {
		return func(ctx context.Context, h *hops) {
			ctx, leave := context.WithTimeout(ctx, d)
			defer leave()
			_, _ = h.client(streaming()).Ask(ctx, "What is prefill?", func(string) {})
		}
	}
	tests := []struct {
		name   string
		engine func(*toy.Config)
		ask    func(context.Context, *hops)
	}{
		{"engine fails", failAt(5), askAll(1)},
		{"client leaves in the answer", nil, leaveAfter(95 * time.Millisecond)},
		{"client leaves before it", nil, leaveAfter(5 * time.Millisecond)},
		{"unknown model", nil, func(ctx context.Context, h *hops) {
			cfg := streaming()
			cfg.model = "gpt-17"
			_, _ = h.client(cfg).Ask(ctx, "What is prefill?", func(string) {})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			observed(t, tt.engine, tt.ask, func(t *testing.T, obs *contracttest.Observer) { obs.Holds(t) })
		})
	}
}

// A gateway whose gRPC client lacks the stats handler sends no context. The contract
// says which hop broke.
func TestTheContractNamesTheHopThatBroke(t *testing.T) {
	c, err := contract.Load("contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bare := func(target string, _ *telemetry.Telemetry, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
		return grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	}
	var report *contract.Report
	synctest.Test(t, func(t *testing.T) {
		rec := capture.NewRecorder()
		h := startHopsOn(t, testEngine(), bare, rec.TracerProvider(), rec.MeterProvider())
		askAll(1)(t.Context(), h)
		h.stop()
		got, err := rec.Capture(t.Context())
		if err != nil {
			t.Error(err)
		}
		report = c.Check(got)
	})
	for _, f := range report.Findings {
		if f.Rule == "propagation.broken" && f.Key == "call → service" {
			t.Log(f.Text())
			return
		}
	}
	t.Errorf("no finding names the hop: %+v", report.Findings)
}
