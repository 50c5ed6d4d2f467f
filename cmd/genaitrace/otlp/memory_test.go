package otlp

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStreamIsReadInBoundedMemory(t *testing.T) {
	total := 20 << 20
	if testing.Short() {
		total = 8 << 20
	}
	for _, format := range []Format{JSONLines, Protobuf} {
		t.Run(format.String(), func(t *testing.T) {
			var piece bytes.Buffer
			require.NoError(t, Write(&piece, modelCalls(2000), format))
			in := NewReader("f", &repeated{piece: piece.Bytes(), left: total / piece.Len()})

			before, most, messages, spans := heap(), uint64(0), 0, 0
			for {
				c, err := in.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				spans += len(c.Spans)
				if messages++; messages%20 == 0 {
					most = max(most, heap())
				}
			}
			assert.Equal(t, total/piece.Len()*2000, spans)
			t.Logf("%d MiB with %d spans, at most %d KiB of heap", total>>20, spans, (most-min(most, before))>>10)
			assert.Less(t, most, before+8<<20, "the heap does not grow with the input")
		})
	}
}

// heap returns the bytes that are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated reads a piece many times.
type repeated struct {
	piece []byte
	left  int
	at    int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.piece[r.at:])
	if r.at += n; r.at == len(r.piece) {
		r.at = 0
		r.left--
	}
	return n, nil
}
