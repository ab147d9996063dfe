//go:build unix

package table

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
)

func TestRowsShowWhatWasSeen(t *testing.T) {
	calm := row{kind: Kind{Title: "store"}, fault: Fault{Name: "fault"}, times: 1, without: []time.Duration{4200 * time.Millisecond},
		verdict: tally.Verdict{Expected: 9}}
	if got, want := calm.String(), "| store | fault | 1 | no | no | 0 of 9 | 0 of 9 | nothing | 4.2 s |"; got != want || calm.broken() != "" {
		t.Errorf("got  %s\nwant %s\n%s", got, want, calm.broken())
	}
	wild := row{kind: Kind{Title: "store"}, fault: Fault{Name: "fault"}, times: 3,
		overlaps: []time.Duration{time.Microsecond, 73 * time.Millisecond}, notGrown: 1, lostTerms: 1, lostTicks: 2,
		without: []time.Duration{time.Minute, 0, 5 * time.Second},
		verdict: tally.Verdict{Expected: 9, Doubled: []int64{1, 2}, Rerun: []int64{3}, Missing: []int64{4}, Unaccounted: []int64{4, 5}}}
	want := "| store | fault | 3 | **2 times**, up to 73 ms | **once** | **2** of 9, 1 rerun | **1** of 9 | " +
		"1 lease, 2 claims, 2 entries of history | 0 / 5.0 s / 60.0 s |"
	if got := wild.String(); got != want || wild.broken() == "" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, one := range []row{{overlaps: []time.Duration{1}}, {notGrown: 1}, {verdict: tally.Verdict{Missing: []int64{1}}},
		{verdict: tally.Verdict{Doubled: []int64{1}}}} {
		if one.broken() == "" {
			t.Errorf("%+v breaks nothing", one)
		}
	}
}

func TestKindsAreNamedByTheirFirstWords(t *testing.T) {
	k := Kind{Name: "redis-always"}
	for list, want := range map[string]bool{"redis": true, "redis-always": true, "all": true, "cluster,redis": true, "red": false, "redis-nothing": false, "": false} {
		if k.named(list) != want {
			t.Errorf("%q: got %v", list, !want)
		}
	}
}
