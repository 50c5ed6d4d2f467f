package contracttest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/sampling"
)

// parsed is a contract in which one kind of request and one role are all there is.
func parsed(t *testing.T, more string) contracttest.Source {
	t.Helper()
	c, err := contract.Parse("small.yaml", []byte(`
contract: genai.observability/v1
name: small
requests:
  job: {root: job}
spans:
  job: {match: {name: "job*"}}
`+more))
	require.NoError(t, err)
	return contracttest.Contract(c)
}

func TestAContractThatHoldsPasses(t *testing.T) {
	passes(t, run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		newShop(obs).chat()
		obs.Require(r, "chat")
	}))
}

func TestAViolationIsReportedOnceWithAllThatMendsIt(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		s := newShop(obs)
		s.noModel = true
		s.chat()
		obs.Require(r, "chat")
		obs.Require(r, "chat")
	})
	text := failure(t, r)
	for _, part := range []string{
		"contracttest: the contract shop does not hold (1 error):",
		"attribute.missing",
		"span      POST /v1/chat/completions › inference.generate\n",
		"started   harness_test.go:",
		"expected  gen_ai.request.model\n",
		"found     nothing\n",
		"fix       set it before the span ends\n",
		"contract  " + contractFile + ":",
		"say why in " + contractFile + ":\n\naccept:\n  - rule: attribute.missing\n    on: infer\n    key: gen_ai.request.model\n    reason: \"\"",
		"The spans:\n\nPOST /v1/chat/completions [server, gateway]\n  inference.generate [internal, inference]\n    inference.decode [internal, decode]",
	} {
		assert.Contains(t, text, part)
	}
	assert.Len(t, r.logs, 1, "the end of the test says that it was not checked again")
}

// What a failure says to copy makes the contract hold, once a reason is given.
func TestTheAcceptSnippetIsRight(t *testing.T) {
	original, err := os.ReadFile(contractFile)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "observability.yaml")
	require.NoError(t, os.WriteFile(path, original, 0o600))
	test := func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(path))
		s := newShop(obs)
		s.noModel = true
		s.chat()
		obs.Require(r, "chat")
	}
	_, snippet, ok := strings.Cut(failure(t, run(test)), "accept:\n")
	require.True(t, ok)
	snippet, _, _ = strings.Cut(snippet, "\n\n")
	snippet = strings.Replace(snippet, `""`, `"the toy has no name"`, 1)
	require.NoError(t, os.WriteFile(path, []byte(string(original)+"accept:\n"+snippet+"\n"), 0o600))
	passes(t, run(test))
}

func TestTheAcceptSnippetIsYAMLWhateverTheNames(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, `  other: {match: {name: job}, attributes: {"#c": required}}`))
		_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
		span.End()
	})
	assert.Contains(t, failure(t, r), "    on: other\n    key: \"#c\"\n")
}

func TestARequestThatWasNotMadeFails(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		newShop(obs).chat()
		obs.Require(r, "rag")
	})
	assert.Contains(t, failure(t, r), "no request of the kind rag was seen")
	assert.NotContains(t, r.errors[0], "accept:", "what did not happen is no violation to live with")
}

func TestAnUnknownKindEndsTheTest(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		obs.Require(r, "chta")
	})
	assert.True(t, r.fatal)
	assert.Equal(t, `contracttest: the contract shop has no requests of the kind "chta"; it has chat, rag; did you mean chat?`, failure(t, r))
}

func TestWithoutRequireEverythingIsCheckedAtTheEnd(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		newShop(obs).chat()
	})
	text := failure(t, r)
	assert.Contains(t, text, "no request of the kind rag was seen")
	assert.Contains(t, text, "no span has the role retrieve")
}

func TestRequireWithoutKindsChecksEverythingAtOnce(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		newShop(obs).chat()
		obs.Require(r)
	})
	assert.Contains(t, failure(t, r), "no request of the kind rag was seen")
}

func TestWhatComesAfterTheLastRequireIsCheckedToo(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		s := newShop(obs)
		s.chat()
		obs.Require(r, "chat")
		s.noModel = true
		s.chat()
	})
	assert.Contains(t, failure(t, r), "infer has no gen_ai.request.model")
}

func TestAnEarlierCleanupRunsBeforeTheCheck(t *testing.T) {
	passes(t, run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""))
		_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
		r.Cleanup(func() { span.End() }) // such as a server that is shut down
	}))
}

func TestATestThatHasFailedIsNotCheckedFurther(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		obs.TracerProvider().Tracer("").Start(t.Context(), "open")
		r.Errorf("the answer is wrong")
	})
	assert.Equal(t, "the answer is wrong", failure(t, r))
	assert.Contains(t, strings.Join(r.logs, "\n"), "not checked")
}

func TestASpanThatNeverEndedFailsWithItsLine(t *testing.T) {
	t.Run("at the end", func(t *testing.T) {
		r := run(func(r *recordingT) {
			obs := contracttest.New(r, contracttest.File(contractFile))
			s := newShop(obs)
			s.chat()
			obs.Require(r, "chat")
			ctx, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
			obs.TracerProvider().Tracer("").Start(ctx, "first leak")
			obs.TracerProvider().Tracer("").Start(ctx, "second leak")
			span.End()
		})
		text := failure(t, r)
		assert.Contains(t, text, "spans have not ended, and nothing else is checked before they do (2 errors)")
		assert.Contains(t, text, "job › first leak")
		assert.Contains(t, text, "job › second leak")
		assert.Equal(t, 2, strings.Count(text, "started   observer_test.go:"))
		assert.Equal(t, 1, strings.Count(text, "- rule: topology.never_ended"), "one entry accepts both")
	})
	t.Run("once, where Require has said it", func(t *testing.T) {
		r := run(func(r *recordingT) {
			obs := contracttest.New(r, contracttest.File(contractFile))
			s := newShop(obs)
			s.noModel = true
			_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "open")
			s.chat()
			obs.Require(r, "chat")
			assert.Contains(t, r.errors[0], "open did not end")
			assert.NotContains(t, r.errors[0], "gen_ai.request.model", "the rest is checked once they have ended")
			obs.Require(r, "chat")
			span.End()
			obs.Require(r, "chat")
		})
		require.Len(t, r.errors, 2)
		assert.Contains(t, r.errors[1], "gen_ai.request.model")
	})
	t.Run("unless the contract allows it", func(t *testing.T) {
		for _, more := range []string{
			"topology: {never_ended: allow}",
			"topology: {never_ended: warn}",
			"accept: [{rule: topology.never_ended, on: job, reason: it goes on}]",
		} {
			r := run(func(r *recordingT) {
				obs := contracttest.New(r, parsed(t, more))
				obs.TracerProvider().Tracer("").Start(t.Context(), "job")
			})
			passes(t, r)
			assert.Equal(t, strings.Contains(more, "warn"), len(r.logs) > 0, more)
		}
	})
}

func TestWarningsAreLogged(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""))
		_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job", trace.WithAttributes(attribute.Bool("gen_ai.never.heard.of", true)))
		span.End()
	})
	passes(t, r)
	require.Len(t, r.logs, 1)
	assert.Contains(t, r.logs[0], "attribute.unknown")
}

func TestSilenceFails(t *testing.T) {
	r := run(func(r *recordingT) { contracttest.New(r, contracttest.File(contractFile)) })
	assert.Equal(t, "contracttest: nothing was recorded; give the code under test the providers of the Observer", failure(t, r))
}

func TestMetricsAloneCanBeChecked(t *testing.T) {
	r := run(func(r *recordingT) {
		c, err := contract.Parse("m.yaml", []byte("contract: genai.observability/v1\nmetrics: {jobs: {required: true, unit: s}}\n"))
		require.NoError(t, err)
		obs := contracttest.New(r, contracttest.Contract(c))
		counter, err := obs.MeterProvider().Meter("").Int64Counter("jobs")
		require.NoError(t, err)
		counter.Add(t.Context(), 1)
	})
	assert.Contains(t, failure(t, r), "metric.unit")
	assert.Contains(t, r.errors[0], "No span was recorded.")
}

func TestWhatWasNotKeptCannotBeJudged(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""), capture.WithMax(1))
		for range 3 {
			_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
			span.End()
		}
	})
	assert.Contains(t, failure(t, r), "2 spans or log records were not kept")
}

func TestAFailingCallbackOfAMetricFails(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""))
		_, err := obs.MeterProvider().Meter("").Int64ObservableGauge("gpu",
			metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error { return errors.New("no device") }))
		require.NoError(t, err)
		_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
		span.End()
	})
	assert.Equal(t, "contracttest: collecting the metrics: no device", failure(t, r))
}

func TestLongFailuresAreCut(t *testing.T) {
	r := run(func(r *recordingT) {
		more := "    attributes:\n"
		for _, c := range "abcdefghijklmnopqrstuvwxyz" {
			more += "      " + strings.Repeat(string(c), 3) + ": required\n"
		}
		obs := contracttest.New(r, parsed(t, "  other:\n    match: {name: job}\n"+more))
		ctx, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
		for range 200 {
			_, child := obs.TracerProvider().Tracer("").Start(ctx, "child")
			child.End()
		}
		span.End()
	})
	text := failure(t, r)
	assert.Contains(t, text, "(26 errors)")
	assert.Contains(t, text, "… and 6 more\n")
	assert.Contains(t, text, "more lines")
	assert.Less(t, strings.Count(text, "child [internal]"), 130)
}

func TestAContractThatCannotBeReadEndsTheTest(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("contract: genai.observability/v1\nspan: {}\n"), 0o600))
	for _, tt := range []struct {
		name string
		from contracttest.Source
		want string
	}{
		{"none", contracttest.Source{}, "no contract: give File, Builtin or Contract"},
		{"nil", contracttest.Contract(nil), "the contract is nil"},
		{"missing", contracttest.File("nowhere.yaml"), "contracttest" + string(filepath.Separator) + "nowhere.yaml)"},
		{"broken", contracttest.File(broken), `broken.yaml:2:1: unknown key "span", did you mean "spans"?`},
		{"unknown profile", contracttest.Builtin("chta"), `did you mean "chat"?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := run(func(r *recordingT) { contracttest.New(r, tt.from) })
			assert.True(t, r.fatal)
			assert.Contains(t, failure(t, r), tt.want)
		})
	}
}

func TestABuiltInProfileIsAContract(t *testing.T) {
	r := run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.Builtin("gateway"))
		newShop(obs).chat()
		obs.Require(r, "gateway")
	})
	assert.Contains(t, failure(t, r), "the contract gateway does not hold")
	assert.Contains(t, r.errors[0], "say why in the contract:")
}

func TestProvidersOfOnesOwnAreObserved(t *testing.T) {
	passes(t, run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""))
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(obs.Recorder().SpanProcessor()))
		_, span := tp.Tracer("").Start(t.Context(), "job")
		span.End()
		obs.LoggerProvider().Logger("").Emit(t.Context(), log.Record{})
		assert.Len(t, obs.Capture(r).Logs, 1)
	}))
}

// TestBesideATailEverySpanIsObserved holds whatever the Tail keeps.
func TestBesideATailEverySpanIsObserved(t *testing.T) {
	passes(t, run(func(r *recordingT) {
		obs := contracttest.New(r, parsed(t, ""), capture.WithRecordOnly())
		tail, err := sampling.NewTail(tracetest.NewNoopExporter(), sampling.Errors())
		require.NoError(t, err)
		tp := sdktrace.NewTracerProvider(append(tail.ProviderOptions(),
			sdktrace.WithSpanProcessor(obs.Recorder().SpanProcessor()))...)
		_, span := tp.Tracer("").Start(t.Context(), "job")
		assert.False(t, span.SpanContext().IsSampled())
		span.End()
		obs.Require(r)
		require.NoError(t, tail.Shutdown(t.Context()))
	}))
}

func TestInABubbleTimesAreExact(t *testing.T) {
	contracttest.Synctest(t, contracttest.File(contractFile), func(t *testing.T, obs *contracttest.Observer) {
		s := newShop(obs)
		done := make(chan struct{})
		go func() { // the test does not wait for it, the assertion does
			s.chat()
			close(done)
		}()
		time.Sleep(time.Millisecond)
		assert.Len(t, obs.Capture(t).Traces(), 1)
		<-done
		obs.Require(t, "chat")
		obs.Span(t, "decode").Attr("llm.ttft_ms").Absent()
		obs.Span(t, "infer").Attr("llm.ttft_ms").Equal(10.0)
		obs.Golden(t, "testdata/chat.trace.txt")
	})
}

// Half a millisecond is within the tolerance of the contract, but not of a bubble.
func TestInABubbleThereIsNoTolerance(t *testing.T) {
	from := parsed(t, `timing:
  - {id: ttft-inside, on: job, at_most: [attr(llm.ttft_ms), duration], tolerance: {abs: 1ms}}
`)
	record := func(r *recordingT, obs *contracttest.Observer) {
		_, span := obs.TracerProvider().Tracer("").Start(context.Background(), "job", trace.WithAttributes(attribute.Float64("llm.ttft_ms", 1.5)))
		time.Sleep(time.Millisecond)
		span.End()
		obs.Require(r, "job")
	}
	synctest.Test(t, func(t *testing.T) {
		passes(t, run(func(r *recordingT) { record(r, contracttest.New(r, from)) }))
	})
	contracttest.Synctest(t, from, func(t *testing.T, obs *contracttest.Observer) {
		var r recordingT
		record(&r, obs)
		assert.Contains(t, failure(t, &r), "timing.at_most")
	})
}

// The clock of a bubble says 2000.
func TestInABubbleAcceptedViolationsExpireByTheRealClock(t *testing.T) {
	from := parsed(t, `
  other: {match: {name: job}, attributes: {n: required}}
accept:
  - {rule: attribute.missing, on: other, key: n, reason: later, until: 2010-01-01}
`)
	contracttest.Synctest(t, from, func(_ *testing.T, obs *contracttest.Observer) {
		_, span := obs.TracerProvider().Tracer("").Start(context.Background(), "job")
		span.End()
		var r recordingT
		obs.Require(&r)
		assert.Contains(t, failure(t, &r), "other has no n")
	})
}
