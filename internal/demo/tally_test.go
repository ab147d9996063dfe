package demo

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCountFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name        string
		runs        map[int64]int
		interrupted map[int64]bool
		want        string // once, lost, doubled, rerun
		right       bool
	}{
		{"each once", map[int64]int{10: 1, 11: 1, 12: 1}, nil, "1 2 3|||", true},
		{"the first is lost", map[int64]int{11: 1, 12: 1}, nil, "2 3|1||", false},
		{"the last is lost", map[int64]int{10: 1, 11: 1}, nil, "1 2|3||", false},
		{"nothing ran", nil, nil, "|1 2 3||", false},
		{"one is doubled", map[int64]int{10: 1, 11: 2, 12: 1}, nil, "1 3||2|", false},
		{"one is doubled after an interruption", map[int64]int{10: 1, 11: 2, 12: 1}, map[int64]bool{11: true}, "1 3|||2", true},
		{"another was interrupted", map[int64]int{10: 2, 11: 1, 12: 1}, map[int64]bool{11: true}, "2 3||1|", false},
		{"later ones count too", map[int64]int{10: 1, 11: 1, 12: 1, 14: 1}, nil, "1 2 3 5|4||", false},
	} {
		got := count(10, 12, c.runs, c.interrupted)
		var parts []string
		for _, ticks := range [][]string{got.once, got.lost, got.doubled, got.rerun} {
			parts = append(parts, strings.Join(ticks, " "))
		}
		if text := strings.Join(parts, "|"); text != c.want || got.right() != c.right {
			t.Errorf("%s: got %q, right %v; want %q, right %v", c.name, text, got.right(), c.want, c.right)
		}
	}
}

func TestLinesAreReadOnceAndWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lines")
	l := lines{file: file}
	var got []int64
	for _, text := range []string{"", "10 r-1-aa\n11 r-1-", "10 r-1-aa\n11 r-1-aa\n", "10 r-1-aa\n11 r-1-aa\n11 r-2-bb\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		fresh, err := l.read(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range fresh {
			got = append(got, r.tick)
		}
	}
	if !slices.Equal(got, []int64{10, 11, 11}) || l.count[11] != 2 {
		t.Errorf("got %v, counts %v", got, l.count)
	}
}

func TestTimelineGroupsRuns(t *testing.T) {
	var out strings.Builder
	began := time.Unix(100, 0)
	tl := &timeline{out: &out, began: began, first: 101, led: began}
	at := func(tick int64, who string, late time.Duration) ran {
		return ran{tick: tick, who: who, at: time.Unix(tick, 0).Add(late)}
	}
	tl.ran(at(101, "r-1", 2*time.Millisecond))
	tl.ran(at(102, "r-1", 3*time.Millisecond))
	tl.event(time.Unix(102, 5e8), "r-1", "KILLED", "")
	tl.led = time.Unix(104, 5e8)
	tl.event(tl.led, "r-2", "leads after 2.0 s without a leader", "token 7")
	tl.ran(at(103, "r-2", 1500*time.Millisecond))
	tl.ran(at(104, "r-2", 510*time.Millisecond))
	tl.ran(at(105, "r-2", time.Millisecond))
	tl.flush()
	want := `   2.0 s  r-1  ran 1 2                                    each within 3 ms
   2.5 s  r-1  KILLED
   4.5 s  r-2  leads after 2.0 s without a leader         token 7
   4.5 s  r-2  caught up 3 4                              1.5 s, 510 ms late
   5.0 s  r-2  ran 5                                      each within 1 ms
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
