package schedule

import "math/bits"

// set is a set of the numbers 0 to 63, one bit each.
type set uint64

// between returns the set of lo to hi.
func between(lo, hi int) set { return 2<<hi - 1<<lo }

func (s set) has(n int) bool { return s>>n&1 == 1 }

func (s set) size() int { return bits.OnesCount64(uint64(s)) }

// from returns the smallest member that is at least n, or 64.
func (s set) from(n int) int { return bits.TrailingZeros64(uint64(s >> n << n)) }

// upTo returns the largest member that is at most n, or -1.
func (s set) upTo(n int) int { return bits.Len64(uint64(s&(1<<(n+1)-1))) - 1 }

// all yields the members in order.
func (s set) all(yield func(int) bool) {
	for ; s != 0; s &= s - 1 {
		if !yield(bits.TrailingZeros64(uint64(s))) {
			return
		}
	}
}

// run is a row of members that follow one another; in a cycle, hi may be less than lo.
type run struct{ lo, hi, size int }

// runs returns the members as rows.
func (s set) runs() []run {
	var rows []run
	for n := s.from(0); n < 64; {
		end := (^s).from(n)
		rows = append(rows, run{n, end - 1, end - n})
		n = s.from(end)
	}
	return rows
}

// cycle returns the members as rows in the cycle of lo to hi, where a row may go on from hi at lo.
func (s set) cycle(lo, hi int) []run {
	rows := s.runs()
	if n := len(rows); n > 1 && rows[0].lo == lo && rows[n-1].hi == hi {
		rows[n-1].hi = rows[0].hi
		rows[n-1].size += rows[0].size
		rows = rows[1:]
	}
	return rows
}

// step returns the distance between neighbours where it is the same for all, and 0 otherwise or below two members.
func (s set) step() int {
	step, last := 0, -1
	for n := range s.all {
		if last >= 0 {
			if step != 0 && n-last != step {
				return 0
			}
			step = n - last
		}
		last = n
	}
	return step
}
