package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestDocumentsAreCutAtHeadings(t *testing.T) {
	long := strings.Repeat("word ", 150) // 750 bytes
	row := "| a | " + strings.Repeat("cell ", 20) + "|\n"
	for name, tt := range map[string]struct {
		text string
		want []chunk
	}{
		"no heading":  {"Text.\n", []chunk{{"f.md#1", "f.md", "Text."}}},
		"headings":    {"# A\nOne.\n## B C\nTwo.\n", []chunk{{"f.md#1", "f.md § A", "One."}, {"f.md#2", "f.md § B C", "Two."}}},
		"code":        {"# A\n```sh\n# B\n```\n#C\n", []chunk{{"f.md#1", "f.md § A", "```sh\n# B\n```\n#C"}}},
		"empty":       {"# A\n\n \n## B\n", nil},
		"short parts": {"One.\n\nTwo.\n", []chunk{{"f.md#1", "f.md", "One.\n\nTwo."}}},
		"long parts":  {long + "\n\n" + long, []chunk{{"f.md#1", "f.md", long}, {"f.md#2", "f.md", long}}},
		"table": {strings.Repeat(row, 12), []chunk{
			{"f.md#1", "f.md", strings.TrimSuffix(strings.Repeat(row, 9), "\n")},
			{"f.md#2", "f.md", strings.TrimSuffix(strings.Repeat(row, 3), "\n")},
		}},
	} {
		if got := split("f.md", tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %q\nwant %q", name, got, tt.want)
		}
	}
}

// Whatever a file holds, its words are in the chunks, once and in order.
func FuzzSplit(f *testing.F) {
	for _, text := range testDocs {
		f.Add(text)
	}
	f.Add("#\n# \n####### x\n```\n# a\n")
	f.Add(strings.Repeat("long line ", 300) + "\n| a |\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		var got []string
		ids := make(map[string]bool)
		title := ""
		for _, c := range split("f.md", text) {
			if c.title != title {
				title = c.title
				got = append(got, strings.Fields(strings.TrimPrefix(strings.TrimPrefix(title, "f.md"), " § "))...)
			}
			if strings.TrimSpace(c.text) == "" || ids[c.id] {
				t.Fatalf("chunk %q is empty or not the only %s", c.text, c.id)
			}
			ids[c.id] = true
			got = append(got, strings.Fields(c.text)...)
		}
		want := strings.Fields(text)
		for _, word := range got { // all of them stand in the text, in this order
			i := slices.Index(want, word)
			if i < 0 {
				t.Fatalf("%q is not there in the text, or not in this order", word)
			}
			want = want[i+1:]
		}
	})
}

func TestFusionRanksWhatBothFoundFirst(t *testing.T) {
	got := fuse(map[string][]hit{
		"dense":   {{"a", 0.9}, {"b", 0.8}, {"c", 0.1}},
		"lexical": {{"c", 17}, {"b", 12}, {"d", 3}},
	})
	var ids []string
	for _, h := range got {
		ids = append(ids, h.id)
	}
	// c is third and first, b second twice: 1/63 + 1/61 > 2/62.
	if want := []string{"c", "b", "a", "d"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
	if fuse(nil) == nil || len(fuse(nil)) != 0 {
		t.Error("nothing fused is not empty")
	}
}

func TestAQuestionIsRewritten(t *testing.T) {
	p := newPipeline(silent(), nil)
	got := p.rewrite(t.Context(), "What is the TTFT of a request? TTFT!")
	want := query{
		words:    []string{"ttft", "time", "first", "token", "request"},
		expanded: "What is the TTFT of a request? TTFT! time to first token",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
