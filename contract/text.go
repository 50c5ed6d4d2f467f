package contract

import "io"

// WriteText writes the report for people: a paragraph a finding and a summary.
func (r *Report) WriteText(w io.Writer) error { panic("TODO") }
