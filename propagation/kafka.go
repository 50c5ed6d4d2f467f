package propagation

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// KafkaHeader is the header type of franz-go, kafka-go and confluent-kafka-go.
type KafkaHeader interface {
	~struct {
		Key   string
		Value []byte
	}
}

// Kafka is a carrier over the headers of a Kafka record, or of any record of a
// log or queue with headers of bytes. Make one with [NewKafka] or [NewKafkaFunc].
//
// Keys of Kafka are case-sensitive; they are read in any letter case and written
// in lower case. A record that was published again, by a retry or to a
// dead-letter topic, may have a header twice: the last one is the newest and
// counts. A key that ends in "-bin" has any bytes as its value, others printable
// ASCII.
//
// Like the slice it writes to, a Kafka must not be written to concurrently.
type Kafka[H any] struct {
	headers *[]H
	split   func(H) (key string, value []byte)
	join    func(key string, value []byte) H
}

var _ propagation.TextMapCarrier = (*Kafka[struct{}])(nil)

// NewKafka returns a carrier over headers, which Set changes:
//
//	bridge.Inject(ctx, propagation.NewKafka(&record.Headers))
func NewKafka[H KafkaHeader](headers *[]H) *Kafka[H] {
	type header = struct {
		Key   string
		Value []byte
	}
	return NewKafkaFunc(headers,
		func(h H) (string, []byte) { return header(h).Key, header(h).Value },
		func(key string, value []byte) H { return H(header{key, value}) })
}

// NewKafkaFunc is [NewKafka] for header types of another shape, such as
// sarama.RecordHeader:
//
//	propagation.NewKafkaFunc(&msg.Headers,
//		func(h sarama.RecordHeader) (string, []byte) { return string(h.Key), h.Value },
//		func(key string, value []byte) sarama.RecordHeader {
//			return sarama.RecordHeader{Key: []byte(key), Value: value}
//		})
func NewKafkaFunc[H any](headers *[]H, split func(H) (key string, value []byte), join func(key string, value []byte) H) *Kafka[H] {
	if headers == nil {
		headers = new([]H)
	}
	return &Kafka[H]{headers: headers, split: split, join: join}
}

// Get returns the last value of key that is legal for it, or "" if there is none.
func (k *Kafka[H]) Get(key string) string {
	key = strings.ToLower(key)
	for _, h := range slices.Backward(*k.headers) {
		if name, value := k.split(h); strings.EqualFold(name, key) && isMetadataValue(key, string(value)) {
			return string(value)
		}
	}
	return ""
}

// Set makes value the only value of key, in place of all earlier ones in any
// letter case. The key is left absent if key or value is empty, or if the value
// is not printable ASCII and the key does not end in "-bin".
func (k *Kafka[H]) Set(key, value string) {
	key = strings.ToLower(key)
	// A copy: the slice may be shared with the record that was read.
	headers := make([]H, 0, len(*k.headers)+1)
	for _, h := range *k.headers {
		if name, _ := k.split(h); !strings.EqualFold(name, key) {
			headers = append(headers, h)
		}
	}
	if isMetadataKey(key) && value != "" && isMetadataValue(key, value) {
		headers = append(headers, k.join(key, []byte(value)))
	}
	*k.headers = headers
}

// Keys returns all keys as they are stored, in order.
func (k *Kafka[H]) Keys() []string {
	keys := make([]string, len(*k.headers))
	for i, h := range *k.headers {
		keys[i], _ = k.split(h)
	}
	return keys
}

func (*Kafka[H]) holdsBytes() {}
