package genaitrace

import (
	"context"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// A task has no role: what runs in it has one.
var taskOperation = operationKind{name: "task"}

// StartTask starts a piece of work that is no operation of its own, such as a step of a
// pipeline that holds several of them, or one that calls no model at all (INTERNAL). Its
// span has the name, which must be one of few: the first 100 of a process stand for
// themselves, later ones are "task". A [Group] starts one for each of its tasks.
func (t *Tracer) StartTask(ctx context.Context, name string) (context.Context, *Operation) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	name = t.chosen(taskName, bound.String(name, maxName), taskOperation.name)
	ctx, span, began := t.startPrepared(ctx, name, nil)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, t.newOperation(ctx, span, began, &taskOperation)
}
