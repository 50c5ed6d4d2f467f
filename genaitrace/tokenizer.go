package genaitrace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A TokenizerBinding says which tokenizer belongs to which model: from the name of
// a model, or whatever else the service tells models apart by, such as
// "name@version", to the fingerprint of its tokenizer ([TokenizerFingerprint]).
type TokenizerBinding map[string]string

// A TokenizerError says that a tokenizer does not belong to its model: its token
// counts are wrong, and so is what the model reads.
type TokenizerError struct {
	Model string
	// Want is the fingerprint of the model's tokenizer, Got that of the one used.
	Want, Got string
}

func (e *TokenizerError) Error() string {
	return fmt.Sprintf("genaitrace: tokenizer %s does not belong to model %s: want %s; load the model's own tokenizer, or correct the binding",
		e.Got, e.Model, e.Want)
}

// ErrorType is the error.type where a request fails for this.
func (*TokenizerError) ErrorType() string { return "tokenizer_mismatch" }

// CheckTokenizer records the fingerprint of the tokenizer that was used for a
// model, on the tokenizer.encode span where one is open, else on that of the
// inference. Where the binding has another one for the model, it records an event
// tokenizer_mismatch and returns a [*TokenizerError]. What to do then is the
// caller's choice: the request goes on.
//
// It checks also where nothing records and on a nil Inference, so that what a
// service does never depends on its sampling. A model that the binding does not
// have, and an empty fingerprint, pass.
func (inf *Inference) CheckTokenizer(binding TokenizerBinding, model, fingerprint string) error {
	if fingerprint == "" {
		return nil
	}
	want, known := binding[model]
	fits := !known || want == fingerprint
	if inf != nil && inf.t != nil && inf.span.IsRecording() {
		inf.recordTokenizer(model, want, fingerprint, fits)
	}
	if fits {
		return nil
	}
	return &TokenizerError{Model: model, Want: want, Got: fingerprint}
}

func (inf *Inference) recordTokenizer(model, want, got string, fits bool) {
	fact := semconv.GenAITokenizerHash(bound.String(got, maxReason))
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended {
		return
	}
	span, facts := inf.span, &inf.facts
	for _, p := range inf.open {
		if p.kind == &tokenizePhase {
			span, facts = p.span, &p.facts
		}
	}
	*facts = noted(*facts, fact)
	if fits {
		return
	}
	span.AddEvent(semconv.EventTokenizerMismatch, trace.WithAttributes(inf.t.words.Rewrite([]attribute.KeyValue{
		fact,
		semconv.GenAITokenizerExpectedHash(bound.String(want, maxReason)),
		genaiconv.RequestModel(bound.String(model, maxName)),
	})...))
}

// maxTokenizerFile bounds a file of a tokenizer: the largest vocabularies in use
// take 35 MB.
const maxTokenizerFile = 256 << 20

// TokenizerFingerprint computes the fingerprint of a tokenizer from its files, for
// example tokenizer.json of a folder that os.DirFS opens. The same files give the
// same fingerprint whatever their order. It takes them into memory one by one, so
// compute it once, when the tokenizer is loaded.
//
// It is the first 16 hexadecimal digits of a SHA-256 over each file's name and
// then its content, each as a netstring (its length in decimal, a colon, the bytes,
// a comma), in the byte order of the names. Of a file whose name ends in .json the
// content is the JSON value without insignificant white space, with the keys of
// objects in byte order and escapes only where JSON needs them; numbers stay as
// they are spelled. Every other file counts byte by byte.
//
// It fails where there is no name or the same one twice, where a file cannot be
// read or has more than 256 MiB, and where one that should be JSON is not.
func TokenizerFingerprint(files fs.FS, names ...string) (string, error) {
	if len(names) == 0 {
		return "", errors.New("genaitrace: tokenizer fingerprint: name at least one file, such as tokenizer.json")
	}
	names = slices.Sorted(slices.Values(names))
	hash := sha256.New()
	for i, name := range names {
		if i > 0 && name == names[i-1] {
			return "", fmt.Errorf("genaitrace: tokenizer fingerprint: %s is named twice", name)
		}
		content, err := tokenizerFile(files, name)
		if err != nil {
			return "", fmt.Errorf("genaitrace: tokenizer fingerprint: %w", err)
		}
		fmt.Fprintf(hash, "%d:%s,%d:", len(name), name, len(content))
		hash.Write(content)
		hash.Write([]byte{','})
	}
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}

// tokenizerFile reads the canonical content of a file.
func tokenizerFile(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxTokenizerFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(content) > maxTokenizerFile:
		return nil, fmt.Errorf("%s has more than %d MiB", name, maxTokenizerFile>>20)
	case path.Ext(name) != ".json":
		return content, nil
	}
	if content, err = canonicalJSON(content); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", name, err)
	}
	return content, nil
}

func canonicalJSON(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}
	var canonical bytes.Buffer
	encoder := json.NewEncoder(&canonical)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(canonical.Bytes(), []byte{'\n'}), nil
}
