package contracttest

import (
	"flag"
	"os"
	"testing"
)

// Main is for TestMain. It adds the flag -update, which rewrites golden files, unless
// there is one already, runs the tests and exits.
//
//	func TestMain(m *testing.M) { contracttest.Main(m) }
func Main(m *testing.M) {
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "rewrite the golden files")
	}
	os.Exit(m.Run())
}
