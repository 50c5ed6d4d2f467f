package bound_test

import (
	"fmt"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/internal/bound"
)

func TestStringCutsBetweenRunesAndIsValid(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"chat", "chat"},
		{"12345678", "12345678"},
		{"123456789", "12345678"},
		{"1234567é", "1234567"},
		{"12345é89", "12345é8"},
		{"a\xffb", "a\uFFFDb"},
		{"\xff1\xff2\xff3\xff4", "\uFFFD1\uFFFD2"},
	} {
		got := bound.String(c.in, 8)
		assert.True(t, utf8.ValidString(got), "%q", got)
		assert.LessOrEqual(t, len(got), 8)
		assert.Equal(t, c.want, got)
	}
}

func FuzzString(f *testing.F) {
	f.Add("abc", 2)
	f.Add("\xff\xfe\xfd", 4)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = min(max(limit, 0), 1000)
		got := bound.String(s, limit)
		assert.True(t, utf8.ValidString(got))
		assert.LessOrEqual(t, len(got), limit)
		if utf8.ValidString(s) && len(s) <= limit {
			assert.Equal(t, s, got)
		}
	})
}

func TestSetAdmitsTheFirstValuesOnly(t *testing.T) {
	s := bound.Set{Limit: 100}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				s.Admits(fmt.Sprint(i))
			}
		})
	}
	wg.Wait()
	admitted := 0
	for i := range 1000 {
		if s.Admits(fmt.Sprint(i)) {
			admitted++
		}
	}
	assert.Equal(t, 100, admitted)
	assert.Equal(t, bound.Other, s.Value("one more"))
	empty := &bound.Set{Limit: 1}
	assert.False(t, empty.Has("a"))
	assert.True(t, empty.Admits("a"), "asking took no room")
	assert.True(t, empty.Has("a"))
	assert.Empty(t, s.Value(""), "unknown stays unknown")
	assert.False(t, new(bound.Set).Admits("a"))
}
