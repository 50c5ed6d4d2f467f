package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strings"
	"unicode"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An embedder turns texts into vectors of one length.
type embedder interface {
	model() string
	embed(ctx context.Context, texts []string) ([][]float32, error)
}

const (
	hashingModel      = "hashing-512"
	hashingDimensions = 512
)

// hashing is an embedder without a model: each word and each run of three letters adds
// to the dimension that its hash names. Texts that share words, or parts of words, are
// near each other; of meaning it knows nothing.
type hashing struct{ tracer *genaitrace.Tracer }

func (hashing) model() string { return hashingModel }

func (h hashing) embed(ctx context.Context, texts []string) (vectors [][]float32, err error) {
	_, call := h.tracer.StartCall(ctx, genaitrace.Request{
		Operation:  genaiconv.OperationNameEmbeddings,
		Provider:   "hashing",
		Model:      hashingModel,
		Dimensions: hashingDimensions,
		Inputs:     len(texts),
	})
	defer call.EndErr(&err)
	total := 0
	for _, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		words := wordsOf(text)
		total += len(words)
		vectors = append(vectors, hashWords(words))
	}
	if total > 0 {
		call.SetUsage(genaitrace.Usage{InputTokens: &total})
	}
	return vectors, nil
}

// hashWords returns a vector of length 1.
func hashWords(words []string) []float32 {
	vector := make([]float32, hashingDimensions)
	add := func(feature string, weight float32) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(feature))
		sum := h.Sum32()
		if sum&(1<<31) != 0 { // half of what collides cancels out
			weight = -weight
		}
		vector[sum%hashingDimensions] += weight
	}
	for _, word := range words {
		if stopWords[word] {
			continue
		}
		add(word, 1)
		letters := []rune("^" + word + "$")
		for i := 0; i+3 <= len(letters); i++ {
			add(string(letters[i:i+3]), 0.25)
		}
	}
	var square float64
	for _, x := range vector {
		square += float64(x) * float64(x)
	}
	if square == 0 { // nothing but stop words: a direction that no word asks for
		vector[0], square = 1, 1
	}
	for i := range vector {
		vector[i] /= float32(math.Sqrt(square))
	}
	return vector
}

// wordsOf returns the words of text in lower case.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// remote asks a server that speaks OpenAI's API. Its transport makes the span.
type remote struct {
	api  openai.Client
	name string
}

func newRemote(cfg *config, tel *telemetry.Telemetry, base http.RoundTripper) *remote {
	return &remote{name: cfg.embeddingModel, api: openai.NewClient(
		option.WithBaseURL(cfg.baseURL.String()),
		option.WithMaxRetries(1),
		option.WithHTTPClient(&http.Client{Transport: genaihttp.NewTransport(base,
			genaihttp.WithTracerProvider(tel.Traces),
			genaihttp.WithMeterProvider(tel.Metrics),
			genaihttp.WithLoggerProvider(tel.Logs),
		)}),
	)}
}

func (r *remote) model() string { return r.name }

var errVectors = errors.New("embeddings: the server's answer does not hold one vector for each text, all of one length")

func (r *remote) embed(ctx context.Context, texts []string) ([][]float32, error) {
	answer, err := r.api.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: r.name,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts},
	})
	if err != nil {
		return nil, fmt.Errorf("embeddings of %s: %w", r.name, err)
	}
	vectors := make([][]float32, len(texts))
	for _, one := range answer.Data {
		if one.Index < 0 || one.Index >= int64(len(texts)) || len(one.Embedding) == 0 || vectors[one.Index] != nil {
			return nil, errVectors
		}
		vector := make([]float32, len(one.Embedding))
		for i, x := range one.Embedding {
			vector[i] = float32(x)
		}
		vectors[one.Index] = vector
	}
	for _, vector := range vectors {
		if len(vector) == 0 || len(vector) != len(vectors[0]) {
			return nil, errVectors
		}
	}
	return vectors, nil
}
