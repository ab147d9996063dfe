package cli

import (
	"fmt"
	"strings"
	"time"
)

// humane says a duration in one or two units, as exact as a person wants it: "12 s", "1 m 12 s", "43 m", "3 h 12 m",
// "5 d 2 h". It rounds to the nearest.
func humane(d time.Duration) string {
	if d = max(d, 0).Round(time.Second); d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	} else if d < 10*time.Minute {
		return units(d, time.Minute, "m", time.Second, "s")
	}
	if d = d.Round(time.Minute); d < time.Hour {
		return fmt.Sprintf("%d m", d/time.Minute)
	} else if d < 24*time.Hour {
		return units(d, time.Hour, "h", time.Minute, "m")
	}
	return units(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

// units says a duration in two units, the second only where there is something of it.
func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/big, bigName)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return text
}

// fine says a duration that was measured: under a minute with a digit after the point, under a tenth of a second in
// milliseconds.
func fine(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d > 0 && d < time.Millisecond:
		return "<1 ms"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d.Round(100*time.Millisecond) < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Round(100*time.Millisecond).Seconds()), ".0") + " s"
	}
	return humane(d)
}
