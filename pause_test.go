//go:build unix

package singleton_test

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// before checks that a context ended before what it stands for in Redis. pauses tells what this process cannot be blamed
// for: that it was kept from running then.
func before(t *testing.T, ended, end time.Time, pauses func(since time.Time) time.Duration) {
	t.Helper()
	if late, excuse := ended.Sub(end), pauses(end.Add(-lease/10)); late >= excuse {
		t.Errorf("the context ended %v too late; pauses of this process: %v", late, excuse)
	}
}

// watchPauses measures, from the call on, when this process is kept from running. The function tells how long the three
// longest pauses since an instant were, all together: a timer, what it wakes, and who sees that may each have to wait.
func watchPauses(t *testing.T) (pauses func(since time.Time) time.Duration) {
	const tick = 2 * time.Millisecond
	var mu sync.Mutex
	ticks := []time.Time{time.Now()}
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-done })
	go func() {
		defer close(done)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
			mu.Lock()
			ticks = append(ticks, time.Now())
			mu.Unlock()
		}
	}()
	return func(since time.Time) (total time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		var longest []time.Duration
		all := append(slices.Clone(ticks), time.Now()) // the present one may not be over
		for i, at := range all[1:] {
			if at.After(since) {
				longest = append(longest, at.Sub(all[i])-tick)
			}
		}
		slices.Sort(longest)
		for _, pause := range longest[max(0, len(longest)-3):] {
			total += pause
		}
		return total
	}
}
