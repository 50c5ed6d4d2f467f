// Package view makes what was captured ready for the eye: for the waterfall in the
// terminal and for the page of package waterfall.
//
//	got, err := rec.Capture(ctx)
//	…
//	err = waterfall.Render(os.Stdout, view.Spans(got.Spans), waterfall.Options{})
//
// Package waterfall takes spans of any source; this is the way from a
// capture.Capture, whether it comes from a Recorder, a file or the receiver. The
// command genaitrace view does the same for files.
package view
