// Command table writes RESULTS.md: how true and how costly each column of the
// benchmarks is, as ratios over what one would write by hand. Run it in the directory
// of the module, on a machine that does little else:
//
//	go run ./table
//
// It takes some five minutes on a quiet machine. Each round runs every column once, in one binary, so that
// what else the machine does meets them alike; a ratio is taken within its round, and
// the page has the median of the rounds.
package main
