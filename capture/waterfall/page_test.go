package waterfall_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture/waterfall"
)

func page(t *testing.T, spans []waterfall.Span, opts waterfall.PageOptions) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, waterfall.RenderPage(&out, spans, opts))
	return out.String()
}

// streamed is request with the times of its tokens.
func streamed() []waterfall.Span {
	spans := request()
	gaps := make([]time.Duration, 42)
	for i := range gaps {
		gaps[i] = 10 * time.Millisecond
	}
	gaps[20] = 120 * time.Millisecond
	spans[7].Role = "decode"
	spans[6].Role = "prefill"
	spans[7].Timeline = &waterfall.Timeline{Unit: "tokens", First: at(181.5), Gaps: gaps, Stride: 1}
	return spans
}

func TestAPageShowsWhatTheSpansSay(t *testing.T) {
	got := page(t, streamed(), waterfall.PageOptions{Title: "chat"})
	golden := filepath.Join("testdata", "page.html")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestAPageNeedsNothingElse(t *testing.T) {
	got := page(t, streamed(), waterfall.PageOptions{})
	for _, reach := range []string{"<script", "<link", "<img", "src=", "href=", "url(", "@import"} {
		assert.NotContains(t, got, reach)
	}
	assert.Contains(t, got, `content="default-src 'none'; style-src 'unsafe-inline'"`)
}

// What a span holds can come from anybody.
func TestAPageIsNotWrittenByItsSpans(t *testing.T) {
	const evil = `"><script>alert(1)</script><style>*{display:none}</style>&'` + "\x00\xff"
	s := span(evil, "", evil, 0, 10)
	s.TraceID, s.Kind, s.Role, s.Error = evil, evil, evil, evil
	s.Events = []waterfall.Event{{Name: evil, Time: at(1)}}
	s.Attributes = map[string]any{evil: evil, "llm.ttft_ms": 1.0, "genai.ttft.queue_ms": 1.0, "list": []string{evil}}
	s.Timeline = &waterfall.Timeline{Unit: evil, First: at(1), Gaps: []time.Duration{time.Millisecond}}
	got := page(t, []waterfall.Span{s}, waterfall.PageOptions{Title: evil})
	assert.NotContains(t, got, "<script")
	assert.Equal(t, 1, strings.Count(got, "<style>"))
	assert.NotContains(t, got, "ZgotmplZ")
	assert.NotContains(t, got, "\x00")
}

func TestAPageOfDamagedSpans(t *testing.T) {
	backwards := span("b", "a", "backwards", 20, 10)
	open := span("o", "a", "open", 5, 0)
	open.End = time.Time{}
	nowhere := waterfall.Span{TraceID: "t", SpanID: "n", ParentID: "a", Name: "nowhere"}
	odd := span("x", "a", "odd", 1, 2)
	odd.Attributes = map[string]any{"llm.ttft_ms": math.NaN(), "genai.ttft.queue_ms": math.Inf(1), "genai.ttft.emit_ms": -1.0, "nil": nil}
	odd.Timeline = &waterfall.Timeline{Unit: "tokens", First: at(1), Gaps: []time.Duration{-time.Second, 0, math.MaxInt64, math.MaxInt64}}
	cycle := []waterfall.Span{span("a", "b2", "first", 0, 30), span("b2", "a", "second", 0, 30)}
	got := page(t, append(cycle, backwards, open, nowhere, odd), waterfall.PageOptions{})
	for _, want := range []string{"not ended", "(parent below itself)", ">nowhere<", ">?<"} {
		assert.Contains(t, got, want)
	}
	drawn := strings.Join(regexp.MustCompile(`style="[^"]*"|<path[^>]*>`).FindAllString(got, -1), "\n")
	for _, wrong := range []string{"NaN", "Inf", " -", "M-"} {
		assert.NotContains(t, drawn, wrong)
	}
	assert.Contains(t, page(t, nil, waterfall.PageOptions{}), "no spans")
}

func TestAPageIsBounded(t *testing.T) {
	got := page(t, siblings(2000), waterfall.PageOptions{MaxSiblings: 10})
	assert.Contains(t, got, "… 1990 more<")

	var many []waterfall.Span
	for i := range 60 {
		s := span("1", "", "request", float64(i), float64(i+1))
		s.TraceID = strings.Repeat("a", i+1)
		many = append(many, s)
	}
	assert.Contains(t, page(t, many, waterfall.PageOptions{}), "10 more traces are not shown")

	long := span("1", "", "long", 0, 1)
	long.Attributes = map[string]any{"text": strings.Repeat("é", 10_000)}
	for range 1000 {
		long.Events = append(long.Events, waterfall.Event{Name: "token", Time: at(1)})
	}
	got = page(t, []waterfall.Span{long}, waterfall.PageOptions{})
	assert.Contains(t, got, strings.Repeat("é", 4000)+"…<")
	assert.Contains(t, got, "800 more events")
}

func TestAPageReportsTheErrorOfItsWriter(t *testing.T) {
	broken := errors.New("disk full")
	assert.ErrorIs(t, waterfall.RenderPage(brokenWriter{broken}, request(), waterfall.PageOptions{}), broken)
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// TestThePageInABrowser looks at the page as Chromium draws it, light and dark. It
// needs one: CHROMIUM names its binary.
func TestThePageInABrowser(t *testing.T) {
	binary := os.Getenv("CHROMIUM")
	if binary == "" {
		t.Skip("CHROMIUM names no Chromium to draw the page with")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(file, []byte(page(t, streamed(), waterfall.PageOptions{})), 0o600))
	for _, scheme := range []struct {
		name, setting         string
		paper, prefill, green color.RGBA
	}{
		{"light", "1", color.RGBA{0xfb, 0xfb, 0xfa, 0xff}, color.RGBA{0x2f, 0x6f, 0xd6, 0xff}, color.RGBA{0x23, 0x85, 0x5c, 0xff}},
		{"dark", "0", color.RGBA{0x15, 0x18, 0x1b, 0xff}, color.RGBA{0x6e, 0xa2, 0xf7, 0xff}, color.RGBA{0x4c, 0xc2, 0x8f, 0xff}},
	} {
		t.Run(scheme.name, func(t *testing.T) {
			shot := filepath.Join(dir, scheme.name+".png")
			out, err := exec.CommandContext(t.Context(), binary, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
				"--window-size=1200,1000", "--blink-settings=preferredColorScheme="+scheme.setting, "--screenshot="+shot, "file://"+file).CombinedOutput()
			require.NoError(t, err, string(out))
			img := screenshot(t, shot)
			assert.Equal(t, scheme.paper, color.RGBAModel.Convert(img.At(2, 2)), "the paper")

			prefill, decode := extent(img, scheme.prefill), extent(img, scheme.green)
			require.False(t, prefill.Empty(), "the bar of prefill")
			require.False(t, decode.Empty(), "the bar of decode")
			assert.Less(t, prefill.Min.Y, 400, "both in the waterfall")
		})
	}
}

func screenshot(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(t, err)
	return img
}

// extent is the smallest rectangle that holds every pixel of that color.
func extent(img image.Image, c color.RGBA) image.Rectangle {
	var all image.Rectangle
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			if color.RGBAModel.Convert(img.At(x, y)) == c {
				all = all.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return all
}

// A trace may have any number of spans; a reader sees the roots, what failed and what
// took long, and how much there is besides.
func TestAHugeTraceStaysReadable(t *testing.T) {
	const n = 100_000
	spans := []waterfall.Span{span("root", "", "the root", 0, n)}
	for i := range n { // of ten below each other
		parent := "root"
		if i%10 > 0 {
			parent = strconv.Itoa(i - 1)
		}
		spans = append(spans, span(strconv.Itoa(i), parent, "quick", float64(i), float64(i)+1))
	}
	spans[77_776].Error, spans[77_776].Name = "broke", "the failed one"
	spans[55_555].End, spans[55_555].Name = at(n), "the slow one"
	trace := func(shape string) []waterfall.Span {
		for i := range spans[1:] {
			switch shape {
			case "wide":
				spans[i+1].ParentID = "root"
			case "deep":
				spans[i+1].ParentID = spans[i].SpanID
			}
		}
		return spans
	}
	for _, shape := range []string{"bushes", "wide"} {
		var text strings.Builder
		require.NoError(t, waterfall.Render(&text, trace(shape), waterfall.Options{}))
		html := page(t, spans, waterfall.PageOptions{})
		for _, got := range []string{text.String(), html} {
			for _, want := range []string{"the root", "the failed one", "the slow one", " more"} {
				assert.Contains(t, got, want, shape)
			}
		}
		assert.LessOrEqual(t, strings.Count(text.String(), "\n"), 1100, shape)
		assert.Less(t, len(html), 4<<20, shape)
	}
	html := page(t, trace("deep"), waterfall.PageOptions{})
	assert.Contains(t, html, "98001 of 100001 spans are left out: no more than 2000 are shown")
	assert.Less(t, len(html), 4<<20)
	html = page(t, trace("wide"), waterfall.PageOptions{MaxSiblings: n})
	assert.Contains(t, html, "98001 more")
	assert.Contains(t, html, "the failed one")
}

func TestAPageOfManyTracesStaysReadable(t *testing.T) {
	var spans []waterfall.Span
	for i := range 50 {
		for j := range 3000 {
			s := span(strconv.Itoa(j), strconv.Itoa(max(j-1, 0)), "span", 0, 1)
			s.TraceID = strconv.Itoa(i)
			spans = append(spans, s)
		}
	}
	html := page(t, spans, waterfall.PageOptions{})
	assert.Contains(t, html, "2950 of 3000 spans are left out: no more than 50 are shown")
	assert.Less(t, len(html), 20<<20)
}

func TestAnEventOffTheTraceHasNoFalseTime(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	span := waterfall.Span{TraceID: "t", SpanID: "1", Name: "a", Start: start, End: start.Add(time.Second), Events: []waterfall.Event{
		{Name: "early", Time: start.Add(-30 * time.Millisecond)}, {Name: "untimed"},
	}}
	html := page(t, []waterfall.Span{span}, waterfall.PageOptions{})
	assert.Contains(t, html, "<code>early</code></th><td>-30.0 ms</td>")
	assert.Contains(t, html, "<code>untimed</code></th><td></td>")

	span.Start, span.End = time.Time{}, time.Time{}
	span.Timeline = &waterfall.Timeline{Unit: "tokens", First: start, Gaps: []time.Duration{time.Millisecond}}
	html = page(t, []waterfall.Span{span}, waterfall.PageOptions{})
	assert.Contains(t, html, "<code>early</code></th><td></td>", "the trace has no start")
	assert.Contains(t, html, `<p class="soft">1 gaps: median 1.0 ms`)
}
