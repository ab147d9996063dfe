// Package herd spreads the replicas of a large group, so that not all of them ask for a lease that has become free: one of
// them gets it, and the others only load the store.
package herd

import "time"

const (
	// Small is how many replicas may all ask at once; of a larger group about so many do.
	Small = 16
	// apart is how far apart the others ask, on average. Whoever asked first has been answered by then, most likely, so
	// that those who wait can be told.
	apart = 4 * time.Millisecond
)

// Delay returns how long a replica waits before it asks, given how many there are: nothing in a small group or where that
// is not known, else according to a place in the line that it draws. Nothing is drawn where nobody waits.
func Delay(replicas int, random func() uint64) time.Duration {
	if replicas <= Small {
		return 0
	}
	place := int(random() % uint64(replicas))
	return apart * time.Duration(max(0, place-Small+1))
}
