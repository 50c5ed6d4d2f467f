// Package format writes the report of a check for programs: [JSON] for scripts,
// [JUnit] for test dashboards, [GitHub] and [Summary] for GitHub Actions. The text
// for people is [contract.Report.WriteText].
//
// Text that came with the telemetry is data in each of them: it cannot end an
// element, start a workflow command or add a cell to a table.
package format
