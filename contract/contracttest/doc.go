// Package contracttest holds what code records against an observability contract,
// in an ordinary test:
//
//	func TestChat(t *testing.T) {
//		obs := contracttest.New(t, contracttest.File("observability.yaml"))
//		srv := newServer(obs.TracerProvider(), obs.MeterProvider())
//		post(t, srv, "/v1/chat/completions")
//		obs.Require(t, "chat")
//	}
//
// [Observer.Require] fails the test where the contract is broken or no such request
// was seen; without it everything is checked at the end of the test. Spans that were
// started and not ended fail there too. A failure names the rule, the span, what was
// expected and found, the line that started the span and how to mend it, and prints
// the tree of spans and the entry that accepts the violation.
//
// What no contract says is asserted by hand, with the roles of the contract or the
// names of spans:
//
//	infer := obs.Span(t, "infer")
//	infer.Attr("llm.ttft_ms").Between(1, 500)
//	infer.Child("decode").Events("first_token", "early_stop").InOrder()
//	obs.NoSpan(t, "retrieve")
//	obs.Golden(t, "testdata/chat.trace.txt") // go test -update writes it, see Main
//
// [Synctest] runs the test under a fake clock, where times have no tolerance.
//
// The package needs the standard testing package alone, sets no global, registers no
// flag unless [Main] is called, starts no goroutine and waits for nothing.
package contracttest
