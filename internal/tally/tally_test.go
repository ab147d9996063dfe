package tally

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

func TestJudgeFindsWhatIsWrong(t *testing.T) {
	said := &Chronicle{}
	at := func(tick int64) time.Time { return time.Unix(tick, 0) }
	for tick := int64(10); tick <= 15; tick++ {
		outcome := scheduler.Succeeded
		if tick == 12 {
			outcome = scheduler.Interrupted
		}
		said.add(scheduler.Entry{Tick: at(tick), LastTick: at(tick), Outcome: outcome})
	}
	var effects []Effect
	for _, tick := range []int64{10, 11, 11, 12, 12, 15, 14, 16} {
		effects = append(effects, Effect{Tick: tick, At: at(tick)})
	}
	v := Judge(effects, said)
	if v.Expected != 7 || !slices.Equal(v.Missing, []int64{13}) || !slices.Equal(v.Doubled, []int64{11}) ||
		!slices.Equal(v.Rerun, []int64{12}) || !slices.Equal(v.Unaccounted, []int64{16}) {
		t.Errorf("got %+v", v)
	}
	if v := Judge(nil, said); v.Expected != 0 {
		t.Errorf("of nothing: %+v", v)
	}
}

func TestReadTakesWhatLineGives(t *testing.T) {
	file := filepath.Join(t.TempDir(), "effects")
	if all, err := Read(file); err != nil || len(all) != 0 {
		t.Errorf("no file: %v, %v", all, err)
	}
	want := Effect{Tick: 7, At: time.Unix(7, 9)}
	for text, whole := range map[string]bool{want.Line(): true, want.Line() + "torn": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := Read(file)
		if (err == nil) != whole || whole && !slices.Equal(all, []Effect{want}) {
			t.Errorf("%q: %v, %v", text, all, err)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := Median([]time.Duration{9, 1, 5}); got != 5 || Median(nil) != 0 {
		t.Errorf("got %v", got)
	}
}
