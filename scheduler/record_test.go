package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

var (
	someEntry = Entry{
		RunID: "a@2026-11-29T03:00:00Z", Job: "a", Tick: day.Add(3 * time.Hour), LastTick: day.Add(3 * time.Hour), Ticks: 1, Attempt: 2,
		Reason: ReasonRerun, Token: 1<<53 - 1, Replica: "r1-0a", Started: day.Add(3*time.Hour + 123456789), Ended: day.Add(4 * time.Hour),
		Outcome: Failed, Detail: "<no> & \"why\"\n", Note: "ended late", Sequence: 7, Number: 3, Permanent: true,
	}
	someRow = Entry{
		Job: "a", Tick: day, LastTick: day.Add(time.Minute), Ticks: 2, Token: 9, Ended: day.Add(time.Hour), Outcome: Skipped, Detail: skipLate, Sequence: 8,
	}
	someJob = jobRecord{
		Version: formatVersion, Spec: "*/5 * * * *", Zone: "UTC", Key: "CRON_TZ=UTC 0 */5 * * * *", Watermark: day.Unix(), Sequence: 8, Ring: 100, Jitter: 5,
		Unowned: day.Unix(), Problem: "none", Row: &someRow, Last: &someEntry, OpenUntil: day.Add(time.Second / 3),
	}
	someRun = runRecord{
		Version: formatVersion, Job: "a", Tick: day.Add(3 * time.Hour).Unix(), Attempt: 2, Reason: ReasonRerun, Token: 5, Number: 6,
		Replica: "r1-0a", Started: day.Add(3 * time.Hour), Session: 15_000, Interrupts: 1, Failures: 2, Succeeded: true,
		Lost: true, Cancel: &cancelMark{Cause: causeReplaced, By: "2026-11-29T03:05:00Z"},
	}
)

func TestRecordsSurviveTheStore(t *testing.T) {
	job, err := decodeJob(store.Record{Key: "a", Value: encode(&someJob)})
	if err != nil || !reflect.DeepEqual(job, &someJob) {
		t.Errorf("job:\n%+v\n%+v\n%v", job, someJob, err)
	}
	run, err := decodeRun(store.Record{Key: someRun.id(), Value: encode(&someRun)})
	if err != nil || !reflect.DeepEqual(run, &someRun) {
		t.Errorf("run:\n%+v\n%+v\n%v", run, someRun, err)
	}
	waits := someRun
	waits.Replica, waits.Token, waits.Number, waits.NotBefore = "", 0, 0, day
	if run, err := decodeRun(store.Record{Key: waits.id(), Value: encode(&waits)}); err != nil || !reflect.DeepEqual(run, &waits) {
		t.Errorf("waiting run:\n%+v\n%+v\n%v", run, waits, err)
	}
	for _, want := range []Entry{someEntry, someRow} {
		e, err := decodeEntry("a", store.Record{Key: "00007", Value: encode(historyRecord{formatVersion, want})})
		if err != nil || !reflect.DeepEqual(*e, want) {
			t.Errorf("entry:\n%+v\n%+v\n%v", e, want, err)
		}
	}
}

func TestMessagesSurviveTheStore(t *testing.T) {
	m, err := decodeMessage(encode(message{Version: formatVersion, Kind: kindEnd, End: &someEntry}))
	want := someEntry
	want.Note, want.Sequence = "", 0 // the leader's to say
	if err != nil || !reflect.DeepEqual(*m.End, want) {
		t.Errorf("end:\n%+v\n%+v\n%v", m.End, want, err)
	}
	part := newRecall(position{5, 6})
	part.Jobs["a"], part.Runs[someRun.id()], part.Whole = encode(&someJob), encode(&someRun), true
	part.Asked["q"], part.Group = encode(seenRecord{Version: formatVersion, Verb: verbPause}), encode(groupRecord{Version: formatVersion})
	m, err = decodeMessage(encode(message{Version: formatVersion, Kind: kindMemory, Memory: part}))
	if err != nil || !reflect.DeepEqual(m.Memory, part) {
		t.Errorf("memory:\n%+v\n%+v\n%v", m.Memory, part, err)
	}
}

func TestHostileRecordsAreRefused(t *testing.T) {
	edit := func(v any, change func(map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(encode(v), &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		return encode(m)
	}
	set := func(key string, value any) func(map[string]any) { return func(m map[string]any) { m[key] = value } }
	inside := func(key, inner string, value any) func(map[string]any) {
		return func(m map[string]any) { m[key].(map[string]any)[inner] = value }
	}
	for i, value := range [][]byte{
		nil, []byte("{"), []byte("null"), []byte("[]"), []byte(`"x"`), []byte("{}"), {0xff, 0xfe},
		edit(&someJob, set("v", -1)), edit(&someJob, set("watermark", -1)), edit(&someJob, set("watermark", int64(1)<<62)),
		edit(&someJob, set("ring", 0)), edit(&someJob, set("jitter", -1)), edit(&someJob, set("ring", 1<<40)), edit(&someJob, set("spec", strings.Repeat("x", 2000))),
		edit(&someJob, set("spec", "a\nb")), edit(&someJob, set("key", strings.Repeat("x", 10_000))), edit(&someJob, set("watermark", "x")),
		edit(&someJob, inside("row", "job", "b")), edit(&someJob, inside("last", "outcome", "well")), edit(&someJob, inside("last", "ticks", -1)),
	} {
		if _, err := decodeJob(store.Record{Key: "a", Value: value}); err == nil || errors.Is(err, errVersion) {
			t.Errorf("job %d, %.60q: %v", i, value, err)
		}
	}
	if _, err := decodeJob(store.Record{Key: "a/../b", Value: encode(&someJob)}); err == nil {
		t.Error("a job with another key")
	}
	for i, value := range [][]byte{
		nil, []byte("{}"), edit(&someRun, set("job", "b")), edit(&someRun, set("job", "a@b")), edit(&someRun, set("tick", 0)),
		edit(&someRun, set("attempt", 0)),
		edit(&someRun, set("interrupts", -1)), edit(&someRun, set("failures", -1)), edit(&someRun, set("session_ms", -1)), edit(&someRun, set("session_ms", int64(1)<<60)),
		edit(&someRun, set("replica", "{x}")), edit(&someRun, set("tick", int64(1)<<62)),
		edit(&someRun, inside("cancel", "cause", "whim")),
	} {
		if _, err := decodeRun(store.Record{Key: someRun.id(), Value: value}); err == nil {
			t.Errorf("run %d, %.60q is accepted", i, value)
		}
	}
	end := message{Version: formatVersion, Kind: kindEnd, End: &someEntry}
	for i, value := range [][]byte{
		nil, []byte("{}"), edit(end, set("kind", "shell")), edit(end, set("end", nil)), edit(end, set("kind", kindMemory)),
		edit(end, inside("end", "job", "../b")), edit(end, inside("end", "run_id", "b@2026-11-29T03:00:00Z")), edit(end, inside("end", "attempt", 0)),
		edit(end, inside("end", "outcome", "skipped")), edit(end, inside("end", "outcome", "")), edit(end, inside("end", "outcome", "paused")),
		edit(end, inside("end", "replica", "")), edit(end, inside("end", "reason", strings.Repeat("x", 100))),
		edit(end, inside("end", "tick", "29999-01-01")),
	} {
		if _, err := decodeMessage(value); err == nil {
			t.Errorf("message %d, %.60q is accepted", i, value)
		}
	}
	m, err := decodeMessage(edit(end, inside("end", "detail", strings.Repeat("é", 10_000))))
	if err != nil || len(m.End.Detail) > maxDetail || !strings.HasSuffix(m.End.Detail, "é…") {
		t.Errorf("a long detail: %v, %d bytes", err, len(m.End.Detail))
	}
}

func TestAnotherVersionIsSaid(t *testing.T) {
	job := someJob
	job.Version = formatVersion + 1
	_, err := decodeJob(store.Record{Key: "a", Value: encode(&job)})
	if !errors.Is(err, errVersion) || !strings.Contains(err.Error(), "record version 2, this is version 1; upgrade the older binary") {
		t.Errorf("%v", err)
	}
}

// A leader that meets records of another version would write over what it cannot read: it gives up its term instead.
func TestAnotherVersionDoesNotLead(t *testing.T) {
	later := func(v any) []byte { return bytes.Replace(encode(v), []byte(`"v":1`), []byte(`"v":2`), 1) }
	for _, tt := range []struct {
		name   string
		change store.Change
	}{
		{"job", store.Change{Bucket: bucketJob, Key: "a", Value: later(&someJob)}},
		{"run", store.Change{Bucket: bucketRun, Key: someRun.id(), Value: later(&someRun)}},
		{"seen", store.Change{Bucket: bucketSeen, Key: "x", Value: later(seenRecord{Version: 1})}},
		{"marker", store.Change{Bucket: bucketLedger, Key: markerKey, Value: later(markerRecord{Version: 1})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.put(tt.change)
				before := []map[string]string{c.records(bucketJob), c.records(bucketRun), c.records(bucketSeen), c.records(bucketLedger)}
				r := c.start("r1", nil, Job{Name: "b", Spec: "* * * * * *"})
				led, free := 0, 0
				for range 300 {
					pass(100 * time.Millisecond)
					if r.leads() {
						led++
					} else {
						free++
					}
				}
				if led > 0 || free == 0 {
					t.Errorf("it leads in %d of 300 moments", led)
				}
				after := []map[string]string{c.records(bucketJob), c.records(bucketRun), c.records(bucketSeen), c.records(bucketLedger)}
				if !reflect.DeepEqual(before, after) {
					t.Errorf("the ledger was %v, is %v", before, after)
				}
				if !strings.Contains(c.log(), "upgrade the older binary") {
					t.Error("the log does not say why")
				}
				equal(t, "starts", c.started("b"), nil)
			})
		})
	}
}

func TestB44RecordThatCannotBeRead(t *testing.T) {
	for _, value := range []string{"garbage", "{}", `{"v":1}`, `{"v":1,"spec":"* * * * *","key":"?","watermark":946684800,"ring":1000}`} {
		t.Run(value, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				run := runRecord{Version: formatVersion, Job: "bad", Tick: day2000().Unix(), Attempt: 2, Reason: ReasonRerun, Interrupts: 1}
				c.put(store.Change{Bucket: bucketJob, Key: "bad", Value: []byte(value)},
					store.Change{Bucket: bucketRun, Key: run.id(), Value: encode(&run)},
					store.Change{Bucket: bucketRun, Key: "bad@x", Value: []byte(value)},
					store.Change{Bucket: historyBucket("good"), Key: "00500", Value: []byte(value)})
				jobs := []Job{{Name: "bad", Spec: "* * * * * *"}, {Name: "good", Spec: "* * * * * *"}, {Name: "also", Spec: "* * * * * *"}}
				r1 := c.start("r1", nil, jobs...)
				c.start("r2", nil, jobs...)
				pass(2500 * time.Millisecond)
				r1.stop()
				pass(2 * time.Second)
				for _, job := range []string{"good", "also"} {
					var got []string
					for _, e := range c.executions(job) {
						got = append(got, e.run.Tick.Format("15:04:05#1 at"))
					}
					equal(t, job, got, every(1, 1, 4, "at"))
				}
				bad := status(t, c).Jobs[1]
				if strings.Contains(value, "spec") {
					// The schedule that it was written for is unknown, so that the job starts from now.
					if len(c.executions("bad")) != 4+1 { // and the attempt that waited
						t.Errorf("%v", c.started("bad"))
					}
					return
				}
				if bad.Name != "bad" || bad.Problem == "" || c.records(bucketJob)["bad"] != value {
					t.Errorf("%+v, record %s", bad, c.records(bucketJob)["bad"])
				}
				if !strings.Contains(c.log(), "job is left alone") {
					t.Error("the log does not say it")
				}
				equal(t, "bad", c.started("bad"), nil)
				if calls := c.script.count("r2", ""); calls > 60 {
					t.Errorf("%d calls in seconds: a busy loop", calls)
				}
			})
		})
	}
}

// A store that has lost records with one that cannot be read among them: what is remembered can be told.
func TestUnreadableRecordIsNotRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.put(store.Change{Bucket: bucketJob, Key: "bad", Value: []byte("garbage")},
			store.Change{Bucket: bucketRun, Key: "bad@x", Value: []byte("garbage")})
		job := Job{Name: "good", Spec: "* * * * * *", CatchUp: CatchUpAll}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(2500 * time.Millisecond)
		c.delay("r1")
		c.store.Wipe()
		pass(10 * time.Second)
		c.once(t, "good")
		if got := c.executions("good")[2]; got.replica.name != "r2" || !got.run.Tick.Equal(day2000().Add(3*time.Second)) {
			t.Errorf("%v", c.started("good"))
		}
	})
}

// The record of a job is gone, those of its runs are not.
func TestRunsWithoutTheirJob(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(3 * time.Second)}
		r1 := c.start("r1", nil, job)
		pass(11 * time.Second)
		r1.cancel()
		pass(time.Millisecond)
		c.put(store.Change{Bucket: bucketJob, Key: "a", Delete: true})
		c.start("r2", nil, job, Job{Name: "b", Spec: "* * * * * *"})
		pass(10 * time.Second)
		if n := len(c.executions("b")); n < 8 {
			t.Errorf("the other job has run %d times", n)
		}
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r2 00:00:20#1 schedule"})
		if strings.Contains(c.log(), "panicked") {
			t.Error("the leader's loop panicked")
		}
	})
}

func TestB46HistoryIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		jobs := []Job{
			{Name: "a", Spec: "* * * * * *"},
			{Name: "b", Spec: "* * * * * *", Do: takes(1500 * time.Millisecond)}, // a row between any two attempts
			{Name: "c", Spec: "* * * * * *", CatchUp: CatchUpAll, Overlap: OverlapAllow},
		}
		for i := range 17 {
			jobs = append(jobs, Job{Name: fmt.Sprint("more", i), Spec: "* * * * * *"})
		}
		lease := func(cfg *Config) { cfg.Lease, cfg.History = time.Minute, 20 }
		c.start("r1", lease, jobs...)
		measure := func() (keys, size int) {
			buckets := []string{bucketJob, bucketRun, bucketSeen, bucketLedger, store.InboxBucket}
			for _, j := range jobs {
				buckets = append(buckets, historyBucket(j.Name))
			}
			for _, b := range buckets {
				for key, value := range c.records(b) {
					keys++
					size += len(key) + len(value)
				}
			}
			return keys, size
		}
		pass(60*time.Second + 750*time.Millisecond)
		keys, size := measure()
		pass(5_000 * time.Second) // 10⁵ ticks of twenty jobs
		afterKeys, afterSize := measure()
		if afterKeys != keys || afterSize > size+size/50 || keys != 20*20+20+1 {
			t.Errorf("%d keys, %d bytes, and 10⁵ ticks later %d keys, %d bytes", keys, size, afterKeys, afterSize)
		}
	})
}

// Another length of the history ring hides nothing new and shows nothing old.
func TestHistoryOfAnotherLength(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		for _, n := range []int{10, 4, 7} {
			r := c.start("r", func(cfg *Config) { cfg.History = n }, job)
			pass(12*time.Second + 500*time.Millisecond)
			got := c.entries("a")
			if len(got) != n {
				t.Errorf("with %d slots there are %d entries", n, len(got))
			}
			for i := 1; i < len(got); i++ {
				if got[i].Sequence != got[i-1].Sequence+1 {
					t.Errorf("entry %d follows %d", got[i].Sequence, got[i-1].Sequence)
				}
			}
			r.stop()
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add(encode(message{Version: formatVersion, Kind: kindEnd, End: &someEntry}))
	f.Add(encode(message{Version: formatVersion, Kind: kindMemory, Memory: &recall{
		Token: 5, Number: 6, Whole: true,
		Jobs: map[string]json.RawMessage{"a": encode(&someJob), "b": []byte(`{"v":1}`)},
		Runs: map[string]json.RawMessage{someRun.id(): encode(&someRun)},
	}}))
	f.Add([]byte(`{"v":1,"kind":"memory","memory":{"jobs":{"a":null},"runs":null}}`))
	f.Add([]byte(`{"v":1,"kind":"memory","memory":{"asked":{"q":{"v":1,"verb":"pause"}},"group":{"v":1,"steering":{"at":5,"paused":true}}}}`))
	f.Add(encode(message{Version: formatVersion, Kind: kindRequest, Request: &someOrder}))
	f.Add([]byte(`{"v":1,"kind":"request","request":{"verb":"cancel","run":"a@2026-11-29T03:00:00Z+q"}}`))
	f.Add([]byte(`{"v":1,"kind":"request","request":{"verb":"resign","posted":-1}}`))
	f.Add([]byte(`{"v":1,"kind":"end","end":{"job":"a","run_id":"a@0001-01-01T00:00:00Z","attempt":1,"outcome":"failed","replica":"r"}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		m, err := decodeMessage(value)
		if err != nil {
			return
		}
		again, err := decodeMessage(encode(m))
		if err != nil {
			t.Fatalf("%q is accepted, what it is read as is not: %v", value, err)
		}
		if m.End != nil && m.Kind == kindEnd && (!reflect.DeepEqual(m.End, again.End) || len(m.End.Detail) > maxDetail) {
			t.Fatalf("%+v became %+v", m.End, again.End)
		}
		if m.Kind == kindRequest && !reflect.DeepEqual(m.Request, again.Request) {
			t.Fatalf("%+v became %+v", m.Request, again.Request)
		}
		if m.Kind == kindMemory {
			all := newRecall(position{})
			all.merge(m.Memory)
			for _, p := range all.parts() {
				encode(message{Version: formatVersion, Kind: kindMemory, Memory: p})
			}
		}
	})
}

func FuzzDecodeRecords(f *testing.F) {
	f.Add("a", encode(&someJob))
	f.Add("a", encode(&steeredJob))
	f.Add(someRun.id(), encode(&someRun))
	f.Add(someManual.id(), encode(&someManual))
	f.Add("a", encode(historyRecord{formatVersion, someEntry}))
	f.Add("a", encode(historyRecord{formatVersion, someRow}))
	f.Add("a", []byte(`{"v":1,"row":{},"ring":1}`))
	f.Add("a@2026-11-29T00:00:00Z", []byte(`{"v":1,"job":"a","tick":1795910400,"attempt":1}`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		rec := store.Record{Key: key, Value: value}
		if j, err := decodeJob(rec); err == nil {
			if again, err := decodeJob(store.Record{Key: key, Value: encode(j)}); err != nil || !reflect.DeepEqual(again, j) {
				t.Fatalf("job %+v became %+v, %v", j, again, err)
			}
			if table := j.table(); table != nil {
				table.next(j.watermark())
				table.newest(j.watermark(), j.watermark().Add(time.Hour))
			}
		}
		if r, err := decodeRun(rec); err == nil {
			if again, err := decodeRun(store.Record{Key: key, Value: encode(r)}); err != nil || !reflect.DeepEqual(again, r) {
				t.Fatalf("run %+v became %+v, %v", r, again, err)
			}
			if err := store.CheckKey(r.id()); err != nil {
				t.Fatal(err)
			}
		}
		if e, err := decodeEntry(key, rec); err == nil {
			again, err := decodeEntry(key, store.Record{Key: key, Value: encode(historyRecord{formatVersion, *e})})
			if err != nil || !reflect.DeepEqual(again, e) {
				t.Fatalf("entry %+v became %+v, %v", e, again, err)
			}
		}
	})
}
