package genailangchain

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/schema"
	"go.opentelemetry.io/otel"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// WrapRetriever records the searches of a retriever, such as that of
// vectorstores.ToRetriever: a span "retrieval {data source}" with the number of
// documents and their scores, and the metric gen_ai.retrieval.duration. req says what
// is known of the data source, of which DataSource should be. The query is written as
// the content policy says, and as a hash where the Tracer has a key. A score of 0 is
// unknown.
//
// The result is as safe for concurrent use as retriever is. A nil retriever stays nil.
func WrapRetriever(retriever schema.Retriever, tracer *genaitrace.Tracer, req genaitrace.RetrievalRequest, opts ...RetrieverOption) schema.Retriever {
	if retriever == nil {
		return nil
	}
	r := &wrappedRetriever{inner: retriever, tracer: tracer, request: req}
	for _, o := range opts {
		if o != nil {
			o.apply(r)
		}
	}
	return r
}

// A RetrieverOption configures [WrapRetriever].
type RetrieverOption interface{ apply(*wrappedRetriever) }

type retrieverOption func(*wrappedRetriever)

func (f retrieverOption) apply(r *wrappedRetriever) { f(r) }

// WithDocumentID records identifiers of the documents that were found, in
// gen_ai.retrieval.documents. id finds that of a document, such as a key of its
// Metadata; empty is unknown. Default: none, since LangChainGo has no field for it, and
// an identifier can tell who somebody is. id must be safe for concurrent use; where it
// panics, the identifiers of that search are missing.
func WithDocumentID(id func(schema.Document) string) RetrieverOption {
	return retrieverOption(func(r *wrappedRetriever) { r.id = id })
}

type wrappedRetriever struct {
	inner   schema.Retriever
	tracer  *genaitrace.Tracer
	request genaitrace.RetrievalRequest
	id      func(schema.Document) string
}

// GetRelevantDocuments is that of the retriever.
func (r *wrappedRetriever) GetRelevantDocuments(ctx context.Context, query string) (documents []schema.Document, err error) {
	ctx, search := r.tracer.StartRetrieval(ctx, r.request)
	defer search.EndErr(&err)
	search.SetQuery(query)
	documents, err = r.inner.GetRelevantDocuments(ctx, query)
	if err == nil {
		noteDocuments(search, documents, r.id)
	}
	return documents, err
}

// noteDocuments notes what may be told of the documents found.
func noteDocuments(search genaitrace.Retrieval, documents []schema.Document, id func(schema.Document) string) {
	search.SetHits(len(documents))
	out, known := make([]genaitrace.Document, len(documents)), id != nil
	for i, d := range documents {
		if d.Score != 0 {
			out[i].Score, known = new(float64(d.Score)), true
		}
	}
	if id != nil {
		identify(out, documents, id)
	}
	if known {
		search.SetDocuments(out...)
	}
}

// identify asks for the identifiers, and lets no panic of id reach the search.
func identify(out []genaitrace.Document, documents []schema.Document, id func(schema.Document) string) {
	defer func() {
		if v := recover(); v != nil {
			for i := range out {
				out[i].ID = ""
			}
			otel.Handle(fmt.Errorf("genailangchain: WithDocumentID: panicked, no identifiers are recorded: %T", v))
		}
	}()
	for i, d := range documents {
		out[i].ID = id(d)
	}
}
