package asynclog

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestEverythingIsWrittenInOrder(t *testing.T) {
	var out bytes.Buffer
	w := New(&out, func(n int) { t.Errorf("%d records were dropped", n) })
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if !w.Close(time.Minute) {
		t.Fatal("not written in a minute")
	}
	if out.String() != want.String() {
		t.Errorf("wrote %d bytes of %d, or in another order", out.Len(), want.Len())
	}
	if n, err := w.Write([]byte("late\n")); n != 5 || err != nil {
		t.Errorf("after Close: %d, %v", n, err)
	}
}

func TestAReaderThatStandsStillStopsNobody(t *testing.T) {
	read, write := io.Pipe()
	w := New(write, func(n int) { fmt.Fprintf(write, "%d lost\n", n) })
	line := bytes.Repeat([]byte{'x'}, 1<<10)
	line[len(line)-1] = '\n'
	const lines = 3 * queued >> 10
	for range lines {
		if _, err := w.Write(line); err != nil { // would block for ever
			t.Fatal(err)
		}
	}
	if w.Close(time.Millisecond) {
		t.Error("everything is said to be written although nobody has read")
	}
	var got bytes.Buffer
	go func() {
		<-w.done
		_ = write.Close()
	}()
	if _, err := io.Copy(&got, read); err != nil {
		t.Fatal(err)
	}
	kept := strings.Count(got.String(), "x\n")
	if want := fmt.Sprintf("%d lost\n", lines-kept); !strings.HasSuffix(got.String(), want) {
		t.Errorf("%d of %d lines were kept; the last says %q", kept, lines, got.String()[max(0, got.Len()-80):])
	}
	if kept < queued>>10 || kept > queued>>10+1 {
		t.Errorf("%d lines were kept", kept)
	}
}
