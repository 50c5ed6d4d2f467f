package format

import (
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/contract"
)

// Count says how many findings r has: "2 errors, 1 warning".
func Count(r *contract.Report) string {
	var parts []string
	if n := r.Count(contract.Error); n > 0 {
		parts = append(parts, count(n, "error"))
	}
	if n := r.Count(contract.Warn); n > 0 {
		parts = append(parts, count(n, "warning"))
	}
	if len(parts) == 0 {
		return "no findings"
	}
	return strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
