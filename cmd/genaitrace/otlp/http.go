package otlp

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	contentProtobuf = "application/x-protobuf"
	contentJSON     = "application/json"
)

// httpServer serves OTLP/HTTP, and gRPC beside it.
func (r *Receiver) httpServer() *http.Server {
	mux := http.NewServeMux()
	for s := range signal(signals) {
		mux.HandleFunc("/v1/"+s.String(), func(w http.ResponseWriter, req *http.Request) { r.serveExport(w, req, s) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "OTLP is at /v1/traces, /v1/metrics and /v1/logs", http.StatusNotFound)
	})

	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.ProtoMajor == 2 && strings.HasPrefix(req.Header.Get("Content-Type"), "application/grpc") {
				r.grpc.ServeHTTP(w, req)
				return
			}
			mux.ServeHTTP(w, req)
		}),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxReceiving},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          quiet,
	}
}

func (r *Receiver) serveExport(w http.ResponseWriter, req *http.Request, s signal) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "OTLP is sent with POST", http.StatusMethodNotAllowed)
		return
	}
	in, ok := encodingOf(req.Header.Get("Content-Type"))
	if !ok {
		http.Error(w, "the Content-Type has to be "+contentProtobuf+" or "+contentJSON, http.StatusUnsupportedMediaType)
		return
	}
	if err := r.begin(req.Context()); err != nil {
		return // the sender is gone
	}
	defer r.end()
	body, code, err := r.readBody(w, req)
	if err != nil {
		writeStatus(w, in, code, status.New(codes.InvalidArgument, err.Error()))
		return
	}
	answer, err := r.receive(req.Context(), s, in, body)
	if err != nil {
		writeStatus(w, in, httpCode(err), status.Convert(err))
		return
	}
	w.Header().Set("Content-Type", in.contentType())
	_, _ = w.Write(answer) //nolint:gosec // no page; and the sender may be gone
}

func encodingOf(contentType string) (in encoding, ok bool) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return protobuf, false
	}
	return media == contentJSON, media == contentJSON || media == contentProtobuf
}

func (in encoding) contentType() string {
	if in == inJSON {
		return contentJSON
	}
	return contentProtobuf
}

// readBody reads and decompresses the body. With an error it returns the HTTP status.
func (r *Receiver) readBody(w http.ResponseWriter, req *http.Request) (body []byte, code int, err error) {
	limit := int64(r.config.MaxBody)
	var from io.Reader = http.MaxBytesReader(w, req.Body, limit)
	switch strings.ToLower(req.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		if from, err = gzip.NewReader(from); err != nil {
			return nil, http.StatusBadRequest, fmt.Errorf("the body is no gzip: %w", err)
		}
	default:
		w.Header().Set("Accept-Encoding", "gzip, identity")
		return nil, http.StatusUnsupportedMediaType, errors.New("the Content-Encoding has to be gzip or identity")
	}
	body, err = io.ReadAll(io.LimitReader(from, limit+1))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge), int64(len(body)) > limit:
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the export is larger than %s", bytesOf(r.config.MaxBody))
	case err != nil:
		return nil, http.StatusBadRequest, fmt.Errorf("the body cannot be read: %w", err)
	}
	return body, 0, nil
}

func httpCode(err error) int {
	switch status.Code(err) {
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// writeStatus answers with an error as OTLP wants it: a google.rpc.Status in the
// encoding of the request.
func writeStatus(w http.ResponseWriter, in encoding, code int, s *status.Status) {
	w.Header().Set("Content-Type", in.contentType())
	w.WriteHeader(code)
	var body []byte
	var err error
	if in == inJSON {
		body, err = json.Marshal(struct {
			Code    codes.Code `json:"code"`
			Message string     `json:"message"`
		}{s.Code(), s.Message()})
	} else {
		body, err = proto.Marshal(s.Proto())
	}
	if err == nil { // a number and a text can always be written
		_, _ = w.Write(body) //nolint:gosec // no page; and the sender may be gone
	}
}
