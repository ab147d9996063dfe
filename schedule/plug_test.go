package schedule_test

import (
	"testing"

	"github.com/robfig/cron/v3"

	"github.com/go-singleton/singleton/schedule"
)

func TestSchedulesPlugInBothWays(t *testing.T) {
	at := instant(t, "2026-11-29T17:52:11Z")
	theirs, err := cron.ParseStandard("0 3 * * *")
	if err != nil {
		t.Fatal(err)
	}
	ours := schedule.MustParse("0 3 * * *")

	var asOurs schedule.Schedule = theirs
	if got, want := asOurs.Next(at), ours.Next(at); !got.Equal(want) {
		t.Errorf("theirs fires at %s, ours at %s", got, want)
	}
	var asTheirs cron.Schedule = ours
	c := cron.New()
	c.Schedule(asTheirs, cron.FuncJob(func() {}))
	if entries := c.Entries(); len(entries) != 1 || entries[0].Schedule != asTheirs {
		t.Errorf("a cron that was given ours has %v", entries)
	}
}
