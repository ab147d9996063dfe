//go:build unix

package procgroup

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// readPast copies a stream whose deadline has passed and whose writing end stays open.
func readPast(t *testing.T, write func(w *os.File), got func(line []byte)) {
	t.Helper()
	var c child
	w, err := c.open("stdout", func(_ string, line []byte) { got(line) })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := c.streams[0].pipe.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	write(w)
	c.streams[0].copy()
}

func TestOutputInThePipeIsReadAfterTheDeadline(t *testing.T) {
	var want, got []string
	readPast(t, func(w *os.File) {
		for i := range 5000 {
			want = append(want, fmt.Sprint(i))
		}
		for _, line := range want {
			if _, err := fmt.Fprintln(w, line); err != nil {
				t.Fatal(err)
			}
		}
	}, func(line []byte) { got = append(got, string(line)) })
	if !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

func TestEndlessOutputFromOutsideTheGroupEnds(t *testing.T) {
	var writer sync.WaitGroup
	defer writer.Wait()
	total := 0
	readPast(t, func(w *os.File) {
		writer.Go(func() {
			text := bytes.Repeat([]byte("x\n"), 1000)
			for err := error(nil); err == nil; {
				_, err = w.Write(text)
			}
		})
	}, func(line []byte) { total += len(line) + 1 })
	if total == 0 || total > maxPipe {
		t.Errorf("read %d bytes, want at most %d", total, maxPipe)
	}
}
