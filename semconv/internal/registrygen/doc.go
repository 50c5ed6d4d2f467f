// Command registrygen turns the YAML files of semconv/registry into Go: typed
// attribute keys, open enums, metric instruments and the names of spans and
// events. A new key is a new entry in a YAML file; nothing else changes.
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
//	package: genaiconv           # Go package to write
//	strip: gen_ai                # namespace that the file owns and Go names omit; may be empty
//	external: [server.port]      # keys declared elsewhere that metrics may carry
//	attributes: [...]
//	metrics: [...]
//	events: [...]
//	spans: [...]
//
// A file with a strip holds only keys and metrics of that namespace, and no
// other file may declare one there. So no file invents an official name.
//
// # Attributes
//
//	attributes:
//	  - key: gen_ai.usage.input_tokens
//	    type: int                  # string, int, double, boolean, string[], enum, any, template[string]
//	    brief: tokens of the prompt, cached ones included
//	    unit: "{token}"            # UCUM, for numbers only
//	    examples: [19]             # values of the type
//	    stability: development     # as the convention says; left out for house keys
//	    official: gen_ai.x.y       # key of another file that says exactly the same
//	    sampling: true             # samplers read it: to be given when a span starts
//	    deprecated: use other.key  # the constant stays, marked deprecated
//	    go: Name                   # overrides the Go name
//	    members:                   # for type enum
//	      - {value: chat, brief: a chat, go: Chat, deprecated: use other}
//
// Type any takes an attribute.Value: a map, a slice or a JSON string.
// template[string] is a family of keys: its function takes the last part of
// the key and the value.
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
//	    attributes: [server.port]  # keys of the registry or of external
//
// stability, deprecated and go mean the same as on an attribute. A list that
// several metrics share can be given once with a YAML anchor.
//
// # Events and spans
//
//	events:
//	  - {name: first_token, brief: the first generated output left}
//	spans:
//	  - {name: queue.wait, role: queue, brief: the request waits for the scheduler}
//
// role is a member of genai.span.role.
//
// # Go names
//
// The name is the key without its strip, in camel case at each dot, underscore
// and dash, with Go's initialisms: llm.ttft_ms becomes LLMTTFTMs. Two entries
// that come to the same Go name are an error; go settles it.
package main
