package election

import (
	"bytes"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestQueueCallsInOrderWhateverACallDoes(t *testing.T) {
	var log bytes.Buffer
	q := queue{log: slog.New(slog.NewTextHandler(&log, nil))}
	var got []int // only one call at a time writes: the race detector looks on
	for i := range 100 {
		q.add(func() {
			got = append(got, i)
			switch i % 10 {
			case 3:
				panic("in a call")
			case 7:
				runtime.Goexit()
			}
		})
	}
	q.wait()
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("called %v", got)
	}
	if n := strings.Count(log.String(), "callback panicked"); n != 10 || !strings.Contains(log.String(), "callbacks_test.go") {
		t.Errorf("%d panics logged: %s", n, log.String())
	}
	q.add(func() { got = nil }) // also after a pause
	q.wait()
	if got != nil {
		t.Error("not called after a pause")
	}
}
