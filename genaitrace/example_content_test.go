package genaitrace_test

import (
	"context"
	"fmt"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/genaitrace/logprob"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Content is off until somebody turns it on, and goes on an event of its own.
func ExampleWithContent() {
	rec := capture.NewRecorder()
	tr := genaitrace.New(
		genaitrace.WithTracerProvider(rec.TracerProvider()),
		genaitrace.WithLoggerProvider(rec.LoggerProvider()),
		genaitrace.WithContent(content.Redacted),
	)
	answer := func(ctx context.Context) (string, error) {
		call := genaitrace.CallFromContext(ctx)
		call.SetInput(genaitrace.Input{Messages: []genaiconv.Message{
			{Role: genaiconv.RoleUser, Parts: genaiconv.Parts{genaiconv.TextPart{Content: "I am jane@example.com, key sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3s"}}},
		}})
		return "Hello.", nil
	}
	ctx := context.Background()
	_, _ = genaitrace.Do(ctx, tr, genaitrace.Request{Model: "qwen2.5-7b-instruct"}, answer)
	private := genaitrace.ContextWithContent(ctx, content.Off) // of a tenant that asked for it
	_, _ = genaitrace.Do(private, tr, genaitrace.Request{Model: "qwen2.5-7b-instruct"}, answer)

	got, err := rec.Capture(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range got.Logs {
		fmt.Println(l.EventName)
		if messages, ok := l.Attributes.Get(genaiconv.InputMessagesKey); ok {
			fmt.Println(messages.String())
		}
	}
	// Output:
	// genai.completion
	// gen_ai.client.inference.operation.details
	// [{"parts":[{"content":"I am [REDACTED:email], key [REDACTED:api-key]","type":"text"}],"role":"user"}]
	// genai.completion
}

// What may be known of a prompt by those who may not read it.
func ExampleTracer_DescribePrompt() {
	template, err := genaitrace.ParsePromptTemplate("support", "v3", "Answer {{.Name}} about {{.Topic}}, in one sentence.")
	if err != nil {
		fmt.Println(err)
		return
	}
	tr := genaitrace.New(genaitrace.WithHashKey([]byte("32 random bytes, from a secret…")))
	const rendered = "Answer Jane about refunds, in one sentence."
	facts := tr.DescribePrompt(genaitrace.PromptText{
		Messages: []genaiconv.Message{{Role: genaiconv.RoleUser, Parts: genaiconv.Parts{genaiconv.TextPart{Content: rendered}}}},
		Template: template,
		Tokens:   11,
	})
	_, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	call.SetPrompt(facts)
	call.End()
	fmt.Println(facts.Name, facts.Version, facts.Hash, facts.Roles, facts.LengthBucket, facts.EntropyBucket)
	fmt.Printf("depth %d, density %.2f, span %.2f\n", facts.TemplateDepth, *facts.PlaceholderDensity, *facts.ReferenceSpan)
	// Output:
	// support v3 8c52a5f46385a23a [user] 0-256 3-4
	// depth 1, density 0.26, span 0.42
}

// A rate is the quotient of two counters: record what passed, too.
func ExampleTracer_RecordVerdict() {
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider()), genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	ctx := context.Background()
	for _, grounded := range []bool{true, true, false, true} {
		tr.RecordVerdict(ctx, genaitrace.Verdict{Type: semconv.GenAISignalTypeHallucination, Found: !grounded, SourceModel: "judge-7b"})
	}
	got, err := rec.Capture(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	hits, checks := got.Metric(semconv.GenAISignalHitsName)[0].Points[0].Value, got.Metric(semconv.GenAISignalChecksName)[0].Points[0].Value
	fmt.Println(hits, "of", checks)
	// Output: 1 of 4
}

// What the logprobs of an answer say of it, without an event a token.
func ExampleTracer_RecordLogprobs() {
	rec := capture.NewRecorder()
	tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithLoggerProvider(rec.LoggerProvider()))
	ctx, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	stats := logprob.Stats{Vocabulary: 151_936}
	for _, token := range []logprob.Token{
		{Logprob: -0.02, Top: []float64{-0.02, -4.5, -6.1}},
		{Logprob: -1.2, Top: []float64{-1.0, -1.2, -2.3}},
	} {
		if err := stats.Add(token); err != nil {
			fmt.Println(err)
		}
	}
	tr.RecordLogprobs(ctx, &stats)
	call.End()

	got, err := rec.Capture(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range got.Logs[:2] {
		value, _ := l.Attributes.Get(semconv.GenAISignalValueKey)
		fmt.Printf("%s %.2f\n", l.Attributes.String(semconv.GenAISignalTypeKey), value.AsFloat64())
	}
	// Output:
	// logit_entropy 0.82
	// confidence 0.54
}
