// Package facts writes the facts of a context onto every span that is started
// below, whoever starts it: the tenant, the conversation, the prompt's version
// and whatever else [genaitrace.ContextWith] takes.
//
//	tp := sdktrace.NewTracerProvider(
//		sdktrace.WithSpanProcessor(facts.Processor{}),
//		sdktrace.WithBatcher(exporter),
//	)
//
//	ctx = genaitrace.ContextWith(ctx, genaitrace.TenantID("acme"), genaitrace.PromptVersion("v3"))
//	rows, err := db.QueryContext(ctx, query) // the span of the database driver says acme, v3
//
// The spans of package genaitrace carry their facts without it. It is apart
// because it needs the SDK of OpenTelemetry. It never overwrites an attribute,
// and a span that starts where the context has no facts costs one look-up.
package facts
