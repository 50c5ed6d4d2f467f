package genaitrace

import (
	"context"
	"encoding/json"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A RetrievalRequest holds what is known of a search when it starts. Zero values are
// unknown and leave no attribute. It has no place for the query, which is content; see
// [Retrieval.SetQuery].
type RetrievalRequest struct {
	// DataSource identifies what is searched, for example an index: one of few.
	DataSource string
	// Type is how documents are searched: dense, sparse or hybrid.
	Type semconv.GenAIRetrieverTypeAttr
	// TopK is how many documents are asked for.
	TopK int
	// Provider is the system that searches, where it is a service with a name.
	Provider genaiconv.ProviderNameAttr
	// EmbeddingModel is the model whose vectors are compared, and Dimensions how
	// long those are.
	EmbeddingModel string
	Dimensions     int
	// QueryHash is a keyed hash of the query in hex, 8 to 64 digits, by which equal
	// queries are recognised. Anything else is dropped and counted, since it could
	// be the query itself.
	QueryHash string
	// ServerAddress and ServerPort say where the search is sent.
	ServerAddress string
	ServerPort    int
}

// clean bounds every string.
func (r *RetrievalRequest) clean() {
	r.DataSource = bound.String(r.DataSource, maxName)
	r.Type = semconv.GenAIRetrieverTypeAttr(bound.String(string(r.Type), maxReason))
	r.Provider = genaiconv.ProviderNameAttr(bound.String(string(r.Provider), maxName))
	r.EmbeddingModel = bound.String(r.EmbeddingModel, maxName)
	r.ServerAddress = bound.String(r.ServerAddress, maxName)
}

var (
	errQueryHash = errors.New("retrieval: query hash that is not 8 to 64 hex digits dropped: hash the query with a key, never pass it as it is")
	errRetrieval = errors.New("retrieval: negative number dropped")
	errScore     = errors.New("retrieval: score of a document that is no finite number dropped")
)

// appendTo appends what is known and sane.
func (r *RetrievalRequest) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	attrs = append(attrs, genaiconv.OperationName(genaiconv.OperationNameRetrieval))
	if r.DataSource != "" {
		attrs = append(attrs, genaiconv.DataSourceID(r.DataSource))
	}
	if r.Type != "" {
		attrs = append(attrs, semconv.GenAIRetrieverType(r.Type))
	}
	if r.TopK > 0 {
		attrs = append(attrs, genaiconv.RetrievalTopK(r.TopK))
	}
	if r.Provider != "" {
		attrs = append(attrs, genaiconv.ProviderName(r.Provider))
	}
	if r.EmbeddingModel != "" {
		attrs = append(attrs, genaiconv.RequestModel(r.EmbeddingModel))
	}
	if r.Dimensions > 0 {
		attrs = append(attrs, genaiconv.EmbeddingsDimensionCount(r.Dimensions))
	}
	if isHash(r.QueryHash) {
		attrs = append(attrs, semconv.GenAIRetrieverQueryHash(r.QueryHash))
	}
	return appendServer(attrs, r.ServerAddress, r.ServerPort)
}

// isHash reports whether s is nothing but hex digits, of a number that a hash has.
func isHash(s string) bool {
	if len(s) < 8 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

var retrievalOperation = newOperationKind(string(genaiconv.OperationNameRetrieval), semconv.GenAISpanRoleRetrieval, "")

// A Retrieval is one search in a data source.
type Retrieval struct {
	*Operation

	end *retrievalEnd
}

// StartRetrieval starts a search in a data source ("retrieval {data source}",
// INTERNAL; after 100 distinct ones the span's name is "retrieval"). A hybrid search
// that asks two indexes is one span of the type hybrid, or one for each index below
// it. The calls for vectors are model calls of their own: [Tracer.StartCall] with the
// operation embeddings.
//
// Metric: gen_ai.retrieval.duration.
func (t *Tracer) StartRetrieval(ctx context.Context, req RetrievalRequest) (context.Context, Retrieval) {
	if t == nil || t.metrics == nil {
		return ctx, Retrieval{}
	}
	req.clean()
	if req.TopK < 0 || req.Dimensions < 0 {
		t.metrics.fault(ctx, semconv.GenAIFaultCount, errRetrieval)
	}
	if req.QueryHash != "" && !isHash(req.QueryHash) {
		t.metrics.fault(ctx, semconv.GenAIFaultParse, errQueryHash)
	}
	attrs := req.appendTo(retrievalOperation.attributes(ctx, 10))
	ctx, span, began := t.startSpan(ctx, t.suffixed(retrievalName, retrievalOperation.name, req.DataSource), trace.SpanKindInternal, attrs)
	if !span.IsRecording() && !t.metrics.work.retrieval.Enabled(ctx) {
		return ctx, Retrieval{}
	}
	operation, end := newWork(t, ctx, span, began, &retrievalOperation, retrievalEnd{series: workSeries{retrievalWork, [maxWorkKeys]string{
		string(genaiconv.OperationNameRetrieval), string(req.Provider), req.EmbeddingModel, req.DataSource,
	}}})
	return ctx, Retrieval{operation, end}
}

// retrievalEnd is what a search adds to its end.
type retrievalEnd struct {
	series workSeries
	hits   count
	found  count  // documents that were given
	listed string // them as JSON
}

func (e *retrievalEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	hits := e.hits
	if !hits.known {
		hits = e.found
	}
	if hits.known {
		attrs = append(attrs, semconv.GenAIRetrieverHitCount(hits.n))
	}
	if e.listed != "" {
		attrs = append(attrs, genaiconv.RetrievalDocuments(attribute.StringValue(e.listed)))
	}
	return end, attrs
}

func (e *retrievalEnd) record(o *Operation, end operationEnd) {
	m := &o.t.metrics.work
	if !m.retrieval.Enabled(o.ctx) {
		return
	}
	e.series.values[4] = end.errType
	m.retrieval.Record(o.ctx, seconds(end.took), m.sets.of(e.series).record...)
}

// SetHits notes how many documents were found; a negative number is dropped and
// counted.
func (r Retrieval) SetHits(n int) {
	if r.Operation == nil {
		return
	}
	if n < 0 {
		r.t.metrics.fault(r.ctx, semconv.GenAIFaultCount, errRetrieval)
		return
	}
	r.learn(func() { r.end.hits = count{n, true} })
}

// SetReranked notes whether the documents found were put into a new order within the
// search. Reranking on its own is [Tracer.StartRerank].
func (r Retrieval) SetReranked(reranked bool) {
	r.note(semconv.GenAIRetrieverReranked(reranked))
}

// A Document is one that was found. It has no place for the text.
type Document struct {
	// ID identifies the document, or the piece of one.
	ID string
	// Score is how well it fits, in the measure of the search; nil is unknown.
	Score *float64
}

const (
	// maxDocumentID is how long the identifier of a document may be, in bytes.
	maxDocumentID = 128
	// maxDocuments is how long the documents of a search may be as JSON: backends
	// cut longer attributes.
	maxDocuments = 2000
)

// SetDocuments notes identifiers and scores of the documents found, the best first,
// in gen_ai.retrieval.documents: as many of the first as 2,000 characters of JSON
// have room for. Identifiers are cut to 128 bytes. They are written because you give
// them: leave this out where an identifier tells who somebody is. Where SetHits says
// no number, that of the documents is it.
func (r Retrieval) SetDocuments(documents ...Document) {
	if r.Operation == nil {
		return
	}
	listed, sane := "", true
	if r.span.IsRecording() {
		listed, sane = listDocuments(documents)
	}
	if !sane {
		r.t.metrics.fault(r.ctx, semconv.GenAIFaultCount, errScore)
	}
	r.learn(func() { r.end.listed, r.end.found = listed, count{len(documents), true} })
}

func listDocuments(documents []Document) (list string, sane bool) {
	text, sane := []byte{'['}, true
	for _, d := range documents {
		document := genaiconv.RetrievalDocument{ID: bound.String(d.ID, maxDocumentID)}
		switch {
		case d.Score == nil:
		case isFinite(d.Score):
			document.Score = d.Score
		default:
			sane = false
		}
		one, err := json.Marshal(document)
		if err != nil || len(text)+len(",")+len(one)+len("]") > maxDocuments {
			break
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, one...)
	}
	return string(append(text, ']')), sane
}

var rerankOperation = newOperationKind(semconv.SpanRAGRerank, semconv.GenAISpanRoleRerank, "")

// operationRerank is no value that the conventions have defined; they allow others.
const operationRerank genaiconv.OperationNameAttr = "rerank"

// A Rerank puts documents that were found into a new order.
type Rerank struct{ *Operation }

// StartRerank starts the reordering of documents that were found (rag.rerank). model
// is the model that judges them; empty where it is unknown or none does.
func (t *Tracer) StartRerank(ctx context.Context, model string) (context.Context, Rerank) {
	if t == nil || t.tracer == nil {
		return ctx, Rerank{}
	}
	attrs := append(rerankOperation.attributes(ctx, 3), genaiconv.OperationName(operationRerank))
	if model != "" {
		attrs = append(attrs, genaiconv.RequestModel(bound.String(model, maxName)))
	}
	ctx, span, began := t.startSpan(ctx, rerankOperation.name, trace.SpanKindInternal, attrs)
	if !span.IsRecording() {
		return ctx, Rerank{}
	}
	return ctx, Rerank{t.newOperation(ctx, span, began, &rerankOperation)}
}

// SetHits notes how many documents are left; a negative number is dropped and counted.
func (r Rerank) SetHits(n int) {
	if r.Operation == nil {
		return
	}
	if n < 0 {
		r.t.metrics.fault(r.ctx, semconv.GenAIFaultCount, errRetrieval)
		return
	}
	r.note(semconv.GenAIRetrieverHitCount(n))
}
