//go:build unix

package table

import (
	"slices"
	"time"
)

// inOrder returns stints in the order in which they began.
func inOrder(stints []stint) []stint {
	return slices.SortedFunc(slices.Values(stints), func(a, b stint) int { return int(a.first - b.first) })
}

// overlaps returns for how long, each time, two terms were valid at once.
func overlaps(stints []stint) (all []time.Duration) {
	sorted := inOrder(stints)
	for i, a := range sorted {
		for _, b := range sorted[i+1:] {
			if both := min(a.last, b.last).sub(b.first); both > 0 {
				all = append(all, both)
			}
		}
	}
	return all
}

// notGrown returns how many terms had a token that was not higher than each one before.
func notGrown(stints []stint) (n int) {
	highest := uint64(0)
	for _, s := range inOrder(stints) {
		if s.token <= highest {
			n++
		}
		highest = max(highest, s.token)
	}
	return n
}

// without returns the longest time between two moments that no term was valid.
func without(stints []stint, from, to moment) (longest time.Duration) {
	led := from // up to here
	for _, s := range inOrder(stints) {
		if s.last <= led || s.first >= to {
			continue
		}
		longest = max(longest, s.first.sub(led))
		led = s.last
	}
	return max(longest, to.sub(led))
}
