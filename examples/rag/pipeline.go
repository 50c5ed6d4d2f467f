package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

const (
	topK       = 8 // hits of each index
	maxSources = 3 // of them that the model sees
)

// A pipeline finds what a question is answered from.
type pipeline struct {
	tracer     *genaitrace.Tracer
	steps      trace.Tracer // of steps that the conventions have no word for
	chunks     map[string]chunk
	retrievers []retriever
}

func newPipeline(tel *telemetry.Telemetry, chunks []chunk, retrievers ...retriever) *pipeline {
	p := &pipeline{
		tracer:     tel.Tracer,
		steps:      tel.Traces.Tracer("github.com/genaitrace/otelgenai/examples/rag"),
		chunks:     make(map[string]chunk, len(chunks)),
		retrievers: retrievers,
	}
	for _, c := range chunks {
		p.chunks[c.id] = c
	}
	return p
}

// A finding is what a question is answered from, the best source first.
type finding struct {
	sources []chunk
	failed  []string // retrievers that found nothing because they failed
}

// find does all that comes before the model. It fails where every retriever failed.
func (p *pipeline) find(ctx context.Context, question string) (finding, error) {
	q := p.rewrite(ctx, question)
	fused, failed, err := p.retrieve(ctx, q)
	if err != nil {
		return finding{}, err
	}
	sources, err := p.rerank(ctx, q, fused)
	return finding{sources, failed}, err
}

// A query is a question as the indexes are asked.
type query struct {
	words    []string // those that carry meaning
	expanded string   // the question and what its abbreviations stand for
}

// rewrite makes a question fit for searching, by rules.
func (p *pipeline) rewrite(ctx context.Context, question string) query {
	_, span := p.steps.Start(ctx, "query.rewrite")
	defer span.End()
	q := query{expanded: question}
	seen := make(map[string]bool)
	for _, w := range wordsOf(question) {
		if stopWords[w] || seen[w] {
			continue
		}
		seen[w] = true
		q.words = append(q.words, w)
		if long := abbreviations[w]; long != "" {
			q.expanded += " " + long
			for _, w := range wordsOf(long) {
				if !stopWords[w] && !seen[w] {
					seen[w] = true
					q.words = append(q.words, w)
				}
			}
		}
	}
	return q
}

// retrieve asks all indexes at the same time and fuses what they found. One that fails
// does not end the search: the others still answer.
func (p *pipeline) retrieve(ctx context.Context, q query) (fused []hit, failed []string, err error) {
	ctx, search := p.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "docs", Type: semconv.GenAIRetrieverTypeHybrid, TopK: topK * len(p.retrievers),
	})
	defer search.EndErr(&err)

	var (
		mu    sync.Mutex
		lists = make(map[string][]hit)
		errs  []error
	)
	group := p.tracer.NewGroup(ctx)
	for _, r := range p.retrievers {
		group.Go("search."+r.name(), func(ctx context.Context) error {
			hits, err := r.search(ctx, q, topK)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs, failed = append(errs, fmt.Errorf("%s search: %w", r.name(), err)), append(failed, r.name())
				// Returned, the error would cancel the other search. The span of this one
				// has it.
				return ctx.Err()
			}
			lists[r.name()] = hits
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if len(errs) == len(p.retrievers) {
		return nil, nil, errors.Join(errs...)
	}
	fused = fuse(lists)
	search.SetDocuments(documents(fused)...)
	return fused, failed, nil
}

// fuse adds up 1/(60+rank) over the lists (reciprocal rank fusion), because scores of
// different indexes cannot be compared.
func fuse(lists map[string][]hit) []hit {
	scores := make(map[string]float64)
	for _, hits := range lists {
		for rank, h := range hits {
			scores[h.id] += 1 / float64(60+rank+1)
		}
	}
	fused := make([]hit, 0, len(scores))
	for id, score := range scores {
		fused = append(fused, hit{id, score})
	}
	slices.SortFunc(fused, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return fused
}

// rerank reads the chunks that were found and keeps those that hold the largest share
// of the question's words, words of the heading twice. Ties keep the order of fusion.
func (p *pipeline) rerank(ctx context.Context, q query, fused []hit) (sources []chunk, err error) {
	ctx, rerank := p.tracer.StartRerank(ctx, "") // no model judges
	defer rerank.EndErr(&err)
	type candidate struct {
		chunk chunk
		score float64
	}
	candidates := make([]candidate, 0, len(fused))
	for _, h := range fused {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, ok := p.chunks[h.id]
		if !ok {
			return nil, fmt.Errorf("an index knows chunk %s, which the documents do not have", h.id)
		}
		candidates = append(candidates, candidate{c, coverage(q.words, c) + h.score})
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	for _, c := range candidates[:min(maxSources, len(candidates))] {
		sources = append(sources, c.chunk)
	}
	rerank.SetHits(len(sources))
	return sources, nil
}

// coverage is the share of words that c holds, from 0 to 2.
func coverage(words []string, c chunk) float64 {
	if len(words) == 0 {
		return 0
	}
	text, title := make(map[string]bool), make(map[string]bool)
	for _, w := range wordsOf(c.text) {
		text[stem(w)] = true
	}
	for _, w := range wordsOf(c.title) {
		title[stem(w)] = true
	}
	held := 0.0
	for _, w := range words {
		if text[stem(w)] {
			held++
		}
		if title[stem(w)] {
			held++
		}
	}
	return held / float64(len(words))
}

// stem takes the plural off an English word.
func stem(word string) string {
	if len(word) > 3 {
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// abbreviations are those of this project's documents.
var abbreviations = map[string]string{
	"ttft": "time to first token",
	"tpot": "time per output token",
	"itl":  "inter token latency gap",
	"kv":   "key value cache",
	"rag":  "retrieval",
	"otlp": "opentelemetry protocol",
	"otel": "opentelemetry",
	"llm":  "model",
	"slo":  "objective",
}

var stopWords = words("a an and are as at be by can do does explain for from has have how i in is it its me of on or" +
	" tell that the there this to was what when where which who why will with you")

func words(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
