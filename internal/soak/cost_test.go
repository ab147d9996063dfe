package soak_test

import (
	"testing"

	"github.com/go-singleton/singleton/internal/soak"
)

// BenchmarkCost measures the store of -on.
func BenchmarkCost(b *testing.B) {
	start := stores[*on]
	if start == nil {
		start = startRedis
	}
	soak.Cost(b, binary, start)
}
