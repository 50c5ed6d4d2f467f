package wire_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// What cannot be read costs its own telemetry and is counted.
func TestAWSMessagesThatCannotBeRead(t *testing.T) {
	hi, done := awsEvent("contentBlockDelta", `{"delta":{"text":"hi"}}`), awsEvent("metadata", `{"usage":{"inputTokens":1}}`)
	flip := func(s string, at int) string {
		b := []byte(s)
		b[at] ^= 1
		return string(b)
	}
	long := awsEvent("contentBlockDelta", `{"delta":{"text":"`+strings.Repeat("x", wire.MaxEvent)+`"}}`)
	const rest = " in=1 done"
	for _, tt := range []struct {
		name, body, want string
		faults           int64
	}{
		{"a false checksum: the next is read", hi + flip(hi, len(hi)-1) + hi + done, "chunks=3/2 visible" + rest, 1},
		{"a payload that was changed", hi + flip(hi, len(hi)-6) + done, "chunks=2/1 visible" + rest, 1},
		{"lengths that cannot be trusted: nothing after is", hi + flip(hi, 2) + hi + done, "chunks=1/1 visible truncated error=stream_truncated", 1},
		{"a message that is too long: the next is read", hi + long + done, "chunks=2/1 visible" + rest, 1},
		{"the last is too long, and cut", hi + long[:5000], "chunks=1/1 visible truncated error=stream_truncated", 1},
		{"headers longer than the message", hi + awsPrelude(16, 17) + "xxxx", "chunks=1/1 visible truncated error=stream_truncated", 1},
		{"a message of no length", hi + awsPrelude(0, 0) + "xxxx", "chunks=1/1 visible truncated error=stream_truncated", 1},
		{"a header that is cut", hi + awsRaw("\x05:even") + done, "chunks=2/1 visible" + rest, 1},
		{"a header of an unknown type", hi + awsRaw("\x01a\x63") + done, "chunks=2/1 visible" + rest, 1},
		{"a header without a name", hi + awsRaw("\x00\x00") + done, "chunks=2/1 visible" + rest, 1},
		{"a value longer than the headers", hi + awsRaw("\x01a\x07\xff\xffx") + done, "chunks=2/1 visible" + rest, 1},
		{"headers of every type", hi + awsRaw("\x01a\x00\x01b\x01\x01c\x02x\x01d\x03xx\x01e\x04xxxx\x01f\x05xxxxxxxx\x01g\x06\x00\x01x\x01h\x08xxxxxxxx\x01i\x09xxxxxxxxxxxxxxxx") + done, "chunks=2/1 visible" + rest, 0},
		{"a message of nothing", hi + awsMessage("") + done, "chunks=2/1 visible" + rest, 0},
	} {
		for _, size := range []int{len(tt.body), 1000, 1} {
			if size == 1 && len(tt.body) > 100_000 {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				reader := sdkmetric.NewManualReader()
				o := newObserverWithMeter(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
				handled(t)
				span := o.call(func(call *genaitrace.Call) {
					s := wire.NewStream(call, wire.Exchange{})
					for _, p := range chop([]byte(tt.body), size) {
						s.Push(p)
					}
					s.End(io.EOF)
				})
				assert.Equal(t, tt.want, strings.Join(summary(span), " "))
				assert.Equal(t, min(tt.faults, 1), faults(t, reader))
			})
		}
	}
}

// awsRaw is a message with headers as they are given and no payload.
func awsRaw(headers string) string { return awsFrame(headers, "") }
