package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Replicas tell what they remember in any order.
func TestB57LaterWatermarkCountsInAnyOrder(t *testing.T) {
	remembers := func(number uint64, watermark int64) *recall {
		r := newRecall(position{7, number})
		r.Jobs["a"] = encode(&jobRecord{Version: formatVersion, Spec: "@daily", Zone: "UTC", Key: "@daily", Watermark: watermark, Ring: 100})
		return r
	}
	early, late := day2000().Unix(), day2000().Add(time.Hour).Unix()
	for _, order := range [][]*recall{
		{remembers(1, early), remembers(2, late)}, {remembers(2, late), remembers(1, early)},
		{remembers(2, early), remembers(1, late)}, {remembers(1, late), remembers(2, early)},
	} {
		all := newRecall(position{})
		for _, r := range order {
			all.merge(r)
		}
		rec, err := decodeJob(store.Record{Key: "a", Value: all.Jobs["a"]})
		if err != nil {
			t.Fatal(err)
		}
		if rec.Watermark != late || all.position() != (position{7, 2}) {
			t.Errorf("%s: watermark %v, position %v", fmt.Sprint(order[0].Number, " before ", order[1].Number), rec.watermark(), all.position())
		}
	}
}

// Whoever leads after a leader that has met a gap knows what that one remembers before it claims anything.
func TestB57GapIsToldBeforeAnotherLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "ticks", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		r2 := c.start("r2", nil, job)
		pass(5500 * time.Millisecond)
		restore := c.store.Snapshot()
		pass(1100 * time.Millisecond)          // r1 has its lease also in the store of then
		c.script.follow(func(call call) fate { // r1 does not come to look at the ledger when it has stopped to lead
			return fate{lost: call.replica == "r1" && call.op == "position"}
		})
		restore()
		pass(3 * time.Second)
		if r1.leads() || !r2.leads() {
			t.Fatal("r2 does not lead")
		}
		c.script.follow(nil)
		pass(5 * time.Second)
		c.once(t, "ticks")
	})
}
