// Command registrygen turns the YAML files of semconv/registry into Go: typed
// attribute keys, open enums, metric instruments, the names of spans and events
// and the tables behind semconv.Lookup; and into the documents of docs. A new
// key is a new entry in a YAML file; nothing else changes.
//
//	go generate ./semconv
//
// One YAML file is one Go package. Package semconv is written to the output
// folder itself, any other package to the folder of its name below it. A file
// is read strictly: an unknown field, a duplicate or a wrong type is an error
// that names file and line, and nothing is written.
//
// # Format of a file
//
//	package: genaiconv           # Go package to write; none for keys that are only looked up
//	strip: gen_ai                # namespace that the file owns and Go names omit; may be empty
//	owns: [openai]               # further namespaces of the file, which Go names keep
//	attributes: [...]
//	aliases: [...]
//	metrics: [...]
//	events: [...]
//	entities: [...]
//	spans: [...]
//	headers: [...]
//	settled: [...]               # words that are no name here, and what to do instead
//	conflicts: [...]             # facts with several names, and how that was settled
//
// A file with a strip holds only keys and metrics of its namespaces, and no
// other file may declare one there. So no file invents an official name.
//
// # Attributes
//
//	attributes:
//	  - key: gen_ai.usage.input_tokens
//	    type: int                  # string, int, double, boolean, string[], int[], enum, any, template[string]
//	    brief: tokens of the prompt, cached ones included
//	    note: what is easily misunderstood
//	    unit: "{token}"            # UCUM, for numbers only
//	    examples: [19]             # values of the type
//	    stability: development     # as the convention says; left out for house keys
//	    official: gen_ai.x.y       # key of another file that says exactly the same
//	    sampling: true             # samplers read it: to be given when a span starts
//	    content: true              # may hold text of a user
//	    deprecated: renamed        # the constant stays, marked deprecated
//	    replacement: gen_ai.x.y    # key to use instead
//	    go: Name                   # overrides the Go name
//	    members:                   # for type enum
//	      - {value: chat, brief: a chat, go: Chat, deprecated: renamed, now: talk}
//
// Type any takes an attribute.Value: a map, a slice or a JSON string.
// template[string] is a family of keys: its function takes the last part of
// the key and the value. now is the value that the replacement has for a member.
//
// # Aliases
//
//	aliases:
//	  - {name: ttft, of: llm.ttft_ms, unit: s, factor: 1000, note: from arrival}
//	  - {name: stop_reason, of: gen_ai.response.finish_reasons, type: string, values: {eos: stop}}
//	  - {name: prompt.hash, of: genai.prompt.hash, keep: true, note: made by another algorithm}
//	  - {kind: span, name: scheduler.wait, of: queue.wait}
//
// kind is attribute if it is left out; an event, a span or a metric can have
// other names too. Type and unit are those of the target unless given; a value
// times factor is one of the target. With keep, the target is what to write
// instead, and values are not carried over to it; note says why.
//
// # What carries attributes
//
// Spans, metrics and events list the attributes that they carry:
//
//	attributes:
//	  - {key: gen_ai.provider.name, level: required, sampling: true}
//	  - {key: server.port, level: conditional, if: server.address is set, when: has server.address}
//
// level is required, conditional, recommended or opt_in. if tells the condition
// to people and when tells it to programs: terms joined by " and ", each
//
//	known                  the fact exists and can be seen; telemetry cannot tell
//	failed                 the operation ended in an error
//	has KEY, missing KEY   whether an attribute is set
//	KEY = A|B              the attribute has one of the values; A* stands for all that begin so
//	KEY != A|B             it has none of them
//
// with value for KEY where the attribute itself is meant.
//
// # Metrics
//
//	metrics:
//	  - name: gen_ai.server.time_to_first_token
//	    instrument: histogram      # histogram, counter, updowncounter, gauge
//	    type: double               # int, double
//	    unit: s
//	    brief: arrival → first generated output
//	    buckets: [0.1, 1]          # explicit boundaries, for histograms only
//	    streaming: true            # for streamed responses only
//	    unseen: [buckets]          # parts that were not seen in the pinned release
//	    attributes: [...]          # those that are required become parameters
//
// stability, deprecated, replacement and go mean the same as on an attribute. A
// list that several metrics share can be given once with a YAML anchor.
//
// # Events, entities and spans
//
//	events:
//	  - {name: first_token, brief: the first generated output left, attributes: [...]}
//	  - {name: gen_ai.x, log: true, severity: 13, level: opt_in, like: gen_ai.client.inference, brief: …}
//	entities:
//	  - {type: gen_ai.main_agent, brief: …, identity: [KEY], description: [KEY]}
//	spans:
//	  - type: gen_ai.client.inference
//	    kind: client               # client, server, internal, producer, consumer
//	    in_process: true           # may be internal too
//	    names: ["{gen_ai.operation.name} {gen_ai.request.model}", "{gen_ai.operation.name}"]
//	    operations: [chat]         # values of gen_ai.operation.name
//	    role: inference            # member of genai.span.role
//	    entities: [gen_ai.main_agent]
//	    brief: one model call as its caller sees it
//	    attributes: [...]
//	  - {type: openai.x, refines: gen_ai.client.inference, brief: …, attributes: [...]}
//
// The type of a house span is its name. A log event is a log record, any other
// one an event of a span; like gives it the attributes of a span. A refinement
// has all that it refines and lists only what it adds or changes.
//
// # Go names
//
// The name is the key without its strip, in camel case at each dot, underscore
// and dash, with Go's initialisms: llm.ttft_ms becomes LLMTTFTMs. Two entries
// that come to the same Go name are an error; go settles it.
package main
