package main

import (
	"context"
	"fmt"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/index/scorch"
	index "github.com/blevesearch/bleve_index_api"
	"github.com/philippgille/chromem-go"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A hit is a chunk that was found, and how well it fits in the measure of its index.
type hit struct {
	id    string
	score float64
}

// A retriever searches one index, and records that.
type retriever interface {
	name() string
	search(ctx context.Context, q query, topK int) ([]hit, error)
}

// dense finds the chunks whose vectors are nearest to that of the question.
type dense struct {
	tracer  *genaitrace.Tracer
	embed   embedder
	vectors *chromem.Collection
	length  int // of a vector; 0 before there is one
}

func newDense(tracer *genaitrace.Tracer, e embedder) (*dense, error) {
	// The collection never embeds by itself: the calls for vectors are ours.
	vectors, err := chromem.NewDB().CreateCollection("docs", nil, func(context.Context, string) ([]float32, error) {
		return nil, errVectors
	})
	if err != nil {
		return nil, fmt.Errorf("vector store: %w", err)
	}
	return &dense{tracer: tracer, embed: e, vectors: vectors}, nil
}

func (*dense) name() string { return "dense" }

func (d *dense) add(ctx context.Context, chunks []chunk) error {
	texts := make([]string, len(chunks))
	for i, c := range chunks {
		texts[i] = c.title + "\n" + c.text
	}
	vectors, err := d.embed.embed(ctx, texts)
	if err != nil {
		return err
	}
	documents := make([]chromem.Document, len(chunks))
	for i, c := range chunks {
		if d.length == 0 {
			d.length = len(vectors[i])
		}
		if len(vectors[i]) != d.length {
			return errVectors
		}
		documents[i] = chromem.Document{ID: c.id, Content: c.text, Embedding: vectors[i]}
	}
	return d.vectors.AddDocuments(ctx, documents, 1)
}

func (d *dense) search(ctx context.Context, q query, topK int) (hits []hit, err error) {
	ctx, search := d.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "docs.vectors", Type: semconv.GenAIRetrieverTypeDense, TopK: topK,
		EmbeddingModel: d.embed.model(), Dimensions: d.length,
	})
	defer search.EndErr(&err)
	vectors, err := d.embed.embed(ctx, []string{q.expanded})
	if err != nil {
		return nil, err
	}
	found, err := d.vectors.QueryEmbedding(ctx, vectors[0], min(topK, d.vectors.Count()), nil, nil)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.Similarity > 0 { // what is not near was only not worse than the rest
			hits = append(hits, hit{f.ID, float64(f.Similarity)})
		}
	}
	search.SetDocuments(documents(hits)...)
	return hits, nil
}

// lexical finds the chunks that hold the words of the question (BM25).
type lexical struct {
	tracer *genaitrace.Tracer
	index  bleve.Index
}

// entry is what the index reads of a chunk.
type entry struct{ Title, Text string }

func newLexical(tracer *genaitrace.Tracer) (*lexical, error) {
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = en.AnalyzerName // stems and stop words of English
	mapping.ScoringModel = index.BM25Scoring
	words, err := bleve.NewUsing("", mapping, scorch.Name, scorch.Name, nil) // in memory, as the path is empty
	if err != nil {
		return nil, fmt.Errorf("lexical index: %w", err)
	}
	return &lexical{tracer, words}, nil
}

func (*lexical) name() string { return "lexical" }

func (l *lexical) add(chunks []chunk) error {
	batch := l.index.NewBatch()
	for _, c := range chunks {
		if err := batch.Index(c.id, entry{c.title, c.text}); err != nil {
			return fmt.Errorf("lexical index: %w", err)
		}
	}
	return l.index.Batch(batch)
}

func (l *lexical) search(ctx context.Context, q query, topK int) (hits []hit, err error) {
	ctx, search := l.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "docs.words", Type: semconv.GenAIRetrieverTypeSparse, TopK: topK,
	})
	defer search.EndErr(&err)
	found, err := l.index.SearchInContext(ctx, bleve.NewSearchRequestOptions(bleve.NewMatchQuery(q.expanded), topK, 0, false))
	if err != nil {
		return nil, err
	}
	for _, f := range found.Hits {
		hits = append(hits, hit{f.ID, f.Score})
	}
	search.SetDocuments(documents(hits)...)
	return hits, nil
}

// documents are identifiers and scores, which telemetry may know. Texts it may not.
func documents(hits []hit) []genaitrace.Document {
	out := make([]genaitrace.Document, len(hits))
	for i, h := range hits {
		out[i] = genaitrace.Document{ID: h.id, Score: &h.score}
	}
	return out
}
