package scheduler

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestRefusals is the whole policy of requests: what is refused, and why.
func TestRefusals(t *testing.T) {
	now := at(t, "12:00")
	posted := now.UnixMilli()
	owned := func(overlap Overlap) *jobState {
		return &jobState{name: "a", def: defined(t, Job{Name: "a", Spec: "@hourly", Overlap: overlap})}
	}
	steered := func(s steering) *jobState {
		j := owned(OverlapSkip)
		j.record.Steering = &s
		return j
	}
	unowned, broken := &jobState{name: "a"}, owned(OverlapSkip)
	broken.problem = errReset
	going := &runRecord{Job: "a", Tick: at(t, "11:00").Unix(), Attempt: 1, Replica: "r1"}
	waiting := &runRecord{Job: "a", Tick: at(t, "11:00").Unix(), Attempt: 2}
	paused, over := steering{Paused: true}, steering{Paused: true, Until: now.Unix()}
	half := steering{Paused: true, Until: now.Unix() + 1}
	ann := steering{Paused: true, Author: "ann", Posted: posted + 1}
	const half30 = 30 * time.Minute

	for _, tt := range []struct {
		name  string
		order order
		given standing
		want  string // how the refusal begins; empty is none
	}{
		{"trigger", order{Verb: verbTrigger, Job: "a"}, standing{job: owned(OverlapSkip)}, ""},
		{"trigger, unknown", order{Verb: verbTrigger, Job: "a"}, standing{}, `there is no job "a"`},
		{"trigger, unowned", order{Verb: verbTrigger, Job: "a"}, standing{job: unowned}, `the leader does not have job "a"`},
		{"trigger, unreadable", order{Verb: verbTrigger, Job: "a"}, standing{job: broken}, `the record of job "a" cannot be read`},
		{"trigger at an earlier tick", order{Verb: verbTrigger, Job: "a", Tick: now.Unix()}, standing{job: owned(OverlapSkip)}, ""},
		{"trigger ahead", order{Verb: verbTrigger, Job: "a", Tick: now.Unix() + 1}, standing{job: owned(OverlapSkip)}, "the tick 2026-11-29T12:00:01Z lies ahead"},
		{"trigger of a paused job", order{Verb: verbTrigger, Job: "a"}, standing{job: steered(paused)}, ""},
		{"B45 trigger, open, skip", order{Verb: verbTrigger, Job: "a"}, standing{job: owned(OverlapSkip), runs: []*runRecord{going}}, "overlap: run a@2026-11-29T11:00:00Z is open"},
		{"trigger, waiting attempt, skip", order{Verb: verbTrigger, Job: "a"}, standing{job: owned(OverlapSkip), runs: []*runRecord{waiting}}, "overlap: "},
		{"trigger, open, queue", order{Verb: verbTrigger, Job: "a"}, standing{job: owned(OverlapQueue), runs: []*runRecord{going}}, ""},
		{"trigger, open, allow", order{Verb: verbTrigger, Job: "a"}, standing{job: owned(OverlapAllow), runs: []*runRecord{going}}, ""},

		{"pause", order{Verb: verbPause, Job: "a"}, standing{job: owned(OverlapSkip)}, ""},
		{"pause of the group", order{Verb: verbPause}, standing{}, ""},
		{"pause, again", order{Verb: verbPause, Job: "a"}, standing{job: steered(paused)}, ""},
		{"pause, unowned", order{Verb: verbPause, Job: "a"}, standing{job: unowned}, ""},
		{"pause, unknown", order{Verb: verbPause, Job: "a"}, standing{}, "there is no job"},
		{"pause until now", order{Verb: verbPause, Job: "a", Until: now.Unix()}, standing{job: owned(OverlapSkip)}, "it ends at 2026-11-29T12:00:00Z, which has passed"},
		{"pause until later", order{Verb: verbPause, Until: now.Unix() + 1}, standing{}, ""},
		{"B54 pause, overtaken", order{Verb: verbPause, Job: "a", Author: "ann"}, standing{job: steered(ann)}, "a later pause or resume of the same author"},
		{"pause, another author's clock is ahead", order{Verb: verbPause, Job: "a", Author: "bob"}, standing{job: steered(ann)}, ""},
		{"pause, unknown authors", order{Verb: verbPause, Job: "a"}, standing{job: steered(steering{Posted: posted + 1})}, ""},

		{"resume", order{Verb: verbResume, Job: "a"}, standing{job: steered(paused)}, ""},
		{"resume of the group", order{Verb: verbResume}, standing{group: &paused}, ""},
		{"resume before the end of the pause", order{Verb: verbResume, Job: "a"}, standing{job: steered(half)}, ""},
		{"B54 resume, not paused, its pause may come", order{Verb: verbResume, Author: "ann"}, standing{}, "the group is not paused; a pause of yours"},
		{"resume after the end of the pause", order{Verb: verbResume, Job: "a"}, standing{job: steered(over)}, `job "a" is not paused`},
		{"resume, not paused", order{Verb: verbResume, Job: "a"}, standing{job: owned(OverlapSkip)}, `job "a" is not paused`},
		{"resume of the group, not paused", order{Verb: verbResume}, standing{}, "the group is not paused"},
		{"resume of a job, the group is paused", order{Verb: verbResume, Job: "a"}, standing{job: owned(OverlapSkip), group: &paused}, `job "a" is not paused itself, the whole group is`},
		{"B54 resume, overtaken", order{Verb: verbResume, Author: "ann"}, standing{group: &ann}, "a later pause or resume of the same author"},

		{"cancel", order{Verb: verbCancel, Run: going.id()}, standing{run: going}, ""},
		{"cancel, not open", order{Verb: verbCancel, Run: going.id()}, standing{}, "no run a@2026-11-29T11:00:00Z is open"},
		{"resign", order{Verb: verbResign}, standing{}, ""},

		{"forget", order{Verb: verbForget, Job: "a"}, standing{job: unowned}, ""},
		{"forget, a run waits", order{Verb: verbForget, Job: "a"}, standing{job: unowned, runs: []*runRecord{waiting}}, ""},
		{"forget, a run goes on", order{Verb: verbForget, Job: "a"}, standing{job: unowned, runs: []*runRecord{waiting, going}}, "run a@2026-11-29T11:00:00Z is open: cancel it first"},
		{"forget, owned", order{Verb: verbForget, Job: "a"}, standing{job: owned(OverlapSkip)}, "the leader has job"},
		{"forget, unreadable", order{Verb: verbForget, Job: "a"}, standing{job: broken}, ""},
		{"forget, unknown", order{Verb: verbForget, Job: "a"}, standing{}, "there is no job"},

		{"reset", order{Verb: verbReset, Job: "a"}, standing{job: owned(OverlapSkip)}, ""},
		{"reset, unowned", order{Verb: verbReset, Job: "a"}, standing{job: unowned}, ""},
		{"reset, unreadable", order{Verb: verbReset, Job: "a"}, standing{job: broken}, "the record of job"},

		{"B54 half an hour old", order{Verb: verbResign}, standing{store: now.Add(half30)}, ""},
		{"B54 older", order{Verb: verbResign}, standing{store: now.Add(half30 + time.Second)}, "it is 30m1s old"},
		{"B54 half an hour ahead", order{Verb: verbResign}, standing{store: now.Add(-half30)}, ""},
		{"B54 further ahead", order{Verb: verbResign}, standing{store: now.Add(-half30 - time.Second)}, "it comes from a clock that is 30m1s ahead"},
	} {
		tt.order.Posted, tt.given.now = posted, now
		if tt.given.store.IsZero() {
			tt.given.store = now
		}
		if err := tt.order.check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		got := tt.order.refusal(tt.given)
		if got == "" {
			got = tt.order.vain(tt.given)
		}
		if !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestB37PausedTo(t *testing.T) {
	now := at(t, "12:00")
	until := func(d time.Duration) *steering { return &steering{Paused: true, Until: now.Add(d).Unix()} }
	for _, tt := range []struct {
		name string
		of   []*steering
		want time.Time
	}{
		{"nothing", []*steering{nil, {}}, time.Time{}},
		{"resumed", []*steering{{At: 5, Author: "ann"}}, time.Time{}},
		{"paused", []*steering{nil, {Paused: true}}, endOfTime},
		{"until later", []*steering{until(time.Second), nil}, endOfTime},
		{"until now", []*steering{until(0), nil}, now},
		{"until then", []*steering{until(-time.Hour), until(-time.Minute)}, now.Add(-time.Minute)},
		{"one is over", []*steering{until(-time.Hour), {Paused: true}}, endOfTime},
	} {
		if got := pausedTo(now, tt.of...); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRunIDs(t *testing.T) {
	tick := at(t, "03:00")
	for _, id := range []string{runID("a", tick, ""), runID("a.b-c_d", tick, "019ad003-aaaa-7aaa-8aaa-aaaaaaaaaaaa")} {
		if err := checkRunID(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "a", "a@", "@2026-11-29T03:00:00Z", "a@2026-11-29", "a@2026-11-29T03:00:00.5Z", "a@2026-11-29T03:00:00+01:00",
		"a@2026-11-29T03:00:00Z+", "a@2026-11-29T03:00:00Z+{", "../a@2026-11-29T03:00:00Z", "a@2026-11-29T03:00:00Z+b+c"} {
		if err := checkRunID(id); err == nil {
			t.Errorf("%q is accepted", id)
		}
	}
}

// Seeds of the decoders: what requests leave in the store.
var (
	someOrder  = order{Verb: verbPause, Author: "ann@laptop", Posted: day.UnixMilli(), Job: "a", Reason: "why", Until: day.Unix()}
	someManual = func() runRecord {
		last := someEntry
		last.shorten()
		r := someRun
		r.Request, r.Author, r.Asked, r.Last = "019ad003-aaaa-7aaa-8aaa-aaaaaaaaaaaa", "ann", day.Unix(), &last
		return r
	}()
	steeredJob = func() jobRecord {
		j := someJob
		j.Steering = &steering{At: 1, Posted: 2, Author: "ann", Paused: true, Until: day.Unix(), Reason: "why"}
		return j
	}()
	someSeen  = seenRecord{Version: formatVersion, At: day.Unix(), Verb: verbTrigger, Answer: answerDone, Run: &someEntry}
	someGroup = groupRecord{Version: formatVersion, Steering: *steeredJob.Steering}
)

func FuzzDecodeAnswers(f *testing.F) {
	f.Add(encode(someSeen))
	f.Add(encode(seenRecord{Version: formatVersion, Answer: answerRefused + "why"}))
	f.Add([]byte(`{"v":1,"answer":"accepted","run":{"job":"a","tick":"29999-01-01T00:00:00Z"}}`))
	f.Add(encode(someGroup))
	f.Add([]byte(`{"v":1,"steering":{"paused":true,"until":9223372036854775807}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		if s, err := decodeSeen(value); err == nil {
			again, err := decodeSeen(encode(s))
			if err != nil || !reflect.DeepEqual(again, s) {
				t.Fatalf("answer %+v became %+v, %v", s, again, err)
			}
			if e, err := s.reply(); err == nil && len(e.Detail) > maxSummary {
				t.Fatalf("%d bytes", len(e.Detail))
			}
		}
		if g, err := decodeGroup(value); err == nil {
			again, err := decodeGroup(encode(g))
			if err != nil || !reflect.DeepEqual(again, g) {
				t.Fatalf("group %+v became %+v, %v", g, again, err)
			}
			if p := g.Steering.view(day); p != nil && !p.Until.IsZero() && !p.Until.Before(endOfTime) {
				t.Fatalf("%+v", p)
			}
		}
	})
}
