package otlp

import (
	"bytes"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/genaitrace/otelgenai/capture"
)

// proto decodes a protobuf message of a signal, whose shape was compared.
func (d *decoder) proto(s signal, data []byte) (*capture.Capture, *damage) {
	got, err := d.decode(func(to *capture.Capture) error { return d.protoInto(to, s, data) })
	if err != nil {
		return nil, &damage{text: err.Error()}
	}
	return got, nil
}

func (d *decoder) protoInto(to *capture.Capture, s signal, data []byte) error {
	switch s {
	case traces:
		from, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(data)
		if err == nil {
			d.spans(to, from)
		}
		return err
	case metrics:
		from, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(data)
		if err == nil {
			d.metrics(to, from)
		}
		return err
	default:
		from, err := new(plog.ProtoUnmarshaler).UnmarshalLogs(data)
		if err == nil {
			d.logs(to, from)
		}
		return err
	}
}

// json decodes a JSON document, which may carry several signals.
func (d *decoder) json(all []signal, doc []byte) (*capture.Capture, *damage) {
	got, err := d.decode(func(to *capture.Capture) error {
		for _, s := range all {
			if err := d.jsonInto(to, s, doc); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		return got, formerScopes(doc, got)
	}
	if found := diagnoseJSON(doc); found != nil {
		return nil, found
	}
	reason, _, _ := strings.Cut(err.Error(), ", error found in") // what follows repeats the document
	return nil, &damage{text: reason}
}

// formerScopes finds the key of the scopes before version 1.0 in a document of which
// nothing came: pdata passes over it and over all that it holds.
func formerScopes(doc []byte, got *capture.Capture) *damage {
	at := bytes.Index(doc, []byte(`"instrumentationLibrary`))
	if at < 0 || len(got.Spans)+len(got.Metrics)+len(got.Logs)+got.Dropped > 0 {
		return nil
	}
	return &damage{offset: at, text: removed.mismatch(0) + "; expected scopeSpans, scopeMetrics or scopeLogs"}
}

func (d *decoder) jsonInto(to *capture.Capture, s signal, doc []byte) error {
	switch s {
	case traces:
		from, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(doc)
		if err == nil {
			d.spans(to, from)
		}
		return err
	case metrics:
		from, err := new(pmetric.JSONUnmarshaler).UnmarshalMetrics(doc)
		if err == nil {
			d.metrics(to, from)
		}
		return err
	default:
		from, err := new(plog.JSONUnmarshaler).UnmarshalLogs(doc)
		if err == nil {
			d.logs(to, from)
		}
		return err
	}
}

// decode runs a decoding of pdata, whose panics on damaged content become errors.
func (d *decoder) decode(into func(*capture.Capture) error) (got *capture.Capture, err error) {
	got = new(capture.Capture)
	before := d.droppedTotal()
	defer func() {
		if p := recover(); p != nil {
			got, err = nil, fmt.Errorf("the message cannot be decoded: %v", p)
		}
	}()
	if err := into(got); err != nil {
		return nil, err
	}
	got.Dropped = d.droppedTotal() - before
	return got, nil
}
