package genailangchain

import (
	"context"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An EmbedderClient is an embeddings.EmbedderClient: what embeddings.NewEmbedder takes.
type EmbedderClient interface {
	CreateEmbedding(ctx context.Context, texts []string) ([][]float32, error)
}

// WrapEmbedder records the requests for vectors: a span "embeddings {model}" each, with
// the number of texts and the length of the vectors. req says what they have in common;
// see [WrapModel]. LangChainGo tells no usage of them; the transport of package
// genaihttp does.
//
// The result is as safe for concurrent use as client is. A nil client stays nil.
func WrapEmbedder(client EmbedderClient, tracer *genaitrace.Tracer, req genaitrace.Request) EmbedderClient {
	if client == nil {
		return nil
	}
	req.Operation = genaiconv.OperationNameEmbeddings
	return &wrappedEmbedder{client, tracer, req}
}

type wrappedEmbedder struct {
	inner   EmbedderClient
	tracer  *genaitrace.Tracer
	request genaitrace.Request
}

// CreateEmbedding is that of the client.
func (e *wrappedEmbedder) CreateEmbedding(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	req := e.request
	req.Inputs = len(texts)
	return genaitrace.Do(ctx, e.tracer, req, func(ctx context.Context) ([][]float32, error) {
		vectors, err := e.inner.CreateEmbedding(ctx, texts)
		call := genaitrace.CallFromContext(ctx)
		switch {
		case err != nil:
			noteFailure(ctx, call, err)
		case len(vectors) > 0:
			call.SetRequest(genaitrace.Request{Dimensions: len(vectors[0])})
		}
		return vectors, err
	})
}
