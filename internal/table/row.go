//go:build unix

package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
)

// row is what was seen of one fault on one kind of store.
type row struct {
	kind  Kind
	fault Fault
	times int

	terms     int
	overlaps  []time.Duration
	notGrown  int
	verdict   tally.Verdict
	without   []time.Duration // once for each stroke
	lostTerms int
	lostTicks int
}

// Header begins the table.
const Header = `| store | fault | strokes | two valid leaders | token reused | ticks doubled | ticks lost | forgotten | without a leader |
|---|---|---|---|---|---|---|---|---|`

// String is the row in Markdown.
func (r row) String() string {
	return "| " + strings.Join([]string{r.kind.Title, r.fault.Name, fmt.Sprint(r.times), r.two(), many(r.notGrown),
		r.doubled(), share(len(r.verdict.Missing), r.verdict.Expected), r.forgotten(), r.gap()}, " | ") + " |"
}

func (r row) two() string {
	if len(r.overlaps) == 0 {
		return "no"
	}
	return many(len(r.overlaps)) + ", up to " + brief(slices.Max(r.overlaps))
}

func (r row) doubled() string {
	text := share(len(r.verdict.Doubled), r.verdict.Expected)
	if n := len(r.verdict.Rerun); n > 0 {
		text += fmt.Sprintf(", %d rerun", n)
	}
	return text
}

func (r row) forgotten() string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, more string
	}{
		{r.lostTerms, "lease", "leases"}, {r.lostTicks, "claim", "claims"},
		{len(r.verdict.Unaccounted), "entry of history", "entries of history"},
	} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.one)
		case p.n > 1:
			parts = append(parts, fmt.Sprint(p.n, " ", p.more))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// gap is the shortest, the median and the longest time without a leader.
func (r row) gap() string {
	if len(r.without) == 1 {
		return brief(r.without[0])
	}
	return fmt.Sprintf("%s / %s / %s", brief(slices.Min(r.without)), brief(tally.Median(r.without)), brief(slices.Max(r.without)))
}

// broken says which promise was broken, "" where none was.
func (r row) broken() string {
	if len(r.overlaps)+r.notGrown+len(r.verdict.Doubled)+len(r.verdict.Missing) == 0 {
		return ""
	}
	return fmt.Sprintf("two valid leaders %v, tokens that have not grown %d, ticks: doubled %v, lost %v", r.overlaps, r.notGrown,
		r.verdict.Doubled, r.verdict.Missing)
}

func many(n int) string {
	switch n {
	case 0:
		return "no"
	case 1:
		return "**once**"
	}
	return fmt.Sprintf("**%d times**", n)
}

func share(n, of int) string {
	if n == 0 {
		return fmt.Sprintf("0 of %d", of)
	}
	return fmt.Sprintf("**%d** of %d", n, of)
}

func brief(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
