package sim

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
)

var update = flag.Bool("update", false, "write the transcripts anew")

// story is the script that is written by hand: nothing in it is left to chance.
type story struct {
	*scene
	takes  time.Duration                       // a job's work
	strike func(n *node, c line.Call) (f fate) // a call
}

// stories are transcripts that are kept in testdata, to be read.
var stories = []struct {
	name  string
	about string
	job   scheduler.Job
	ticks pattern
	takes time.Duration
	long  time.Duration
	play  func(s *story)
}{
	{
		name: "partition",
		about: `
A leader is cut off from the store and comes back. It stops believing that it leads before its lease ends; another replica
leads when it has ended, and makes up the tick that fell due in between. The one that comes back follows.`,
		job: scheduler.Job{Name: "report", Spec: "*/5 * * * * *"}, ticks: pattern{5, 0}, takes: 700 * time.Millisecond, long: 22 * time.Second,
		play: func(s *story) {
			s.at(8*time.Second, func() { s.cutOff(s.nodes[0], 7*time.Second) })
		},
	},
	{
		name: "pause",
		about: `
A leader stands still for longer than its lease and session, with a run going. The next leader calls the run interrupted
when the session has ended, and runs its tick again, as the job wants it. The first one wakes, finds the context of its run
ended, and what it has to say comes too late: it is kept as a note.`,
		job:   scheduler.Job{Name: "report", Spec: "*/10 * * * * *", OnInterrupt: scheduler.InterruptRerun},
		ticks: pattern{10, 0}, takes: 1500 * time.Millisecond, long: 25 * time.Second,
		play: func(s *story) {
			s.at(10*time.Second+500*time.Millisecond, func() { s.pause(s.nodes[0], 9*time.Second) })
		},
	},
	{
		name: "reply",
		about: `
The reply to a claim is lost. Whether the claim stands is not known, so the leader asks again with the same number; the
store has it already and says so, and only then does the run start: late, and once.`,
		job: scheduler.Job{Name: "report", Spec: "*/5 * * * * *"}, ticks: pattern{5, 0}, takes: 400 * time.Millisecond, long: 17 * time.Second,
		play: func(s *story) {
			lost := false
			s.strike = func(_ *node, c line.Call) (f fate) {
				if c.Op == "commit" && !lost && time.Now().Second() == 10 {
					lost = true
					f.mute, f.fault = true, "reply lost"
				}
				return f
			}
		},
	},
	{
		name: "wipe",
		about: `
The store loses everything. Its lease and all sessions are gone, so the leader's term and its run end. Whoever leads next
finds no ledger and waits for those who remember one; then it goes on from the watermark that they remember. The tick that
had run does not run again, and that of the lost run stands in the history.`,
		job: scheduler.Job{Name: "report", Spec: "*/10 * * * * *"}, ticks: pattern{10, 0}, takes: 2500 * time.Millisecond, long: 32 * time.Second,
		play: func(s *story) {
			s.at(11*time.Second, s.wipe)
		},
	},
	{
		name: "clock",
		about: `
The wall clock of a leader is set back by a quarter of a minute, and later right again. No tick runs twice: the watermark
stays. While the clock is behind nothing is due. When it is right, it has gone forward by more than a lease: the leader
cannot tell that from a machine that was suspended, and ends its term. The next one makes up the newest tick, and skips
the one before it, with the reason.`,
		job: scheduler.Job{Name: "report", Spec: "*/5 * * * * *"}, ticks: pattern{5, 0}, takes: 400 * time.Millisecond, long: 32 * time.Second,
		play: func(s *story) {
			s.at(11*time.Second, func() { s.jump(s.leader(), -15*time.Second) })
			s.at(22*time.Second, func() { s.jump(s.leader(), 0) })
		},
	},
}

// TestTranscripts plays the stories and compares them with what they were. -update writes them anew.
func TestTranscripts(t *testing.T) {
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			var text string
			synctest.Test(t, func(t *testing.T) {
				text = newStory(t, story.job, story.ticks, story.takes).tell(story.long, story.play)
			})
			text = strings.TrimSpace(story.about) + "\n\n" + text
			file := filepath.Join("testdata", story.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, []byte(text)) {
				t.Errorf("%s is another story now (-update writes it anew):\n%s", file, text)
			}
		})
	}
}

func newStory(t *testing.T, j scheduler.Job, ticks pattern, takes time.Duration) *story {
	s := &story{scene: newScene(t, 1, true), takes: takes, strike: func(*node, line.Call) fate { return fate{} }}
	s.script = s
	s.lease, s.grace = 3*time.Second, 2*time.Second
	s.jobs = []*job{{name: j.Name, exclusive: true, rerun: j.OnInterrupt == scheduler.InterruptRerun, builds: []build{{ticks, j}}}}
	s.ledger.jobs = map[string]*job{j.Name: s.jobs[0]}
	return s
}

// at has something happen at a moment of the story.
func (s *story) at(d time.Duration, do func()) { s.bus.after(d, do) }

// tell plays the story and returns its transcript.
func (s *story) tell(long time.Duration, play func(*story)) string {
	if err := scheduler.Create(s.t.Context(), s.store, group); err != nil {
		s.t.Fatal(err)
	}
	token, _, _ := s.store.Position(s.t.Context(), group)
	s.leases.highest = token
	start := time.Now()
	s.begin(0)
	s.bus.run(start.Add(time.Second), s.broken)
	s.begin(0)
	play(s)
	s.bus.run(start.Add(long), s.broken)
	text := s.trace.tail(start, "15:04:05.0", false) // calls take milliseconds; how many they are is no part of the story
	s.end()
	if s.sound() {
		s.reckon()
	}
	for _, f := range s.failures {
		s.t.Error(f)
	}
	return text
}

func (s *story) fate(n *node, c line.Call) fate {
	if time.Now().Before(n.cut) {
		return fate{lost: true}
	}
	f := s.strike(n, c)
	f.request, f.reply = time.Millisecond, time.Millisecond
	return f
}

func (s *story) plan(*work) (time.Duration, verdict) { return s.takes, verdict{} }
func (s *story) stubborn(*work) bool                 { return false }
func (s *story) dooms(*node, string) bool            { return false }
func (s *story) lacks(*node, *job) bool              { return false }

// dress gives a process draws that leave no trace in durations: all of these divide an hour.
func (s *story) dress(_ *node, _ *scheduler.Config, w *world.World) {
	random := w.Random
	w.Random = func() uint64 { return random() % 1000 * uint64(time.Hour) }
}
