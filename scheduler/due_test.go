package scheduler

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/go-singleton/singleton/schedule"
)

// day is the morning of the tests: what the clock says is added to it.
var day = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)

// schedule6 reads expressions as clusters do.
var schedule6 = schedule.Options{Seconds: true}

// at returns a time of that day, or of days after it, such as "12:30" or "1d 00:00:05.5".
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	if clock == "" {
		return time.Time{}
	}
	when := day
	if days, rest, ok := strings.Cut(clock, "d "); ok {
		n := 0
		if _, err := fmt.Sscan(days, &n); err != nil {
			t.Fatal(err)
		}
		when, clock = when.AddDate(0, 0, n), rest
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if c, err := time.Parse(layout, clock); err == nil {
			return when.Add(c.Sub(time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)))
		}
	}
	t.Fatalf("%q is no time", clock)
	return time.Time{}
}

// work does nothing.
func work(context.Context, Run) error { return nil }

func defined(t testing.TB, j Job) *definition {
	t.Helper()
	if j.Name == "" {
		j.Name = "j"
	}
	j.Do = work
	fields := strings.Fields(j.Spec)
	if strings.Contains(j.Spec, "=") {
		fields = fields[1:]
	}
	d, err := define(j, schedule.Options{Seconds: len(fields) == 6})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// String says what becomes of the ticks, in their order.
func (p plan) String() string {
	type part struct {
		at   time.Time
		text string
	}
	var parts []part
	clock := func(t time.Time) string { return strings.TrimSuffix(t.Format("15:04:05"), ":00") }
	for _, c := range p.claims {
		parts = append(parts, part{c.tick, fmt.Sprintf("%s %s", clock(c.tick), c.reason)})
	}
	for _, r := range p.rows {
		text := fmt.Sprintf("%s %s", clock(r.first), r.reason)
		if r.ticks > 1 {
			text = fmt.Sprintf("%s-%s ×%d %s", clock(r.first), clock(r.last), r.ticks, r.reason)
		}
		parts = append(parts, part{r.first, text})
	}
	slices.SortFunc(parts, func(a, b part) int { return a.at.Compare(b.at) })
	var words []string
	for _, p := range parts {
		words = append(words, p.text)
	}
	if p.waiting {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// What becomes of the ticks of a job that is due every five minutes, for each pair of policies.
func TestDueTicksFollowThePolicies(t *testing.T) {
	const all = 10_000
	tests := []struct {
		name      string
		overlap   Overlap
		catchUp   CatchUp
		situation situation
		watermark string // of the job
		now       string
		openUntil string
		window    time.Duration
		max       int
		replaces  string // the tick that takes the place of the open runs
		want      string
	}{
		{name: "nothing is due", watermark: "12:00", now: "12:04:59.999", want: ""},
		{name: "on time", watermark: "12:00", now: "12:05:00.01", want: "12:05 schedule"},

		{name: "skip, latest: missed", watermark: "12:00", now: "12:17", want: "12:05-12:10 ×2 late, 12:15 schedule"},
		{name: "skip, latest: open", watermark: "12:00", now: "12:17", situation: situation{open: true},
			want: "12:05-12:15 ×3 overlap"},
		{name: "skip, latest: was open", watermark: "12:00", now: "12:17", openUntil: "12:10:01",
			want: "12:05-12:10 ×2 overlap, 12:15 schedule"},
		{name: "skip, latest: was open until now", watermark: "12:00", now: "12:17", openUntil: "12:16",
			want: "12:05-12:15 ×3 overlap"},
		{name: "skip, latest: was open until later", watermark: "12:00", now: "12:17", openUntil: "13:00",
			want: "12:05-12:15 ×3 overlap"},
		{name: "skip, latest: nothing is free", watermark: "12:00", now: "12:17", situation: situation{free: -1},
			want: "…"},
		{name: "skip, latest: was open, nothing is free",
			watermark: "12:00", now: "12:17", openUntil: "12:11", situation: situation{free: -1},
			want: "12:05-12:10 ×2 overlap, …"},
		{name: "skip, latest: outside the window", watermark: "12:00", now: "12:17", window: time.Minute,
			want: "12:05-12:15 ×3 late"},
		{name: "skip, latest: just inside", watermark: "12:00", now: "12:17", window: 2 * time.Minute,
			want: "12:05-12:10 ×2 late, 12:15 schedule"},
		{name: "skip, latest: unowned", watermark: "12:00", now: "12:17", situation: situation{unowned: true},
			want: "12:05-12:10 ×2 unowned, 12:15 schedule"},
		{name: "skip, none: at most a second late", catchUp: CatchUpNone, watermark: "12:00", now: "12:15:01",
			want: "12:05-12:10 ×2 late, 12:15 schedule"},
		{name: "skip, none: later", catchUp: CatchUpNone, watermark: "12:00", now: "12:15:01.001",
			want: "12:05-12:15 ×3 late"},
		{name: "skip, none: open", catchUp: CatchUpNone, watermark: "12:00", now: "12:05", situation: situation{open: true},
			want: "12:05 overlap"},
		{name: "skip, none: was open", catchUp: CatchUpNone, watermark: "12:00", now: "12:15:00.5", openUntil: "12:07",
			want: "12:05 overlap, 12:10 late, 12:15 schedule"},

		{name: "queue, latest: open", overlap: OverlapQueue, watermark: "12:00", now: "12:17", situation: situation{open: true},
			want: "…"},
		{name: "queue, latest: was open", overlap: OverlapQueue,
			watermark: "12:00", now: "12:17", openUntil: "12:16:59", window: time.Minute,
			want: "12:05-12:10 ×2 overlap, 12:15 schedule"},
		{name: "queue, latest: was open, and closed long ago", overlap: OverlapQueue,
			watermark: "12:00", now: "12:27", openUntil: "12:12", window: time.Minute,
			want: "12:05 overlap, 12:10 catch-up, 12:15-12:25 ×3 late"},
		{name: "queue, latest: a newer one in the window", overlap: OverlapQueue,
			watermark: "12:00", now: "12:25", openUntil: "12:12",
			want: "12:05-12:10 ×2 overlap, 12:15-12:20 ×2 late, 12:25 schedule"},
		{name: "queue, none: was open", overlap: OverlapQueue, catchUp: CatchUpNone,
			watermark: "12:00", now: "12:17", openUntil: "12:16",
			want: "12:05-12:10 ×2 overlap, 12:15 schedule"},
		{name: "queue, none: was not open", overlap: OverlapQueue, catchUp: CatchUpNone, watermark: "12:00", now: "12:17",
			want: "12:05-12:15 ×3 late"},
		{name: "queue, none: missed before the run", overlap: OverlapQueue, catchUp: CatchUpNone,
			watermark: "12:00", now: "12:17", openUntil: "12:04",
			want: "12:05-12:15 ×3 late"},

		{name: "replace, latest: missed", overlap: OverlapReplace, watermark: "12:00", now: "12:17",
			want: "12:05-12:10 ×2 late, 12:15 schedule"},
		{name: "replace, latest: open", overlap: OverlapReplace, watermark: "12:00", now: "12:17", situation: situation{open: true},
			replaces: "12:15", want: "…"},
		{name: "replace, latest: open, nothing is free", overlap: OverlapReplace, watermark: "12:00", now: "12:05",
			situation: situation{open: true, free: -1}, replaces: "12:05", want: "…"},
		{name: "replace, latest: open, nothing is due", overlap: OverlapReplace, watermark: "12:00", now: "12:04",
			situation: situation{open: true}, want: ""},
		{name: "replace, latest: has ended", overlap: OverlapReplace, watermark: "12:00", now: "12:05:01", openUntil: "12:05:00.9",
			want: "12:05 schedule"},
		{name: "replace, latest: would not end", overlap: OverlapReplace, watermark: "12:00", now: "12:17", openUntil: "12:16:59",
			window: time.Minute, want: "12:05-12:10 ×2 overlap, 12:15 schedule"},
		{name: "replace, latest: would not end for long", overlap: OverlapReplace, watermark: "12:00", now: "12:27", openUntil: "12:12",
			window: time.Minute, want: "12:05 overlap, 12:10 catch-up, 12:15-12:25 ×3 late"},
		{name: "replace, latest: ended, nothing is free", overlap: OverlapReplace, watermark: "12:00", now: "12:05:01",
			openUntil: "12:05:00.9", situation: situation{free: -1}, want: "…"},
		{name: "replace, none: open", overlap: OverlapReplace, catchUp: CatchUpNone, watermark: "12:00", now: "12:17",
			situation: situation{open: true}, replaces: "12:15", want: "…"},
		{name: "replace, none: would not end", overlap: OverlapReplace, catchUp: CatchUpNone, watermark: "12:00", now: "12:09",
			openUntil: "12:08:59", want: "12:05 schedule"},

		{name: "queue, all", overlap: OverlapQueue, catchUp: CatchUpAll, watermark: "12:00", now: "12:17",
			want: "12:05 catch-up, …"},
		{name: "queue, all: the last", overlap: OverlapQueue, catchUp: CatchUpAll, watermark: "12:10", now: "12:17",
			want: "12:15 schedule"},
		{name: "queue, all: due before this term", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:10", now: "12:17", situation: situation{termStart: day.Add(12*time.Hour + 16*time.Minute)},
			want: "12:15 catch-up"},
		{name: "queue, all: open", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", situation: situation{open: true},
			want: "…"},
		{name: "queue, all: nothing is free", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", situation: situation{free: -1},
			want: "…"},
		{name: "queue, all: cap", overlap: OverlapQueue, catchUp: CatchUpAll, watermark: "12:00", now: "12:32", max: 2,
			want: "12:05-12:20 ×4 cap, 12:25 catch-up, …"},
		{name: "queue, all: window", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:32", window: 10 * time.Minute,
			want: "12:05-12:20 ×4 late, 12:25 catch-up, …"},
		{name: "queue, all: window and cap", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:32", window: 20 * time.Minute, max: 2,
			want: "12:05-12:10 ×2 late, 12:15-12:20 ×2 cap, 12:25 catch-up, …"},
		{name: "queue, all: outside the window", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", window: time.Minute,
			want: "12:05-12:15 ×3 late"},
		{name: "queue, all: outside the window, was open", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", window: time.Minute, openUntil: "12:11",
			want: "12:05 late, 12:10 catch-up, …"},
		{name: "queue, all: unowned", overlap: OverlapQueue, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:32", max: 2, situation: situation{unowned: true},
			want: "12:05-12:20 ×4 unowned, 12:25 catch-up, …"},

		{name: "allow, latest", overlap: OverlapAllow, watermark: "12:00", now: "12:17", situation: situation{open: true},
			want: "12:05-12:10 ×2 late, 12:15 schedule"},
		{name: "allow, none", overlap: OverlapAllow, catchUp: CatchUpNone,
			watermark: "12:00", now: "12:17", situation: situation{open: true}, openUntil: "12:16",
			want: "12:05-12:15 ×3 late"},
		{name: "allow, all", overlap: OverlapAllow, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", situation: situation{open: true},
			want: "12:05 catch-up, 12:10 catch-up, 12:15 schedule"},
		{name: "allow, all: two are free", overlap: OverlapAllow, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", situation: situation{free: 2},
			want: "12:05 catch-up, 12:10 catch-up, …"},
		{name: "allow, all: cap", overlap: OverlapAllow, catchUp: CatchUpAll, watermark: "12:00", now: "12:17", max: 1,
			want: "12:05-12:10 ×2 cap, 12:15 schedule"},
		{name: "allow, all: outside the window", overlap: OverlapAllow, catchUp: CatchUpAll,
			watermark: "12:00", now: "12:17", window: time.Minute,
			want: "12:05-12:15 ×3 late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := defined(t, Job{Spec: "*/5 * * * *", Overlap: tt.overlap, CatchUp: tt.catchUp, Window: tt.window, CatchUpMax: tt.max})
			s := tt.situation
			s.watermark, s.now, s.openUntil = at(t, tt.watermark), at(t, tt.now), at(t, tt.openUntil)
			if s.free == 0 {
				s.free = all
			}
			p := d.decide(s)
			if got := p.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if want := at(t, tt.replaces); !p.replaces.Equal(want) {
				t.Errorf("%v takes the place of the open runs, want %v", p.replaces, want)
			}
		})
	}
}

// outcome is what becomes of one tick: "claim: reason", "skip: reason", or nothing.
type outcomes map[int64]string

// naive says what becomes of each tick from a list of all that are due, second by second.
func naive(d *definition, s situation, ticks []int64, due func(int64) time.Time) (outcomes, bool) {
	out, left := outcomes{}, slices.Clone(ticks)
	skip := func(t int64, reason string) {
		if s.unowned && reason != skipOverlap {
			reason = skipUnowned
		}
		out[t] = "skip: " + reason
	}
	sinceOf := func(t int64) time.Duration { return s.now.Sub(due(t)) }
	wasOpen := func(t int64) bool { return !due(t).After(s.openUntil) }
	switch {
	case len(ticks) == 0:
		return out, false
	case (d.Overlap == OverlapQueue || d.Overlap == OverlapReplace) && s.open:
		return out, true
	case d.Overlap == OverlapSkip:
		left = nil
		for _, t := range ticks {
			if s.open || wasOpen(t) {
				skip(t, skipOverlap)
			} else {
				left = append(left, t)
			}
		}
	}
	if len(left) == 0 {
		return out, false
	}
	if s.free <= 0 {
		return out, true
	}
	newest := left[len(left)-1]
	claim := func(t int64) {
		out[t] = "claim: schedule"
		if t < newest || due(t).Before(s.termStart) {
			out[t] = "claim: catch-up"
		}
	}
	queued := int64(-1)
	if d.Overlap == OverlapQueue || d.Overlap == OverlapReplace {
		for _, t := range left {
			if wasOpen(t) {
				queued = t
			}
		}
	}
	if d.CatchUp != CatchUpAll {
		limit := d.Window
		if d.CatchUp == CatchUpNone {
			limit = time.Second
		}
		start := newest
		if sinceOf(newest) > limit {
			start = queued
		}
		for _, t := range left {
			switch {
			case t == start:
				claim(t)
			case t <= queued:
				skip(t, skipOverlap)
			default:
				skip(t, skipLate)
			}
		}
		return out, false
	}
	var line []int64
	for _, t := range left {
		if sinceOf(t) <= d.Window {
			line = append(line, t)
		}
	}
	line = line[max(0, len(line)-d.CatchUpMax):]
	if len(line) == 0 && queued >= 0 {
		line = []int64{queued}
	}
	waiting := false
	starts := 0
	for _, t := range left {
		switch {
		case len(line) == 0:
			skip(t, skipLate)
		case t < line[0] && sinceOf(t) > d.Window:
			skip(t, skipLate)
		case t < line[0]:
			skip(t, skipCap)
		case slices.Contains(line, t) && starts < s.free && (d.Overlap == OverlapAllow || starts == 0):
			claim(t)
			starts++
		default:
			waiting = true
		}
	}
	return out, waiting
}

// table of one property check.
type dueCase struct {
	kind                                  uint8 // of schedule
	overlap, catchUp                      uint8
	span, openUntil, termStart, nowMillis int32
	window, jitter                        int32
	limit, free                           uint8
	open, unowned                         bool
}

// delays returns the instant at which each tick falls due, worked out from the rule of the schedule alone.
func delays(d *definition, isTick func(time.Time) bool) func(int64) time.Time {
	return func(sec int64) time.Time {
		var gap time.Duration
		for gap = 1; gap < 10_000 && !isTick(time.Unix(sec+int64(gap), 0).UTC()); gap++ {
		}
		most := min(d.Jitter, gap*time.Second-1)
		return time.Unix(sec, 0).Add(delayOf("j", sec, most))
	}
}

// delayOf returns the delay of a tick, of which most is the longest.
func delayOf(job string, sec int64, most time.Duration) time.Duration {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s@%s", job, time.Unix(sec, 0).UTC().Format(time.RFC3339)))
	first := new(big.Int).SetBytes(sum[:8])
	return time.Duration(first.Mod(first, big.NewInt(int64(most)+1)).Int64())
}

// secondly are schedules with a rule of their own for each second.
var secondly = []struct {
	job Job
	due func(t time.Time) bool
}{
	{Job{Spec: "* * * * * *"}, func(time.Time) bool { return true }},
	{Job{Spec: "*/7 * * * * *"}, func(t time.Time) bool { return t.Second()%7 == 0 }},
	{Job{Spec: "0 */3 * * * *"}, func(t time.Time) bool { return t.Second() == 0 && t.Minute()%3 == 0 }},
	{Job{Spec: "@every 11s"}, func(t time.Time) bool { return t.Unix()%11 == 0 }},
	{Job{Spec: "5,6,30-33 10-40 * * * *"}, func(t time.Time) bool {
		s := t.Second()
		return t.Minute() >= 10 && t.Minute() <= 40 && (s == 5 || s == 6 || s >= 30 && s <= 33)
	}},
	{Job{Spec: "robfig", Schedule: robfig("*/20 * * * * *")}, func(t time.Time) bool { return t.Second()%20 == 0 }},
	{Job{Spec: "nth", Schedule: everyNth(13)}, func(t time.Time) bool { return t.Unix()%13 == 0 }},
	{Job{Spec: "0 0 3 30 2 *", Schedule: never{}}, func(time.Time) bool { return false }},
}

func robfig(spec string) cron.Schedule {
	parser := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	s, err := parser.Parse(spec)
	if err != nil {
		panic(err)
	}
	return s
}

type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

func (c dueCase) check(t testing.TB) {
	kind := secondly[int(c.kind)%len(secondly)]
	j := kind.job
	j.Overlap, j.CatchUp = Overlap(c.overlap%5), CatchUp(c.catchUp%3)
	if j.CatchUp == CatchUpAll && (j.Overlap == OverlapSkip || j.Overlap == OverlapReplace) {
		j.Overlap = OverlapQueue
	}
	j.Jitter = time.Duration(c.jitter&0xffff) * time.Millisecond
	j.Window, j.CatchUpMax = time.Duration(c.window&0xfff)*time.Second, int(c.limit)
	d := defined(t, j)
	span := time.Duration(c.span&0x1fff) * time.Second
	s := situation{
		watermark: day.Add(time.Hour),
		now:       day.Add(time.Hour + span + time.Duration(c.nowMillis%1000)*time.Millisecond),
		termStart: day.Add(time.Hour + time.Duration(c.termStart%0x1fff)*time.Second),
		open:      c.open,
		free:      int(c.free) - 3,
		unowned:   c.unowned,
	}
	if c.openUntil != 0 {
		s.openUntil = day.Add(time.Hour + time.Duration(c.openUntil%0x1fff)*time.Second/3)
	}
	var ticks []int64
	due := delays(d, kind.due)
	for sec := s.watermark.Unix() + 1; sec <= s.now.Unix(); sec++ {
		if when := time.Unix(sec, 0).UTC(); kind.due(when) && !due(sec).After(s.now) {
			ticks = append(ticks, sec)
		}
	}
	want, waiting := naive(d, s, ticks, due)
	p := d.decide(s)
	if replaces := len(ticks) > 0 && s.open && d.Overlap == OverlapReplace; replaces && p.replaces.Unix() != ticks[len(ticks)-1] ||
		!replaces && !p.replaces.IsZero() {
		t.Fatalf("%+v %+v: %v takes the place of the open runs", j, s, p.replaces)
	}

	got := outcomes{}
	put := func(sec int64, what string) {
		if old, ok := got[sec]; ok {
			t.Fatalf("%+v %+v: tick %d is both %s and %s", j, s, sec, old, what)
		}
		got[sec] = what
	}
	for _, c := range p.claims {
		if due(c.tick.Unix()).After(s.now) {
			t.Fatalf("%+v %+v: a claim in the future: %v", j, s, c)
		}
		put(c.tick.Unix(), "claim: "+string(c.reason))
	}
	for _, r := range p.rows {
		n := 0
		for _, sec := range ticks {
			if sec >= r.first.Unix() && sec <= r.last.Unix() {
				put(sec, "skip: "+r.reason)
				n++
			}
		}
		if n != r.ticks || got[r.first.Unix()] == "" || got[r.last.Unix()] == "" {
			t.Fatalf("%+v %+v: row %+v has %d ticks", j, s, r, n)
		}
	}
	for _, sec := range ticks {
		if got[sec] != want[sec] {
			t.Fatalf("%+v %+v: tick %v is %q, want %q", j, s, time.Unix(sec, 0).UTC(), got[sec], want[sec])
		}
		if passed := sec <= p.watermark.Unix(); passed != (got[sec] != "") {
			t.Fatalf("%+v %+v: watermark %v, tick %v is %q", j, s, p.watermark, time.Unix(sec, 0).UTC(), got[sec])
		}
	}
	if len(got) != len(want) || p.waiting != waiting || p.watermark.Before(s.watermark) || p.watermark.After(s.now) {
		t.Fatalf("%+v %+v: plan %+v, want %v waiting %v", j, s, p, want, waiting)
	}

	// Asked again at the same moment, it finds only what waits.
	s.watermark = p.watermark
	again := d.decide(s)
	if !p.waiting && (len(again.claims)+len(again.rows) > 0 || again.waiting) {
		t.Fatalf("%+v %+v: decided again: %+v", j, s, again)
	}
}

func TestDueTicksAreAccountedForOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		dueCase{
			kind: uint8(r.Uint32()), overlap: uint8(r.Uint32()), catchUp: uint8(r.Uint32()),
			span: r.Int32N(1 << r.IntN(13)), openUntil: r.Int32N(1 << r.IntN(15)), termStart: r.Int32(), nowMillis: r.Int32(),
			window: r.Int32N(1 << r.IntN(13)), jitter: max(0, r.Int32N(1<<r.IntN(17))-1000), limit: uint8(r.Uint32() >> r.IntN(8)), free: uint8(r.Uint32N(12)),
			open: r.IntN(4) == 0, unowned: r.IntN(4) == 0,
		}.check(t)
	}
}

func FuzzDecide(f *testing.F) {
	for kind := range secondly {
		for policy := range uint8(30) {
			f.Add(uint8(kind), policy%5, policy/5%3, int32(100), int32(policy)*10, int32(50), int32(300), int32(60), int32(policy/15)*4000,
				uint8(5), uint8(20), false, false)
		}
	}
	f.Fuzz(func(t *testing.T, kind, overlap, catchUp uint8, span, openUntil, termStart, nowMillis, window, jitter int32, limit, free uint8,
		open, unowned bool,
	) {
		if nowMillis < 0 || openUntil < 0 || termStart < 0 {
			return
		}
		dueCase{kind, overlap, catchUp, span, openUntil, termStart, nowMillis, window, jitter, limit, free, open, unowned}.check(t)
	})
}

func TestB35TwoWeeksOfSecondsAreOneEntry(t *testing.T) {
	for name, j := range map[string]Job{
		"cron":    {Spec: "* * * * * *"},
		"foreign": {Spec: "secondly", Schedule: robfig("* * * * * *")},
	} {
		t.Run(name, func(t *testing.T) {
			j.CatchUp, j.CatchUpMax, j.Window = CatchUpAll, 100, 15*24*time.Hour
			d := defined(t, j)
			s := situation{watermark: day, now: day.AddDate(0, 0, 14).Add(300 * time.Millisecond), free: 10}
			p := d.decide(s)
			oldest := s.now.Add(-99 * time.Second).Truncate(time.Second)
			if len(p.rows) != 1 || p.rows[0].reason != skipCap || len(p.claims) != 1 || !p.claims[0].tick.Equal(oldest) {
				t.Fatalf("%v", p)
			}
			if want := 14*86400 - 100; name == "cron" && p.rows[0].ticks != want || p.rows[0].ticks > want || p.rows[0].ticks < foreignSteps {
				t.Errorf("%d ticks are skipped, want %d", p.rows[0].ticks, want)
			}
			runs := len(p.claims)
			for p.waiting {
				s.watermark = p.watermark
				if p = d.decide(s); len(p.rows) > 0 {
					t.Fatalf("%v", p)
				}
				runs += len(p.claims)
			}
			if runs != 100 || !p.watermark.Equal(s.now.Truncate(time.Second)) {
				t.Errorf("%d runs up to %v", runs, p.watermark)
			}
		})
	}
}

// The clock goes back after a tick has run, or three days forward.
func TestB47ClockJumpsAreNoTicks(t *testing.T) {
	d := defined(t, Job{Spec: "0 * * * *"})
	p := d.decide(situation{watermark: at(t, "17:00"), now: at(t, "15:00:00.1"), free: 1})
	if p.String() != "" || !p.watermark.Equal(at(t, "17:00")) {
		t.Errorf("two hours back: %v", p)
	}
	d = defined(t, Job{Spec: "* * * * *"})
	p = d.decide(situation{watermark: at(t, "17:00"), now: at(t, "3d 17:00:00.1"), free: 1})
	if got, want := p.String(), "17:01-16:59 ×4319 late, 17:00 schedule"; got != want {
		t.Errorf("three days forward: %s, want %s", got, want)
	}
}

func BenchmarkDecide(b *testing.B) {
	hour := time.Hour
	for _, bench := range []struct {
		name string
		job  Job
		gap  time.Duration
	}{
		{"on time", Job{Spec: "* * * * * *"}, time.Second},
		{"nothing due", Job{Spec: "0 0 3 * * *"}, time.Second},
		{"two weeks, all", Job{Spec: "* * * * * *", CatchUp: CatchUpAll, Window: 15 * 24 * hour}, 14 * 24 * hour},
		{"two weeks, latest", Job{Spec: "* * * * * *"}, 14 * 24 * hour},
		{"two weeks, all, zone with summer time",
			Job{Spec: "CRON_TZ=Europe/Berlin * * * * * *", CatchUp: CatchUpAll, Window: 15 * 24 * hour}, 14 * 24 * hour},
		{"foreign on time", Job{Spec: "f", Schedule: robfig("* * * * * *")}, time.Second},
		{"foreign two weeks, all", Job{Spec: "f", Schedule: robfig("* * * * * *"), CatchUp: CatchUpAll, Window: 15 * 24 * hour}, 14 * 24 * hour},
	} {
		b.Run(bench.name, func(b *testing.B) {
			d := defined(b, bench.job)
			s := situation{watermark: day.Add(-bench.gap), now: day.Add(time.Millisecond), free: 10_000}
			for b.Loop() {
				d.decide(s)
			}
		})
	}
}
