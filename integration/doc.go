// Package integration holds the library against software that it did not write: a real
// engine, real backends, over their real protocols.
//
// Its tests need parts that Go cannot download as modules; bash integration/parts gets
// or builds them into the folder .cache/integration of the repository, and INTEGRATION_PARTS
// names another one. A test whose part is missing is skipped, and says what to do.
//
//	bash integration/parts
//	cd integration && GOWORK=off go test ./...
//	cd integration && GOWORK=off go test -run MixedLoad -load 30m -timeout 40m .
package integration
