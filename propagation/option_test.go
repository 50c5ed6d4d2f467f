package propagation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/propagation"
)

// Options that are chosen at run time may be nil.
func TestANilOptionIsNone(t *testing.T) {
	assert.NotPanics(t, func() {
		assert.Equal(t, propagation.New(), propagation.New(nil))
		assert.Equal(t, propagation.New(propagation.WithFormats(propagation.TraceBin)), propagation.New(nil, propagation.WithFormats(propagation.TraceBin), nil))
	})
}
