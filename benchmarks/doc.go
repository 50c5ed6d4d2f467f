// Package benchmarks holds our instrumentation side by side with that of others and
// with what one would write by hand: what each costs, and whether what it says is true.
//
//	go test -run Truth -v .   # what each says of streams whose truth is known
//	go test -bench . .        # what each costs
//
// It is a module of its own, outside the workspace, because the libraries that it
// compares have large graphs of dependencies.
package benchmarks
