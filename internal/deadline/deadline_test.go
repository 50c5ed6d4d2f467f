package deadline_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/internal/deadline"
)

func TestADeadlineIsReachedAShortTimeBeforeItPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.False(t, deadline.Reached(t.Context()), "none")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, deadline.Reached(ctx))
		time.Sleep(980 * time.Millisecond)
		assert.False(t, deadline.Reached(ctx))
		time.Sleep(10 * time.Millisecond)
		assert.True(t, deadline.Reached(ctx))
		time.Sleep(time.Second)
		assert.True(t, deadline.Reached(ctx))
	})
}
