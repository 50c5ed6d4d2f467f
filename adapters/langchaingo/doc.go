// Package genailangchain records what a program does with
// github.com/tmc/langchaingo: model calls, chains, agents, tools, searches and
// embeddings, as spans and metrics of package genaitrace.
//
//	tracer := genaitrace.New()
//	model := genailangchain.WrapModel(llm, tracer, genaitrace.Request{Provider: "openai", Model: "gpt-4.1"})
//	tool := genailangchain.WrapTool(tools.Calculator{}, tracer)
//	agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOneShotAgent(model, []tools.Tool{tool})),
//		tracer, genaitrace.Agent{Name: "accountant"})
//	answer, err := chains.Run(ctx, agent, question)
//
// which is
//
//	invoke_agent accountant
//	├─ chat gpt-4.1
//	├─ execute_tool calculator
//	└─ chat gpt-4.1
//
// What is wrapped goes wherever the thing itself went: [WrapModel] takes and returns
// an llms.Model, [WrapTool] a tools.Tool, [WrapRetriever] a schema.Retriever,
// [WrapChain] and [WrapAgent] a chains.Chain, [WrapEmbedder] an
// embeddings.EmbedderClient. Arguments, results and errors pass unchanged.
//
// # Model calls
//
// Each GenerateContent is a span "chat {model}" with the settings of its options, the
// usage and finish reasons that the client library tells, and the time to the first
// token, which a streaming function sees first: reasoning and tool calls count, and
// are told apart from answer text. LangChainGo writes 0 for a count that it does not
// know, so 0 is unknown.
//
// A streaming function that returns an error has stopped the stream, which is
// client_cancelled and no failure. Errors have the code of an [llms.Error], or the
// status that the client library writes into its message, as error.type.
//
// Where the HTTP client of the model has the transport of package genaihttp, the
// transport feeds the same span: it knows the times more exactly, the response's
// identifier, and whether a stream was cut. There is one span and one count of tokens
// either way.
//
// # Callbacks
//
// A [callbacks.Handler] gets a context and returns none, so what runs inside a chain
// cannot become a child of the chain's span, and the first token cannot be told to
// belong to a call. The wrappers have neither fault: prefer them. [Handler] is for
// what cannot be wrapped; it says what it cannot know.
//
// # What it never does
//
// It starts no goroutine, and records no prompt, answer, query, argument or message of
// an error unless the content policy of the Tracer says so (genaitrace.WithContent);
// what goes into a chain and comes out of it is never recorded. Of documents it records
// how many there are and their scores; identifiers only by [WithDocumentID]. Nothing
// is streamed that was not streamed before.
//
// Of LangChainGo it imports llms, callbacks and schema, which bring the tokenizer of
// llms and no client of any provider.
package genailangchain
