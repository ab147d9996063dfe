//go:build unix

package table

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestJudgeIntersectsTheTimesOfTerms(t *testing.T) {
	term := func(token uint64, first, last moment) stint { return stint{"a", token, first, last} }
	for _, c := range []struct {
		name     string
		stints   []stint
		overlaps []time.Duration
		notGrown int
		without  time.Duration // from 0 to 100
	}{
		{"nobody", nil, nil, 0, 100},
		{"one after another", []stint{term(2, 60, 120), term(1, -5, 40)}, nil, 0, 20},
		{"at the very end", []stint{term(1, 0, 50), term(2, 50, 100)}, nil, 0, 0},
		{"two at once", []stint{term(1, 0, 60), term(2, 50, 100)}, []time.Duration{10}, 0, 0},
		{"one within another", []stint{term(1, 0, 90), term(2, 20, 30)}, []time.Duration{10}, 0, 10},
		{"three at once", []stint{term(1, 0, 60), term(2, 40, 100), term(3, 50, 100)}, []time.Duration{20, 10, 50}, 0, 0},
		{"a token again", []stint{term(1, 0, 40), term(1, 50, 100)}, nil, 1, 10},
		{"a lower token", []stint{term(7, 0, 40), term(6, 50, 70)}, nil, 1, 30},
		{"only before and after", []stint{term(1, -9, -1), term(2, 100, 200)}, nil, 0, 100},
	} {
		if got := overlaps(c.stints); !slices.Equal(got, c.overlaps) {
			t.Errorf("%s: overlaps %v, want %v", c.name, got, c.overlaps)
		}
		if got := notGrown(c.stints); got != c.notGrown {
			t.Errorf("%s: %d tokens have not grown, want %d", c.name, got, c.notGrown)
		}
		if got := without(c.stints, 0, 100); got != c.without {
			t.Errorf("%s: %v without, want %v", c.name, got, c.without)
		}
	}
}

func TestStintsAreReadAsTheyWereWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.terms")
	if got, err := readStints(file, "a"); err != nil || len(got) != 0 {
		t.Errorf("no file: %v, %v", got, err)
	}
	want := []stint{{"a", 1 << 50, 5, 6}, {"a", 1<<50 + 1, 7, 8}}
	data := append(want[0].record(), make([]byte, recordSize)...) // a term that was over at once
	data = append(append(data, want[1].record()...), 1, 2, 3)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readStints(file, "a"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}
