package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/openai/openai-go/v3"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

const deniedStatus = semconv.GenAIToolStatusDenied

// A rule is what calls of a tool must hold.
type rule struct {
	id     string
	broken func(arguments json.RawMessage) error // what is wrong with them
}

// check holds a call to the rule of its tool. That it is blocked is a verdict: neither
// the check nor the tool has failed.
func (a *agent) check(ctx context.Context, t *tool, c openai.ChatCompletionMessageToolCallUnion) error {
	if t == nil || t.rule == nil {
		return nil
	}
	_, check := a.tracer.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: t.rule.id, Target: semconv.GenAIGuardrailTargetToolCall})
	defer check.End()
	if err := t.rule.broken(json.RawMessage(c.Function.Arguments)); err != nil {
		check.SetVerdict(semconv.GenAIGuardrailOutcomeBlock, "")
		return fmt.Errorf("denied by the rule %s: %w", t.rule.id, err)
	}
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	return nil
}

// insideRoot keeps a search inside the directory that may be searched.
var insideRoot = &rule{id: "inside-root", broken: func(arguments json.RawMessage) error {
	var in struct {
		Under string `json:"under"`
	}
	if json.Unmarshal(arguments, &in) == nil && in.Under != "" && !filepath.IsLocal(in.Under) {
		return errors.New("files outside of the root are not searched")
	}
	return nil
}}
