package main

// head begins the page.
const head = `# Side by side

Made by ` + "`%s`" + ` in this directory: medians of %d rounds of %d chats a column
(libraries: %d), on %s, %d cores, %s; load of the machine at the start and at
the end: %s. Others use it too, so there are no absolute times here. What the two tables
rest on can be had alone with
` + "`go test -run Truth -v .` and `go test -bench . -run '^$' .`" + `.

| column | what it is |
|---|---|
| otelhttp | OpenTelemetry's instrumentation of net/http |
| handwritten | the least that one would write by hand: one span, TTFT, finish reason and usage by two byte searches a chunk |
| event-per-token | what tutorials show: each chunk is parsed and becomes an event of the span |
| otelgenai | ` + "`genaihttp.NewTransport`" + ` under net/http, for chat completions |
| openai-go+event-per-token | OpenAI's library, with such a span around it by hand |
| openai-go+otelgenai | OpenAI's library over our transport |
| otelgenai-messages | our transport under net/http, for Anthropic's Messages API |
| anthropic-sdk-go | Anthropic's library with the span that it makes itself |
| anthropic-sdk-go+otelgenai | the same over our transport, which joins that span |
`

const truthText = `
## What is true

Answers over loopback HTTP, beside the log of the server's own writes. A TTFT is right
between the write of the first output and the moment when the application had it, give or
take a millisecond. "None" is where there was something to say. Failures are the server's:
a dropped connection, an end before the end, an error inside a 200 answer, 429 and 502.
Benign is everything else: a client that closes, cancels or forgets an answer has not
failed. APIs and clients differ in which rows they can be asked; where a library stops
reading a sound answer before its end, the row does not count for it.

`

const costText = `
## What it costs

CPU time a chunk above the same client without instrumentation, as a multiple of
"handwritten" in the same round; in brackets the 95 % interval of the median. In memory,
one event a read; AlwaysSample, a batch processor and an exporter that does nothing. "Not
sampled" is NeverSample, over "handwritten" recorded. Where a library decodes the stream
itself its own work is a hundred times that: the intervals of its rows are wide, and "~"
stands for one that holds zero. Memory is for 500 chunks; OTLP bytes are of one chat of
2,000 chunks, by the SDK's exporter, uncompressed.

| column | × handwritten, 500 chunks | 2,000 chunks | not sampled | bytes a chunk | allocations a chunk | OTLP bytes |
|---|---|---|---|---|---|---|
`

const tail = `
otelhttp reads no body: it is cheaper than all that do, and knows no token, usage or finish
reason. "handwritten" is cheap because it is not always right: it trusts that its
events come whole, in one API, one framing and one encoding. By default the SDK keeps the
last 128 events of a span, so an event for each token loses the first one, and the bytes
it exports are those of the 128. Our metrics are recorded also where the trace is not
sampled; one of them has a value for each chunk, and that record by the SDK is most of
what they cost.
`
