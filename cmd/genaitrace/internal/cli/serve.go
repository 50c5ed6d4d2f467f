package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
)

// server is one run of serve.
type server struct {
	*app
	verdict

	grpc, http   string
	remote       bool
	grace, quiet time.Duration
	record       string
}

func (a *app) serve() *cobra.Command {
	s := &server{app: a}
	cmd := &cobra.Command{
		Use:   "serve --contract FILE [flags] -- COMMAND ARGS…",
		Short: "Receive what a command records, and check it",
		Long: "serve receives OTLP over gRPC and HTTP, runs a command with OTEL_EXPORTER_OTLP_ENDPOINT\nset for it, waits until it has exited and nothing more arrives, and checks what came.\n" +
			"Without a command it receives until it is interrupted.\n\n" +
			"A signal is passed on to the command and to what it started. What has not exited after\n--grace is killed; so is everything at a second signal.\n\n" + exitCodes,
		Example: "  genaitrace serve --contract observability.yaml -- go test ./...\n" +
			"  genaitrace serve --contract observability.yaml --record capture.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); len(args) > 0 && at != 0 {
				return fail(exitUsage, "%q is no flag; a command goes behind --, as in: genaitrace serve --contract FILE -- %s", args[0], strings.Join(args, " "))
			}
			return s.run(cmd.Context(), args)
		},
	}
	s.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.grpc, "grpc", "", "`ADDRESS` to receive OTLP/gRPC on (default: a free port of the loopback interface;\nwithout a command 127.0.0.1:4317)")
	f.StringVar(&s.http, "http", "", "`ADDRESS` to receive OTLP/HTTP on (default: a free port of the loopback interface;\nwithout a command 127.0.0.1:4318)")
	f.BoolVar(&s.remote, "remote", false, "let --grpc and --http be addresses that other machines reach: what comes is neither\nencrypted nor authenticated")
	f.DurationVar(&s.grace, "grace", 5*time.Second, "`DURATION` to wait at most for quiet, and for the command after a signal")
	f.DurationVar(&s.quiet, "quiet", 300*time.Millisecond, "`DURATION` without anything arriving after which all has come")
	f.StringVar(&s.record, "record", "", "also write what arrived to `FILE`, as JSON, with .jsonl as lines of JSON, with .pb as\nprotobuf, with .gz behind it compressed; what may grow beyond 64 MiB is read again\nas lines or protobuf only")
	return cmd
}

func (s *server) run(ctx context.Context, args []string) error {
	if s.quiet < 0 || s.grace < 0 {
		return fail(exitUsage, "--quiet is %s and --grace %s, want neither below 0", s.quiet, s.grace)
	}
	c, err := load(s.contract)
	if err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	defer s.close()
	if slices.ContainsFunc(s.outputs, func(o output) bool { return o.path != "" && filepath.Clean(o.path) == filepath.Clean(s.record) }) {
		return fail(exitUsage, "--record and --format both write %s", s.record)
	}
	if err := s.save(new(capture.Capture)); err != nil { // before a long run
		return err
	}
	got, failed, err := s.receive(ctx, args)
	if err != nil {
		return err
	}
	report := c.Check(got)
	s.noteOpen(got)
	return errors.Join(failed, s.save(got), s.write(s.app, report),
		s.judge(report, "nothing arrived; does the command export over OTLP, and shut its providers down before it exits?"))
}

func (s *server) save(got *capture.Capture) error {
	if s.record == "" {
		return nil
	}
	if err := otlp.WriteFile(s.record, got); err != nil {
		return fail(exitUsage, "--record: %w", err)
	}
	return nil
}

// receive runs the command, or waits for a signal, and returns what arrived and
// how the command failed.
func (s *server) receive(ctx context.Context, args []string) (got *capture.Capture, failed, err error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, interrupts()...)
	defer signal.Stop(signals)

	receiver, err := otlp.Listen(s.config(len(args) == 0))
	if err != nil {
		return nil, nil, fail(exitFailed, "the receiver cannot start: %w; --grpc and --http say where it listens, --remote that others may reach it", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
		defer cancel()
		_ = receiver.Close(closing) // who still sends after all that is cut off
		got = receiver.Capture()
		s.noteDropped("", receiver.Dropped())
	}()
	if len(args) == 0 {
		s.notef("receiving OTLP on %s (gRPC) and %s (HTTP and gRPC) until an interrupt: OTEL_EXPORTER_OTLP_ENDPOINT=http://%[2]s", receiver.GRPCAddr(), receiver.HTTPAddr())
		select {
		case <-signals:
		case <-ctx.Done():
		}
	} else {
		c, err := s.start(args, receiver.Env())
		if err != nil {
			return nil, nil, err
		}
		defer c.kill() // what it left running
		failed = c.wait(ctx, signals, s.grace)
	}
	settle(receiver.Last, s.quiet, s.grace, signals)
	return nil, failed, nil
}

// config says where to listen: where programs send by default if they are started
// elsewhere, else where nobody else listens.
func (s *server) config(alone bool) otlp.Config {
	config := otlp.Config{GRPCAddr: s.grpc, HTTPAddr: s.http, Remote: s.remote}
	if alone {
		config.GRPCAddr = cmp.Or(s.grpc, "127.0.0.1:4317")
		config.HTTPAddr = cmp.Or(s.http, "127.0.0.1:4318")
	}
	return config
}

// settle returns once nothing has arrived for quiet. It gives up after grace, and
// at a signal.
func settle(last func() time.Time, quiet, grace time.Duration, signals <-chan os.Signal) {
	began := time.Now()
	limit := time.After(grace)
	for {
		since := began
		if t := last(); t.After(since) {
			since = t
		}
		rest := quiet - time.Since(since)
		if rest <= 0 {
			return
		}
		select {
		case <-time.After(rest):
		case <-limit:
			return
		case <-signals:
			return
		}
	}
}

// noteOpen tells of spans that did not arrive although their children did: they
// have not ended, or were lost.
func (s *server) noteOpen(got *capture.Capture) {
	type id struct {
		trace trace.TraceID
		span  trace.SpanID
	}
	here := make(map[id]bool, len(got.Spans))
	for _, span := range got.Spans {
		here[id{span.TraceID, span.SpanID}] = true
	}
	missing := make(map[id]bool)
	var names []string
	for _, span := range got.Spans {
		parent := id{span.TraceID, span.ParentID}
		if !span.ParentID.IsValid() || elsewhere(span) || here[parent] || missing[parent] {
			continue
		}
		missing[parent] = true
		if len(names) < 3 {
			names = append(names, fmt.Sprintf("%q", span.Name))
		}
	}
	switch n := len(missing); {
	case n == 1:
		s.notef("1 span did not arrive although a child of it did (%s): it had not ended, or was lost", names[0])
	case n > 1:
		s.notef("%d spans did not arrive although children of theirs did (%s …): they had not ended, or were lost", n, strings.Join(names, ", "))
	}
}

// elsewhere reports whether the parent of a span can be in another process. Where the
// source does not say, the kind does.
func elsewhere(s *capture.Span) bool {
	return s.ParentOrigin == capture.OriginRemote ||
		s.ParentOrigin == capture.OriginUnknown && (s.Kind == trace.SpanKindServer || s.Kind == trace.SpanKindConsumer)
}
