//go:build unix

package table

import (
	"time"

	"golang.org/x/sys/unix"
)

// moment is a time by CLOCK_MONOTONIC, which all processes of a machine share, in nanoseconds.
type moment int64

func now() moment {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Unix has it
	}
	return moment(ts.Nano())
}

func (m moment) sub(earlier moment) time.Duration { return time.Duration(m - earlier) }

func (m moment) add(d time.Duration) moment { return m + moment(d) }
