// Package genaieino records what components of github.com/cloudwego/eino do: chains,
// graphs and agents, the models, tools and searches in them, and what each of them
// streams.
//
//	tr := genaitrace.New()
//	callbacks.AppendGlobalHandlers(genaieino.NewHandler(tr)) // once, where the program starts
//
//	chatModel := genaieino.WrapChatModel(inner, tr) // where an answer is streamed to somebody
//
// A handler also serves single runs, compose.WithCallbacks. The span of a component is in
// the context that it is called with, so what it calls stands below it, in graphs within
// graphs and in branches side by side:
//
//	ChatModel               chat {model}              one call, with its stream, usage, settings
//	Embedding               embeddings {model}
//	Retriever               retrieval {name}          identifiers and scores of what was found
//	Tool                    execute_tool {name}       with the identifier that the model gave the call
//	ChatTemplate            prompt.render
//	Graph, Chain, Workflow  invoke_workflow {name}    the outermost
//	                        invoke_agent {name}       a ReAct agent, and those of WithAgents
//	                        graph {name}, …           all others, which are steps
//	ToolsNode               tools {name}
//	Lambda                  lambda {name}
//	Loader, Transformer     load {name}, transform {name}
//	Indexer                 index {name}
//
// Names are those that the program gives (compose.WithNodeName, compose.WithGraphName),
// else those of the types. Components of which Eino tells nothing, such as passthrough
// nodes, have no span.
//
// Where a model's HTTP client uses the transport of package genaihttp, that adds what it
// sees to the same span: times to the byte, the model that answered, retries. Tokens are
// counted once.
//
// # Streams
//
// Callbacks get a copy of a stream, and a copy of Eino tells nothing of the others: not
// how far they were read, nor that they were closed. So there are two ways to record a
// streamed answer.
//
// A handler alone reads its copy on a goroutine of its own, as fast as the model makes it,
// to the end or to that of the context. Nobody waits for it, and its times are those when
// the pieces arrived, however slow the reader of the stream is. But the model is read
// whether or not its reader keeps up: what that has not read yet stays in memory, and where
// it closes the stream and does not end the context, the model goes on to its end and is
// paid for. (Every handler that reads streams has this effect.)
//
// [WrapChatModel] stands between the model and its reader, and the handler reads nothing
// then. It holds one piece at most and takes the next when that was read, so the model is
// never ahead of its reader by more than that, and stops when it is left. Time to first
// token is that of arrival; later pieces cannot come faster than they are read. All spans
// have ended when the reader hears of the end of the stream.
//
//	                                    NewHandler alone         with WrapChatModel
//	time to first token                 right                    right
//	later pieces                        as they arrive           as they are taken
//	the reader is slow                  memory for the rest      the model waits
//	the reader closes early             the model goes on        client_cancelled, the model stops
//	                                                             when its next piece comes
//	the context ends                    client_cancelled         client_cancelled
//	the stream fails on the way         failed                   failed
//
// Tools that stream are read to their end, as a ToolsNode does. Streams of all other
// components are left alone: the span of a graph or a lambda whose output streams ends
// when all below it has ended, and fails where that did.
//
// A stream that is neither read nor closed nor ended by its context stays open, in Eino as
// here. Of a stream that runs code of its own which panics, the first reader of a copy
// gets the panic; a handler that is the first survives it.
//
// # How components end
//
// An interrupt (compose.Interrupt, compose.WithInterruptBeforeNodes …) is no failure; a tool
// that waits for one has the status cancelled. Neither is a context that was cancelled. A
// component that panics fails with error.type panic, and so does the graph around it. What
// nobody ends (a component outside of any graph that panics) ends one second after its
// context. Errors are told by their type, that of the component rather than Eino's own.
//
// # Content
//
// Prompts, answers, arguments and results of tools and queries are written as the content
// policy of the Tracer says (genaitrace.WithContent); by default none of them is read.
// Documents are told by identifier and score alone, images and files by their kind and
// address. A tool that the model made up is _OTHER.
//
// Eino has no word for a count that is unknown: a 0 of its own (cached or reasoning
// tokens, a temperature in a configuration, a score) counts as unknown and is absent.
//
// The module requires a version of github.com/bytedance/sonic that builds with the Go
// release in go.mod; that of Eino does not.
package genaieino
