package gguf_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/integration/gguf"
)

var tiny = gguf.Model{Name: "tiny", Dim: 16, Hidden: 32, Layers: 2, Heads: 2, Context: 64, Seed: 7}

func write(t *testing.T, m gguf.Model) []byte {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, gguf.Write(&out, m))
	return out.Bytes()
}

func TestTheSameModelIsTheSameFile(t *testing.T) {
	other := tiny
	other.Seed++
	assert.Equal(t, sha256.Sum256(write(t, tiny)), sha256.Sum256(write(t, tiny)))
	assert.NotEqual(t, sha256.Sum256(write(t, tiny)), sha256.Sum256(write(t, other)))
}

func TestAFileHasItsWeights(t *testing.T) {
	file := write(t, tiny)
	assert.Equal(t, "GGUF", string(file[:4]))
	assert.EqualValues(t, 3, binary.LittleEndian.Uint32(file[4:]))
	assert.EqualValues(t, 2+9*tiny.Layers, binary.LittleEndian.Uint64(file[8:]), "tensors")
	assert.Zero(t, len(file)%32)
	assert.Greater(t, len(file), 4*tiny.Parameters())
	assert.Less(t, len(file), 4*tiny.Parameters()+16_384)
}

func TestAShapeThatIsNone(t *testing.T) {
	for _, m := range []gguf.Model{{}, {Dim: 15, Hidden: 32, Layers: 1, Heads: 2, Context: 8}} {
		assert.ErrorContains(t, gguf.Write(&bytes.Buffer{}, m), "is not one of a model")
	}
}

func TestTheErrorOfTheWriter(t *testing.T) {
	full := errors.New("disk full")
	assert.ErrorIs(t, gguf.Write(failing{full}, tiny), full)
}

type failing struct{ err error }

func (w failing) Write([]byte) (int, error) { return 0, w.err }
