package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	ticks := func(ticks ...int64) (runs []run) {
		for _, tick := range ticks {
			runs = append(runs, run{tick, "r"})
		}
		return runs
	}
	for _, c := range []struct {
		name string
		runs []run
		want tally
	}{
		{"nothing ran", nil, tally{5, 0, 0, 5}},
		{"each once", ticks(100, 101, 102, 103, 104), tally{5, 5, 0, 0}},
		{"any order", ticks(104, 100, 102, 101, 103), tally{5, 5, 0, 0}},
		{"outside does not count", ticks(99, 100, 101, 102, 103, 104, 105, 99), tally{5, 5, 0, 0}},
		{"two and three times", ticks(100, 100, 101, 101, 101, 102, 104), tally{5, 2, 2, 1}},
	} {
		if got := count(c.runs, 100, 5); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestReadRuns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs")
	want := []run{{7, "r-1"}, {8, "r-2"}}
	write(t, file, want[0].String()+want[1].String())
	if got, err := readRuns(file); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	write(t, file, want[0].String()+"no tick\n")
	if _, err := readRuns(file); err == nil {
		t.Error("a line that is none was not reported")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
