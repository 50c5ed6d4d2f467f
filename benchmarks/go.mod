module github.com/genaitrace/otelgenai/benchmarks

go 1.26.0

replace github.com/genaitrace/otelgenai => ../
