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

func TestLinesOfBothStreams(t *testing.T) {
	for _, tt := range []struct {
		script   string
		out, err []string
	}{
		{`printf 'a\nb\n'`, []string{"a", "b"}, nil},
		{`printf 'a\nlast'`, []string{"a", "last"}, nil},
		{`printf '\n\n'`, []string{"", ""}, nil},
		{`:`, nil, nil},
		{`echo out; echo err >&2`, []string{"out"}, []string{"err"}},
		{`printf 'a\r\n'`, []string{"a\r"}, nil},
		{`printf 'a\000b\n'`, []string{"a\x00b"}, nil},
	} {
		var out lines
		run(t, t.Context(), Spec{Argv: sh(tt.script), Output: out.add})
		if !slices.Equal(out.of("stdout"), tt.out) || !slices.Equal(out.of("stderr"), tt.err) {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.script, out.of("stdout"), out.of("stderr"), tt.out, tt.err)
		}
	}
}

func TestLongLinesComeInPieces(t *testing.T) {
	for _, tt := range []struct {
		size   int
		suffix string
		want   []int
	}{
		{MaxLine - 1, `\n`, []int{MaxLine - 1}},
		{MaxLine, `\n`, []int{MaxLine}},
		{MaxLine, ``, []int{MaxLine}},
		{MaxLine + 1, `\n`, []int{MaxLine, 1}},
		{2 * MaxLine, `\n\nx`, []int{MaxLine, MaxLine, 0, 1}},
	} {
		var out lines
		run(t, t.Context(), Spec{
			Argv:   sh(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; printf '%s'`, tt.size, tt.suffix)),
			Output: out.add,
		})
		var got []int
		for _, line := range out.of("stdout") {
			got = append(got, len(line))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%d bytes and %q: pieces of %d, want %d", tt.size, tt.suffix, got, tt.want)
		}
	}
}

func TestTenMegabytesWithoutANewline(t *testing.T) {
	const size = 10 << 20
	var total, longest int
	res := run(t, t.Context(), Spec{
		Argv: sh(fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; printf end`, size)),
		Output: func(_ string, line []byte) {
			total += len(line)
			longest = max(longest, len(line))
		},
	})
	if total != size+3 || longest != MaxLine {
		t.Errorf("%d bytes, the longest piece %d; want %d and %d", total, longest, size+3, MaxLine)
	}
	if len(res.Tail) != maxTail || !bytes.HasSuffix(res.Tail, []byte("xend")) {
		t.Errorf("tail of %d bytes ending in %q", len(res.Tail), res.Tail[max(0, len(res.Tail)-10):])
	}
}

func TestTailIsTheEndOfBothStreams(t *testing.T) {
	res := run(t, t.Context(), Spec{Argv: sh(`echo first; echo second >&2; printf third`)})
	for _, want := range []string{"first\n", "second\n", "third"} {
		if !bytes.Contains(res.Tail, []byte(want)) {
			t.Errorf("no %q in %q", want, res.Tail)
		}
	}
	var want tail
	for i := range 2000 {
		want.add(fmt.Appendf(nil, "%d\n", i))
	}
	res = run(t, t.Context(), Spec{Argv: sh(`i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done`)})
	if !bytes.Equal(res.Tail, want.bytes()) || len(res.Tail) != maxTail {
		t.Errorf("tail of %d bytes: %q", len(res.Tail), res.Tail)
	}
}

func TestFilesAreHandedOnAsTheyAre(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out lines
	res := run(t, t.Context(), Spec{Argv: sh(`printf 'a\033\n\nb'; echo err >&2`), Stdout: file, Output: out.add})
	text, err := os.ReadFile(file.Name())
	if err != nil || string(text) != "a\x1b\n\nb" {
		t.Errorf("read %q, %v", text, err)
	}
	if !slices.Equal(out.all, []string{"stderr:err"}) || string(res.Tail) != "err\n" {
		t.Errorf("got %q and %q, want what went to the other stream", out.all, res.Tail)
	}
}
