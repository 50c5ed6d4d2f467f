package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A tool is something that the agent does for the model.
type tool struct {
	name, description string
	kind              string         // as the conventions say it: function or extension
	parameters        map[string]any // a JSON schema
	rule              *rule          // nil where any call is allowed

	run func(ctx context.Context, arguments json.RawMessage) (result string, err error)
}

// newTool makes a tool of a Go function. The schema of its parameters is that of A;
// arguments that do not fit are an [argumentError].
func newTool[A any](name, description string, run func(ctx context.Context, arguments A) (string, error)) (*tool, error) {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	parameters, err := asMap(schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: %w", name, err)
	}
	return &tool{
		name: name, description: description, kind: "function", parameters: parameters,
		run: func(ctx context.Context, raw json.RawMessage) (string, error) {
			var instance map[string]any
			var arguments A
			err := json.Unmarshal(raw, &instance)
			if err == nil {
				err = resolved.Validate(instance)
			}
			if err == nil {
				err = json.Unmarshal(raw, &arguments)
			}
			if err != nil {
				return "", &argumentError{err}
			}
			return run(ctx, arguments)
		},
	}, nil
}

// An argumentError means that the model called a tool with arguments that do not fit it.
type argumentError struct{ err error }

func (e *argumentError) Error() string { return "the arguments do not fit: " + e.err.Error() }

// ErrorType is the error.type of the span.
func (*argumentError) ErrorType() string { return "invalid_arguments" }

// An unknownToolError means that the model called a tool that it was not offered.
type unknownToolError struct{ name string }

func (e *unknownToolError) Error() string { return fmt.Sprintf("there is no tool %q", e.name) }

// ErrorType is the error.type of the span.
func (*unknownToolError) ErrorType() string { return "unknown_tool" }

// A toolError is what a tool answered instead of a result.
type toolError struct{ text string }

func (e *toolError) Error() string { return e.text }

// ErrorType is the error.type of the span: the word of the conventions.
func (*toolError) ErrorType() string { return "tool_error" }

// temporary reports whether the same call may go well a moment later. Errors say so
// themselves. (A deadline calls itself Temporary, but its time is over.)
func temporary(err error) bool {
	var t interface{ TryAgain() bool }
	return errors.As(err, &t) && t.TryAgain()
}

// maxResult bounds what the model is told of a result, in bytes.
const maxResult = 4096

// short is a result that a model can read.
func short(text string) string {
	if len(text) > maxResult {
		text = text[:maxResult] + "\n…"
	}
	return strings.ToValidUTF8(text, "�")
}
