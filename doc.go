// Package otelgenai is the home of a library that lets whoever runs generative
// AI (a gateway, an engine front-end, a RAG service, an agent) see a request
// from the HTTP entry to the last token, on plain OpenTelemetry.
//
// This package holds nothing. Import what you need:
//
//   - middleware/genaihttp wraps an HTTP handler or client in one line;
//   - middleware/genaigrpc does the same for gRPC servers and clients;
//   - genaitrace records what only the engine knows: queue, tokenizer, prefill,
//     decode and each token;
//   - genaitrace/content decides what of prompts may be written, genaitrace/logprob
//     says how sure a model was;
//   - propagation carries one trace over HTTP, gRPC, WebSocket, Kafka and MCP;
//   - sampling keeps slow, failed and strange traces whole and a share of the rest;
//   - semconv, semconv/genaiconv and semconv/mcpconv hold the names, typed;
//   - semconv/translate speaks older and other vocabularies;
//   - middleware/wire reads streams for those who move them by other means;
//   - contract/contracttest holds a service to an observability contract in go
//     test; contract and contract/mutate are what it is made of;
//   - capture collects what the SDK records, for such tests and for questions;
//   - capture/waterfall draws a trace in the terminal or as a page, capture/view
//     makes a capture ready for it.
//
// The command cmd/genaitrace checks captures and whole test runs against a
// contract in CI, and draws them; docs/contract.md describes contracts.
//
// The README shows a trace; ARCHITECTURE.md defines every time and name.
package otelgenai
