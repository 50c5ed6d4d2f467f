// Command costdoc writes docs/cost.md: it runs the benchmarks of the recording rooms,
// takes the median of several rounds and compares each figure with what stands
// beside it in the same run.
//
//	go run ./genaitrace/internal/costdoc            # from the root of the module, on a quiet machine
//	go run ./genaitrace/internal/costdoc -rounds 1 -benchtime 10x -o -
//
// A round runs every benchmark once, so that what disturbs the machine for a while
// disturbs all of them alike. What a row says is in rows.go.
package main
