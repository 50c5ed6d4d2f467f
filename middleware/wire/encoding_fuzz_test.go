package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzEncoded: what is decoded of a body depends neither on how it is cut nor, up to
// the bound, on anything but the decoder.
func FuzzEncoded(f *testing.F) {
	pack := func(to io.WriteCloser, out *bytes.Buffer, stream []byte) []byte {
		_, err := to.Write(stream)
		require.NoError(f, err)
		require.NoError(f, to.Close())
		return bytes.Clone(out.Bytes())
	}
	seed(f, func(stream []byte) {
		var out bytes.Buffer
		member := pack(gzip.NewWriter(&out), &out, stream)
		f.Add(append(member, member...), true, uint64(1))
		f.Add(member[:len(member)/2], true, uint64(2))
		out.Reset()
		f.Add(pack(zlib.NewWriter(&out), &out, stream), false, uint64(3))
		out.Reset()
		bare, err := flate.NewWriter(&out, flate.DefaultCompression)
		require.NoError(f, err)
		f.Add(pack(bare, &out, stream), false, uint64(4))
	})
	f.Fuzz(func(t *testing.T, body []byte, zipped bool, cuts uint64) {
		decoder := decoders["deflate"]
		if zipped {
			decoder = decoders["gzip"]
		}
		want, wantErr := decode(decoder, body)
		got, gotErr := decode(decoder, cut(rand.New(rand.NewPCG(cuts, 0)), body)...)
		require.Equal(t, wantErr == nil, gotErr == nil, "%v, %v", wantErr, gotErr)
		if len(want) < decodedFree {
			require.Equal(t, want, got)
		}
		require.LessOrEqual(t, len(got), decodedFree+decodedRatio*len(body)+64<<10)
	})
}

func decode(decoder Decoder, pieces ...[]byte) (out []byte, err error) {
	d := newDecoding(decoder, func(p []byte) { out = append(out, p...) })
	for _, p := range pieces {
		d.push(p)
	}
	err = d.finish()
	return out, err
}
