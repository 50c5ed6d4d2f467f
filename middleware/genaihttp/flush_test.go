package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// write writes events and leaves them in the server's buffer.
func write(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		_, _ = io.WriteString(w, e)
	}
}

// What is written waits in the server's buffer, so a token counts when it
// leaves: when the client can have it.
func TestATokenCountsWhenItLeaves(t *testing.T) {
	wait := func() { time.Sleep(10 * time.Millisecond) }
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	filling := strings.Repeat(textEvent, 5<<10/len(textEvent))
	for _, tt := range []struct {
		name    string
		handler func(w http.ResponseWriter)
		ttft    float64 // in ms
	}{
		{"at once", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			flush(w)
			wait()
			write(w, finishEvent, doneEvent)
		}, 10},
		{"with a later flush", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			wait()
			flush(w)
			wait()
			write(w, doneEvent)
		}, 20},
		{"with a Flusher's flush", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			wait()
			w.(http.Flusher).Flush()
			wait()
			write(w, doneEvent)
		}, 20},
		{"with the flush of what follows", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			wait()
			write(w, textEvent)
			flush(w)
			wait()
			write(w, doneEvent)
		}, 20},
		{"with the second flush, after a role", func(w http.ResponseWriter) {
			write(w, roleEvent)
			flush(w)
			wait()
			write(w, textEvent)
			wait()
			flush(w)
			wait()
			write(w, doneEvent)
		}, 20},
		{"at the end, without a flush", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			wait()
			write(w, finishEvent, doneEvent)
			wait()
		}, 30},
		{"when the buffer is full", func(w http.ResponseWriter) {
			wait()
			write(w, textEvent)
			wait()
			write(w, filling)
			wait()
			write(w, doneEvent)
		}, 20},
		{"when small writes fill the buffer", func(w http.ResponseWriter) {
			wait()
			for _, e := range strings.SplitAfter(filling, "\n\n") {
				write(w, e)
			}
			wait()
			write(w, doneEvent)
		}, 10},
		{"when a copy fills the buffer", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			wait()
			_, _ = io.Copy(w, strings.NewReader(filling))
			wait()
			write(w, doneEvent)
		}, 10},
		{"after a flush of nothing", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			flush(w)
			wait()
			write(w, textEvent, doneEvent)
			wait()
		}, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					tt.handler(w)
				}), o.options()...))
				defer stop()
				start := time.Now()
				resp, err := post(t.Context(), &http.Client{Transport: base})
				require.NoError(t, err)
				for got, p := "", make([]byte, 512); !strings.Contains(got, textEvent); {
					n, err := resp.Body.Read(p)
					got += string(p[:n])
					require.True(t, err == nil || err == io.EOF && n > 0, "%v", err)
				}
				assert.Equal(t, tt.ttft, time.Since(start).Seconds()*1000, "the client has it")
				_, _ = readAll(resp)
				resp.Body.Close()
				synctest.Wait()

				span := o.only()
				checkEnding(t, span, "done", "")
				assert.Equal(t, tt.ttft, attributes(span)[semconv.LLMTTFTMsKey])
				require.Len(t, span.Events(), 1)
				assert.Equal(t, tt.ttft, span.Events()[0].Time.Sub(span.StartTime()).Seconds()*1000)
				count, sum := o.histogram(semconv.GenAITimeToFirstTokenName)
				assert.EqualValues(t, 1, count)
				assert.InDelta(t, tt.ttft/1000, sum, 1e-12)
			})
		})
	}
}

// A token that never left is none.
func TestAClientThatLeavesBeforeTheFlushGetsNoToken(t *testing.T) {
	for name, after := range map[string]func(w http.ResponseWriter){
		"it flushes too late":  func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"it writes on":         func(w http.ResponseWriter) { write(w, textEvent, finishEvent) },
		"it fills the buffer":  func(w http.ResponseWriter) { write(w, strings.Repeat(textEvent, 100)) },
		"it returns":           func(http.ResponseWriter) {},
		"it aborts its stream": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					write(w, roleEvent, textEvent)
					<-r.Context().Done()
					after(w)
				}), o.options()...))
				defer stop()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := post(ctx, &http.Client{Transport: base})
				require.Error(t, err, "the header did not leave either")
				synctest.Wait()

				span := o.only()
				checkEnding(t, span, "client_cancelled", "")
				assert.NotContains(t, attributes(span), semconv.LLMTTFTMsKey)
				assert.Empty(t, span.Events())
				count, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
				assert.Zero(t, count)
			})
		})
	}
}

// A deadline around the handler that nobody enforces takes nothing from the
// client that gets all of its stream.
func TestADeadlineThatPassesWhileAllIsDeliveredIsNoTimeout(t *testing.T) {
	for name, body := range map[string]string{"a stream": "", "an answer": answer} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				inner := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if body != "" {
						time.Sleep(time.Second)
						_, _ = io.WriteString(w, body)
						return
					}
					for _, e := range []string{roleEvent, textEvent, finishEvent, usageEvent, doneEvent} {
						time.Sleep(100 * time.Millisecond)
						say(w, e)
					}
				}), o.options()...)
				base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					ctx, cancel := context.WithTimeout(r.Context(), 50*time.Millisecond)
					defer cancel()
					inner.ServeHTTP(w, r.WithContext(ctx))
				}))
				defer stop()
				resp, err := post(t.Context(), &http.Client{Transport: base})
				require.NoError(t, err)
				got, err := readAll(resp)
				require.NoError(t, err)
				resp.Body.Close()
				synctest.Wait()
				if body != "" {
					assert.Equal(t, body, got)
					checkEnding(t, o.only(), "", "")
					return
				}
				assert.Equal(t, roleEvent+textEvent+finishEvent+usageEvent+doneEvent, got)
				checkEnding(t, o.only(), "done", "")
				assert.Equal(t, 200.0, attributes(o.only())[semconv.LLMTTFTMsKey])
			})
		})
	}
}

// Clients close as soon as they have all that Content-Length promises, before
// the handler returns.
func TestAClientThatClosesAfterACompleteAnswerDidNotCancel(t *testing.T) {
	for _, tt := range []struct {
		name, length string
		terminal     semconv.GenAIStreamTerminalAttr
	}{
		{"complete", "2", ""},
		{"not complete", "3", "client_cancelled"},
		{"of unknown length", "", "client_cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if tt.length != "" {
						w.Header().Set("Content-Length", tt.length)
					}
					_, _ = io.WriteString(w, "{}")
					_ = http.NewResponseController(w).Flush()
					<-r.Context().Done()
				}), o.options()...))
				base.DisableKeepAlives = true
				defer stop()
				resp, err := post(t.Context(), &http.Client{Transport: base})
				require.NoError(t, err)
				_, err = io.ReadFull(resp.Body, make([]byte, 2))
				require.NoError(t, err)
				resp.Body.Close()
				synctest.Wait()
				checkEnding(t, o.only(), tt.terminal, "")
			})
		})
	}
}

// A hastyWriter has a client that leaves as soon as it has what it waited for.
type hastyWriter struct {
	*httptest.ResponseRecorder

	leave   context.CancelFunc
	onWrite bool
}

func (w hastyWriter) Write(p []byte) (int, error) {
	if w.onWrite {
		w.leave()
	}
	return w.ResponseRecorder.Write(p)
}

func (w hastyWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func (w hastyWriter) Flush() {
	w.ResponseRecorder.Flush()
	w.leave()
}

// What had left before the client did was delivered, though the server learns of
// both at once.
func TestATokenThatTheClientLeftWithCounts(t *testing.T) {
	for name, onWrite := range map[string]bool{"it had a flush": false, "it had a write that fills the buffer": true} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if onWrite {
					write(w, strings.Repeat(textEvent, 5<<10/len(textEvent)))
				} else {
					say(w, textEvent)
				}
			}), o.options()...)
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", nil)
			h.ServeHTTP(hastyWriter{httptest.NewRecorder(), cancel, onWrite}, req)
			checkEnding(t, o.only(), "client_cancelled", "")
			assert.Contains(t, attributes(o.only()), semconv.LLMTTFTMsKey)
			count, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
			assert.EqualValues(t, 1, count)
		})
	}
}
