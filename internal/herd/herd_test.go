package herd_test

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/herd"
)

func TestSmallGroupsDoNotWaitAndDrawNothing(t *testing.T) {
	for _, replicas := range []int{-1, 0, 1, 3, herd.Small} {
		d := herd.Delay(replicas, func() uint64 { t.Errorf("%d replicas: something is drawn", replicas); return 1 << 40 })
		if d != 0 {
			t.Errorf("%d replicas wait %v", replicas, d)
		}
	}
}

func TestAFewOfALargeGroupAskAtOnceAndTheOthersOneAfterAnother(t *testing.T) {
	for _, replicas := range []int{herd.Small + 1, 100, 1000, 100_000} {
		at := map[time.Duration]int{}
		for draw := range uint64(replicas) {
			at[herd.Delay(replicas, func() uint64 { return draw })]++
		}
		if at[0] != herd.Small {
			t.Errorf("%d of %d ask at once", at[0], replicas)
		}
		for d, n := range at {
			if d > 0 && (n != 1 || d%(4*time.Millisecond) != 0 || d > time.Duration(replicas)*4*time.Millisecond) {
				t.Errorf("%d of %d ask after %v", n, replicas, d)
			}
		}
	}
}
