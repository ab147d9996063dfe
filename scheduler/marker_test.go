package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
)

func TestMarkerThatCannotBeReadIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		pass(10*time.Second + time.Second/2)
		r1.stop()
		c.put(store.Change{Bucket: bucketLedger, Key: markerKey, Value: []byte("garbage")},
			store.Change{Bucket: bucketLedger, Key: "other", Value: []byte("garbage")})
		c.start("r2", nil, job)
		pass(10 * time.Second)
		c.once(t, "a")
		if n := len(c.executions("a")); n < 14 {
			t.Errorf("%d runs", n)
		}
		if got := c.records(bucketLedger)[markerKey]; !strings.HasPrefix(got, "{") {
			t.Errorf("the marker is %q", got)
		}
		if !strings.Contains(c.log(), "a record of the ledger cannot be read") {
			t.Error("the log does not say it")
		}
	})
}

// The ring has another length by then: the entry is not written a second time, in another slot.
func TestLateEndIsNotedWhereTheEntryStands(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		slots := func(n int) func(*Config) { return func(cfg *Config) { cfg.History = n } }
		job := func(do Func) Job { return Job{Name: "a", Spec: "*/10 * * * * *", Do: do} }
		def, err := define(job(takes(0)), schedule.Options{Seconds: true})
		if err != nil {
			t.Fatal(err)
		}
		c.put(store.Change{Bucket: bucketJob, Key: "a", Value: encode(&jobRecord{
			Version: formatVersion, Spec: def.Spec, Zone: def.zone, Key: def.key, Watermark: day2000().Unix(), Sequence: 7, Ring: 3,
		})})
		// r1 is paused, and its job does not see its context end.
		r1 := c.start("r1", slots(3), job(func(context.Context, Run) error { time.Sleep(22 * time.Second); return nil }))
		pass(9 * time.Second)
		r2 := c.start("r2", slots(3), job(takes(0)))
		pass(2 * time.Second)
		c.script.follow(func(call call) fate { return fate{lost: call.replica == r1.name} })
		pass(6 * time.Second)
		if !r2.leads() {
			t.Fatal("r2 does not lead")
		}
		r2.stop()
		c.start("r3", slots(100), job(takes(0)))
		pass(5 * time.Second) // it leads, and its tick of 20 s has a place in the longer ring
		c.script.follow(nil)
		pass(20 * time.Second)
		want := []string{"00:00:10#1 schedule interrupted", "00:00:20#1 schedule succeeded", "00:00:30#1 schedule succeeded", "00:00:40#1 schedule succeeded"}
		equal(t, "history", c.history("a"), want)
		if note := c.entries("a")[0].Note; !strings.HasPrefix(note, "ended late: succeeded") {
			t.Errorf("note %q", note)
		}
	})
}
