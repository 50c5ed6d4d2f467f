package otlp

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/capture"
)

// beyondMaxKept is the reason for which whole exports are not kept.
const beyondMaxKept = "beyond the limit of what is kept (MaxKept)"

// encoding is how an export is encoded.
type encoding bool

const (
	protobuf encoding = false
	inJSON   encoding = true
)

// receive takes one export and returns the response of OTLP in the same encoding, or
// an error with its status. The sender waits for it as long as ctx lasts.
func (r *Receiver) receive(ctx context.Context, s signal, in encoding, body []byte) ([]byte, error) {
	d := newDecoder()
	got, err := decodeExport(d, s, in, body)
	if err != nil {
		return nil, err
	}
	e, again := r.unanswered.begin(ctx, body)
	if again {
		return response(s, in, d.dropped)
	}
	err = r.keep(got, len(body), d.dropped)
	r.unanswered.end(e, err == nil)
	if err != nil {
		return nil, err
	}
	return response(s, in, d.dropped)
}

// unanswered remembers the exports whose senders hung up before they had an answer: they
// send them again. The same from a second exporter is something else, and stays.
type unanswered struct {
	mu      sync.Mutex
	seed    maphash.Seed
	exports map[uint64]*sent // by hash of the body; also those that are being received
}

type sent struct {
	sum    uint64
	hungUp <-chan struct{} // closed once the sender did
}

func (e *sent) lost() bool {
	select {
	case <-e.hungUp:
		return true
	default:
		return false
	}
}

// maxUnanswered bounds how many are remembered.
const maxUnanswered = 1024

// begin reports whether body came before from a sender that hung up, and remembers it.
func (u *unanswered) begin(ctx context.Context, body []byte) (e *sent, again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := maphash.Bytes(u.seed, body)
	if before, ok := u.exports[sum]; ok && before.lost() {
		return before, true
	}
	if u.exports == nil || len(u.exports) >= maxUnanswered {
		u.exports = map[uint64]*sent{}
	}
	e = &sent{sum, ctx.Done()}
	u.exports[sum] = e
	return e, false
}

// end forgets an export that gets its answer, or was not kept.
func (u *unanswered) end(e *sent, kept bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if (!kept || !e.lost()) && u.exports[e.sum] == e {
		delete(u.exports, e.sum)
	}
}

// decodeExport decodes what was sent for one signal.
func decodeExport(d *decoder, s signal, in encoding, body []byte) (*capture.Capture, error) {
	var got *capture.Capture
	var found *damage
	if in == inJSON {
		got, found = jsonExport(d, s, body)
	} else if _, found = walkProto(s, body); found == nil {
		got, found = d.proto(s, body)
	}
	if found != nil {
		return nil, status.Errorf(codes.InvalidArgument, "this is no export of %s: byte %d: %v", s, found.offset, found)
	}
	return got, nil
}

func jsonExport(d *decoder, s signal, body []byte) (*capture.Capture, *damage) {
	doc := bytes.Trim(body, space)
	if !bytes.HasPrefix(doc, []byte("{")) {
		return nil, &damage{text: "expected a JSON object"}
	}
	var scan jsonScan
	n, done, found := scan.feed(doc)
	switch {
	case found != nil:
		return nil, found
	case !done:
		return nil, &damage{offset: n, text: "the document is cut off here"}
	case n < len(doc):
		return nil, &damage{offset: n, text: "something follows the document"}
	}
	all, found := scan.signals(doc)
	if found != nil {
		return nil, found
	}
	if slices.ContainsFunc(all, func(other signal) bool { return other != s }) {
		return nil, &damage{text: fmt.Sprintf("the document holds %s", all[0])}
	}
	return d.json(all, doc)
}

// keep keeps an export, or gives it to the sink. Size is the number of its bytes.
func (r *Receiver) keep(got *capture.Capture, size int, dropped map[string]int) error {
	if r.config.Sink != nil {
		r.count(dropped)
		r.sink.Lock()
		defer r.sink.Unlock()
		r.config.Sink(got)
		return nil
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	points := 0
	for _, m := range got.Metrics {
		points += len(m.Points)
	}
	if r.kept+size > r.config.MaxKept {
		r.dropped[beyondMaxKept] += got.Dropped + len(got.Spans) + len(got.Logs) + points
		return status.Errorf(codes.ResourceExhausted, "the receiver keeps at most %s", bytesOf(r.config.MaxKept))
	}
	if points > 0 { // exports of metrics hold nothing else
		size = size * r.metrics.add(got.Metrics) / points
	}
	r.kept += size
	r.got.Spans = append(r.got.Spans, got.Spans...)
	r.got.Logs = append(r.got.Logs, got.Logs...)
	addCounts(r.dropped, dropped)
	return nil
}

func (r *Receiver) count(dropped map[string]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	addCounts(r.dropped, dropped)
}

func addCounts(to, more map[string]int) {
	for reason, n := range more {
		to[reason] += n
	}
}

// response is what OTLP answers to an export of which some was dropped.
func response(s signal, in encoding, dropped map[string]int) ([]byte, error) {
	rejected, reasons := int64(0), make([]string, 0, len(dropped))
	for _, reason := range slices.Sorted(maps.Keys(dropped)) {
		if reason != noExemplar { // its point is kept
			rejected += int64(dropped[reason])
		}
		reasons = append(reasons, fmt.Sprintf("%d × %s", dropped[reason], reason))
	}
	message := strings.Join(reasons, "; ")

	var out interface {
		MarshalProto() ([]byte, error)
		MarshalJSON() ([]byte, error)
	}
	switch s {
	case traces:
		r := ptraceotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedSpans(rejected)
		r.PartialSuccess().SetErrorMessage(message)
		out = r
	case metrics:
		r := pmetricotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedDataPoints(rejected)
		r.PartialSuccess().SetErrorMessage(message)
		out = r
	default:
		r := plogotlp.NewExportResponse()
		r.PartialSuccess().SetRejectedLogRecords(rejected)
		r.PartialSuccess().SetErrorMessage(message)
		out = r
	}
	if in == inJSON {
		return out.MarshalJSON()
	}
	return out.MarshalProto()
}
