// Package gguf writes models of the Llama architecture with random weights, as GGUF
// files that llama.cpp loads. Their text means nothing. Loading, prefill, decode, the KV
// cache and cancelling are as real as with any model of that size.
//
//	err := gguf.Write(file, gguf.Model{Name: "random25M", Dim: 512, Hidden: 1376, Layers: 8, Heads: 8, Context: 2048, Seed: 1})
//
// The format is described in the document gguf.md of the ggml project (version 3, little
// endian).
package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// Model is the shape of a model. Its tokenizer knows the 256 bytes and three special
// tokens, so a text has one token a byte and one for its beginning.
type Model struct {
	Name    string
	Dim     int // of the embedding; a multiple of Heads
	Hidden  int // of the feed-forward layers
	Layers  int
	Heads   int
	Context int // longest context in tokens
	Seed    uint64
}

// Vocabulary is the number of tokens: unknown, beginning, end, and the bytes.
const Vocabulary = 3 + 256

// Parameters counts the weights.
func (m Model) Parameters() int {
	layer := 4*m.Dim*m.Dim + 3*m.Dim*m.Hidden + 2*m.Dim
	return Vocabulary*m.Dim + m.Layers*layer + m.Dim
}

const (
	magic      = 0x46554747 // GGUF
	version    = 3
	alignment  = 32
	typeUint32 = 4
	typeInt32  = 5
	typeFloat  = 6
	typeBool   = 7
	typeString = 8
	typeArray  = 9
	tensorF32  = 0

	tokenUnknown, tokenControl, tokenByte = 2, 3, 6
)

// Write writes the model. The same Model gives the same bytes.
func Write(w io.Writer, m Model) error {
	if m.Dim <= 0 || m.Hidden <= 0 || m.Layers <= 0 || m.Heads <= 0 || m.Context <= 0 || m.Dim%m.Heads != 0 {
		return fmt.Errorf("gguf: the shape %+v is not one of a model", m)
	}
	e := &encoder{w: bufio.NewWriterSize(w, 1<<20)}
	tensors := m.tensors()
	e.u32(magic)
	e.u32(version)
	e.u64(uint64(len(tensors)))
	metadata := m.metadata()
	e.u64(uint64(len(metadata)))
	for _, kv := range metadata {
		e.str(kv.key)
		kv.value(e)
	}
	var offset uint64
	for _, t := range tensors {
		e.str(t.name)
		e.u32(uint32(len(t.dims)))
		for _, d := range t.dims {
			e.u64(uint64(d))
		}
		e.u32(tensorF32)
		e.u64(offset)
		offset += padded(uint64(4 * t.elements()))
	}
	e.pad()
	random := rand.New(rand.NewPCG(m.Seed, m.Seed))
	for _, t := range tensors {
		for range t.elements() {
			v := float32(1)
			if t.scale > 0 {
				v = float32(random.NormFloat64() * t.scale)
			}
			e.u32(math.Float32bits(v))
		}
		e.pad()
	}
	return errors.Join(e.err, e.w.Flush())
}

type tensor struct {
	name  string
	dims  []int   // the fastest first
	scale float64 // of the weights; 0 for a norm, whose weights are 1
}

func (t tensor) elements() int {
	n := 1
	for _, d := range t.dims {
		n *= d
	}
	return n
}

func (m Model) tensors() []tensor {
	square := 1 / math.Sqrt(float64(m.Dim))
	down := 1 / math.Sqrt(float64(m.Hidden))
	out := []tensor{{"token_embd.weight", []int{m.Dim, Vocabulary}, 1}}
	for i := range m.Layers {
		name := func(part string) string { return fmt.Sprintf("blk.%d.%s.weight", i, part) }
		out = append(out,
			tensor{name("attn_norm"), []int{m.Dim}, 0},
			tensor{name("attn_q"), []int{m.Dim, m.Dim}, square},
			tensor{name("attn_k"), []int{m.Dim, m.Dim}, square},
			tensor{name("attn_v"), []int{m.Dim, m.Dim}, square},
			tensor{name("attn_output"), []int{m.Dim, m.Dim}, square},
			tensor{name("ffn_norm"), []int{m.Dim}, 0},
			tensor{name("ffn_gate"), []int{m.Dim, m.Hidden}, square},
			tensor{name("ffn_down"), []int{m.Hidden, m.Dim}, down},
			tensor{name("ffn_up"), []int{m.Dim, m.Hidden}, square},
		)
	}
	return append(out, tensor{"output_norm.weight", []int{m.Dim}, 0}) // the output is tied to the embedding
}

type metadatum struct {
	key   string
	value func(*encoder)
}

func (m Model) metadata() []metadatum {
	text := func(s string) func(*encoder) { return func(e *encoder) { e.u32(typeString); e.str(s) } }
	number := func(n int) func(*encoder) { return func(e *encoder) { e.u32(typeUint32); e.u32(uint32(n)) } }
	float := func(f float32) func(*encoder) {
		return func(e *encoder) { e.u32(typeFloat); e.u32(math.Float32bits(f)) }
	}
	yes := func(e *encoder) { e.u32(typeBool); e.bytes([]byte{1}) }
	return []metadatum{
		{"general.architecture", text("llama")},
		{"general.name", text(m.Name)},
		{"general.file_type", number(0)},
		{"general.alignment", number(alignment)},
		{"llama.context_length", number(m.Context)},
		{"llama.embedding_length", number(m.Dim)},
		{"llama.block_count", number(m.Layers)},
		{"llama.feed_forward_length", number(m.Hidden)},
		{"llama.attention.head_count", number(m.Heads)},
		{"llama.attention.head_count_kv", number(m.Heads)},
		{"llama.attention.layer_norm_rms_epsilon", float(1e-5)},
		{"llama.rope.dimension_count", number(m.Dim / m.Heads)},
		{"llama.rope.freq_base", float(10000)},
		{"tokenizer.ggml.model", text("llama")},
		{"tokenizer.ggml.tokens", func(e *encoder) {
			e.array(typeString)
			for _, token := range []string{"<unk>", "<s>", "</s>"} {
				e.str(token)
			}
			for b := range 256 {
				e.str(fmt.Sprintf("<0x%02X>", b))
			}
		}},
		{"tokenizer.ggml.scores", func(e *encoder) {
			e.array(typeFloat)
			for range Vocabulary {
				e.u32(0)
			}
		}},
		{"tokenizer.ggml.token_type", func(e *encoder) {
			e.array(typeInt32)
			for _, kind := range []uint32{tokenUnknown, tokenControl, tokenControl} {
				e.u32(kind)
			}
			for range 256 {
				e.u32(tokenByte)
			}
		}},
		{"tokenizer.ggml.unknown_token_id", number(0)},
		{"tokenizer.ggml.bos_token_id", number(1)},
		{"tokenizer.ggml.eos_token_id", number(2)},
		{"tokenizer.ggml.add_bos_token", yes},
	}
}

// encoder writes numbers as GGUF has them, and remembers the first error.
type encoder struct {
	w   *bufio.Writer
	n   uint64
	err error
}

func (e *encoder) bytes(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
		e.n += uint64(len(b))
	}
}

func (e *encoder) u32(v uint32) { e.bytes(binary.LittleEndian.AppendUint32(nil, v)) }
func (e *encoder) u64(v uint64) { e.bytes(binary.LittleEndian.AppendUint64(nil, v)) }

func (e *encoder) str(s string) {
	e.u64(uint64(len(s)))
	e.bytes([]byte(s))
}

// array begins an array with an element for each token.
func (e *encoder) array(kind uint32) {
	e.u32(typeArray)
	e.u32(kind)
	e.u64(Vocabulary)
}

func (e *encoder) pad() { e.bytes(make([]byte, padded(e.n)-e.n)) }

func padded(n uint64) uint64 { return (n + alignment - 1) / alignment * alignment }
